# The rules of the house: who may include whom, one name per file, one format, whole pipes.
#
# Scripts and not programs, since what they look at is the source tree.
function(ipuscope_add_house_test name script)
	add_test(NAME ${name} COMMAND ${CMAKE_COMMAND}
		-D ROOT=${PROJECT_SOURCE_DIR} -D WORK=${CMAKE_CURRENT_BINARY_DIR}/${name}
		-P ${CMAKE_CURRENT_SOURCE_DIR}/house/${script})
	set_tests_properties(${name} PROPERTIES LABELS "unit;house" TIMEOUT ${IPUSCOPE_TEST_HANGS_S}
		SKIP_REGULAR_EXPRESSION "^skipped: ")
endfunction()

ipuscope_add_house_test(house_includes check_includes.cmake)
ipuscope_add_house_test(house_includes_bites check_includes_bites.cmake)
ipuscope_add_house_test(house_format check_format.cmake)
ipuscope_add_house_test(house_format_bites check_format_bites.cmake)
ipuscope_add_house_test(house_pipes check_pipes.cmake)
