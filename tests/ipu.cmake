# Tests of ipu/.
foreach(module IN ITEMS target plan schedule timeline bubble)
	ipuscope_add_test(NAME test_ipu_${module} SOURCES test_ipu_${module}.c LIBS ipu LABELS unit ipu)
endforeach()
