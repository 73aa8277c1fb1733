foreach(name IN ITEMS record thread kill copier alone ahead)
	ipuscope_add_test(NAME test_prof_${name} SOURCES test_prof_${name}.c support/prof_testing.c
		LIBS profiler common PkgConfig::SQLITE LABELS unit)
endforeach()
# One thread, and SQLite's work above all: the same as released.
foreach(name IN ITEMS names bulk level_sort rows model timeline steps fault db sums page critical counters)
	ipuscope_add_test(NAME test_prof_${name} SOURCES test_prof_${name}.c support/prof_testing.c
		LIBS profiler common PkgConfig::SQLITE LABELS unit sanitized)
endforeach()
ipuscope_add_test(NAME test_prof_announce SOURCES test_prof_announce.c LIBS profiler LABELS unit)
# Of the run that the tests of reports/ look at, with rows in every view.
ipuscope_add_test(NAME test_prof_merge SOURCES test_prof_merge.c support/prof_testing.c support/report_sample.c
	support/sqlite_alloc.c
	LIBS profiler PkgConfig::SQLITE LABELS unit sanitized)
ipuscope_add_test(NAME test_prof_guard SOURCES test_prof_guard.c support/prof_testing.c support/report_sample.c
	LIBS profiler PkgConfig::SQLITE LABELS unit sanitized)
ipuscope_add_test(NAME test_prof_trace SOURCES test_prof_trace.c support/prof_testing.c
	LIBS profiler ipu common PkgConfig::SQLITE LABELS unit)

ipuscope_add_script(NAME header_examples LABELS golden)
ipuscope_add_script(NAME mpi_layer LABELS golden release)
# Sanitizers want to be linked into the foreign program too: as released only.
ipuscope_add_script(NAME foreign_link LABELS golden release ARGS ${PROJECT_BINARY_DIR})
