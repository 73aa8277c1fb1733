# Tests of popvision/: the public library, ipuscope/report.h, and the files beside profile.db of a run made by hand.
foreach(module IN ITEMS public public_hostile)
	ipuscope_add_test(NAME test_report_${module} SOURCES test_report_${module}.c support/report_sample.c
		LIBS report_public PkgConfig::SQLITE LABELS unit popvision)
endforeach()
ipuscope_add_test(NAME test_popvision SOURCES test_popvision.c support/report_sample.c
	LIBS popvision PkgConfig::CBOR PkgConfig::SQLITE LABELS unit popvision)
