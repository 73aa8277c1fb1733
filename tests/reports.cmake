# Tests of reports/. report_sample.c records the run that they look at.
foreach(module IN ITEMS announce auto monitor options table)
	ipuscope_add_test(NAME test_report_${module} SOURCES test_report_${module}.c
		LIBS reports LABELS unit reports)
endforeach()

foreach(module IN ITEMS command schema select summary tensors views)
	ipuscope_add_test(NAME test_report_${module} SOURCES test_report_${module}.c report_sample.c
		LIBS reports PkgConfig::SQLITE LABELS unit reports)
	target_include_directories(test_report_${module} PRIVATE ${PROJECT_SOURCE_DIR}/profiler)
endforeach()
target_compile_definitions(test_report_monitor PRIVATE IPUSCOPE_VERSION="${PROJECT_VERSION}")
# Run the command.
add_dependencies(test_report_command ipu-report)
add_dependencies(test_report_select ipu-report)

# Two trainers at once, and ipu-monitor beside them.
ipuscope_add_script(NAME monitor_runs LABELS golden reports)

# `export`: of recordings that capture_make writes.
add_executable(capture_make capture_make.c)
target_link_libraries(capture_make PRIVATE profiler ipuscope_options)
set_target_properties(capture_make PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
ipuscope_add_script(NAME report_export LABELS golden reports)
# Judges a recorded run again, and runs the command.
ipuscope_add_test(NAME test_report_health SOURCES test_report_health.c
	LIBS reports PkgConfig::SQLITE LABELS unit reports)
add_dependencies(test_report_health ipu-report)
