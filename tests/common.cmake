# Tests of common/.
foreach(module IN ITEMS arena clock err fmt fs json jsonw mem pool rng str)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS common LABELS unit common)
endforeach()
