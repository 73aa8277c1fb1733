# Tests of outfeed/.
foreach(module IN ITEMS stats filter queue)
	ipuscope_add_test(NAME test_outfeed_${module} SOURCES test_outfeed_${module}.c
		LIBS outfeed PkgConfig::SQLITE LABELS unit outfeed)
endforeach()
