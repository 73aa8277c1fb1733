# Tests of run files and their rules.
add_library(run_sample STATIC ${CMAKE_CURRENT_LIST_DIR}/run_sample.c ${CMAKE_CURRENT_LIST_DIR}/run_set.c)
target_link_libraries(run_sample PUBLIC model test_support)
foreach(module IN ITEMS run_device run_file run_flags run_ipus run_rules)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS run_sample LABELS unit model)
endforeach()
ipuscope_add_test(NAME test_run_examples SOURCES test_run_examples.c LIBS model test_support LABELS unit model)
