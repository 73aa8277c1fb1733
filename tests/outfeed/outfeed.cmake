# Tests of outfeed/.
foreach(module IN ITEMS keep numpy policy queue tier)
	ipuscope_add_test(NAME test_outfeed_${module} SOURCES test_outfeed_${module}.c
		LIBS outfeed PkgConfig::SQLITE LABELS unit outfeed)
endforeach()
# Those whose kernels meet every odd array.
foreach(module IN ITEMS change histogram neurons scan stats)
	ipuscope_add_test(NAME test_outfeed_${module} SOURCES test_outfeed_${module}.c support/floats.c
		LIBS outfeed PkgConfig::SQLITE LABELS unit outfeed)
endforeach()
# Health rules, and an engine whose hits are kept.
foreach(module IN ITEMS health health_loss health_random health_rules)
	ipuscope_add_test(NAME test_outfeed_${module}
		SOURCES test_outfeed_${module}.c support/health.c
		LIBS outfeed PkgConfig::SQLITE LABELS unit outfeed)
endforeach()
ipuscope_add_test(NAME test_outfeed_captures SOURCES test_outfeed_captures.c support/prof_testing.c
	LIBS outfeed profiler common PkgConfig::SQLITE LABELS unit outfeed sanitized)
# The recorder, with a recording.
foreach(module IN ITEMS bad budget record ring)
	ipuscope_add_test(NAME test_outfeed_${module}
		SOURCES test_outfeed_${module}.c support/recorder.c support/prof_testing.c
		LIBS outfeed PkgConfig::SQLITE LABELS unit outfeed)
endforeach()
foreach(name IN ITEMS public public_values)
	ipuscope_add_test(NAME test_outfeed_${name} SOURCES test_outfeed_${name}.c support/public_sample.c support/prof_testing.c
		LIBS outfeed_public PkgConfig::SQLITE LABELS unit outfeed)
endforeach()
ipuscope_add_script(NAME inspect_own LABELS golden outfeed)
# The Python module, as released: a sanitizer would have to be loaded into Python.
ipuscope_add_script(NAME python_module LABELS golden outfeed release ARGS ${PROJECT_BINARY_DIR})
