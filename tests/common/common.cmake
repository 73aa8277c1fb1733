# Tests of common/.
ipuscope_add_test(NAME test_elementary SOURCES test_elementary.c LIBS common m PkgConfig::XXHASH LABELS unit common)
foreach(module IN ITEMS apart arena cli clock dtype err fmt fs json jsonw map mem npz_values pool rng sorted str support_tools)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS common LABELS unit common)
endforeach()
