# Tests of reports/. support/report_sample.c records the run that they look at.
foreach(module IN ITEMS axis monitor sink table)
	ipuscope_add_test(NAME test_report_${module} SOURCES test_report_${module}.c
		LIBS reports LABELS unit reports)
endforeach()

foreach(module IN ITEMS
		command
		diff
		html
		named
		schema
		select
		summary
		tensors
		views)
	ipuscope_add_test(NAME test_report_${module} SOURCES test_report_${module}.c support/report_sample.c
		LIBS reports PkgConfig::SQLITE LABELS unit reports)
endforeach()
ipuscope_add_test(NAME test_report_insights SOURCES test_report_insights.c
	LIBS reports PkgConfig::SQLITE LABELS unit reports)
# Some run the command.
add_dependencies(tests_reports ipu-report)

# The example that walks a report with ipuscope/report.h.
ipuscope_add_script(NAME walk_report LABELS golden reports)

# Named reports against other queries, of runs of every kind.
ipuscope_add_script(NAME report_numbers LABELS golden reports release)
ipuscope_add_script(NAME report_sequence LABELS golden reports release)

# What documents show of runs.
ipuscope_add_script(NAME documents LABELS golden reports release)

# Two trainers at once, and ipu-monitor beside them.
ipuscope_add_script(NAME monitor_runs LABELS golden reports)

# Killed, failed and empty recordings: every report, view, export and verb.
ipuscope_add_script(NAME report_unfinished LABELS golden reports release)

# What-if against closed forms, and against runs of the trainer.
ipuscope_add_test(NAME test_report_whatif SOURCES test_report_whatif.c support/verb_out.c
	LIBS reports profiler PkgConfig::SQLITE LABELS unit reports)
ipuscope_add_script(NAME report_whatif LABELS golden reports release)
ipuscope_add_script(NAME report_whatif_ranks LABELS golden reports release)

# `merge`: of two trainers that ran at once.
ipuscope_add_script(NAME report_merge LABELS golden reports)

# `export`: of recordings that capture_make and trace_make write.
foreach(maker IN ITEMS capture_make trace_make)
	add_executable(${maker} support/${maker}.c)
	target_link_libraries(${maker} PRIVATE profiler ipuscope_options)
	set_target_properties(${maker} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
endforeach()
ipuscope_add_script(NAME report_insights LABELS golden reports release)
ipuscope_add_script(NAME report_diff LABELS golden reports)
ipuscope_add_script(NAME report_html LABELS golden reports)
ipuscope_add_script(NAME report_export LABELS golden reports)
ipuscope_add_script(NAME report_export_chrome LABELS golden reports)
ipuscope_add_script(NAME report_export_formats LABELS golden reports)
# A browser loads what was exported: npm is asked for speedscope once.
ipuscope_add_script(NAME report_export_browser LABELS golden reports release
	ARGS ${PROJECT_BINARY_DIR}/npm)

# The files beside profile.db, of trainings.
ipuscope_add_script(NAME report_popvision LABELS golden reports release)

# `import`: of traces in golden/ and of what the tests write.
ipuscope_add_script(NAME report_import LABELS golden reports)
ipuscope_add_script(NAME report_import_cache LABELS golden reports)
ipuscope_add_script(NAME report_recordings LABELS golden reports release)
ipuscope_add_script(NAME report_accelerators LABELS golden reports)
ipuscope_add_script(NAME report_critical_path LABELS golden reports)
ipuscope_add_script(NAME report_insights_gpu LABELS golden reports)
ipuscope_add_script(NAME report_foreign LABELS golden reports)
ipuscope_add_script(NAME report_round_trip LABELS golden reports)
ipuscope_add_script(NAME report_protobuf LABELS golden reports)
foreach(module IN ITEMS import import_json)
	ipuscope_add_test(NAME test_report_${module} SOURCES test_report_${module}.c
		LIBS reports PkgConfig::SQLITE LABELS unit reports)
endforeach()
ipuscope_add_test(NAME test_report_formats
	SOURCES test_report_formats.c support/guard_alloc.c support/prof_testing.c support/verb_out.c
		support/wire_text.c
	LIBS reports profiler PkgConfig::SQLITE LABELS unit reports)
ipuscope_add_test(NAME test_report_verbs
	SOURCES test_report_verbs.c support/guard_alloc.c support/prof_testing.c support/report_sample.c
		support/verb_out.c
	LIBS reports profiler PkgConfig::SQLITE LABELS unit reports)
# Judges a recorded run again, and runs the command.
ipuscope_add_test(NAME test_report_health SOURCES test_report_health.c
	LIBS reports PkgConfig::SQLITE LABELS unit reports)
