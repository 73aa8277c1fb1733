# Tests of common/.
foreach(module IN ITEMS clock)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS common LABELS unit common)
endforeach()
