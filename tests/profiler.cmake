foreach(name IN ITEMS rows record model timeline kill fault db)
	ipuscope_add_test(NAME test_prof_${name} SOURCES test_prof_${name}.c prof_testing.c
		LIBS profiler common PkgConfig::SQLITE LABELS unit)
endforeach()

add_test(NAME foreign_link COMMAND ${PROJECT_SOURCE_DIR}/tests/foreign_link.sh ${PROJECT_BINARY_DIR})
set_tests_properties(foreign_link PROPERTIES LABELS "golden;release" TIMEOUT 120 SKIP_RETURN_CODE 77
	ENVIRONMENT "${IPUSCOPE_TEST_ENVIRONMENT}")
