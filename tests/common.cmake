# Tests of common/.
foreach(module IN ITEMS arena cli clock err fmt fs json jsonw mem pool rng sorted str support_tools)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS common LABELS unit common)
endforeach()
