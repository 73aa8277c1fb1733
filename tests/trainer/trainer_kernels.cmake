# Tests of the trainer's kernels.
foreach(module IN ITEMS kernel_activation kernel_conv kernel_dropout kernel_half kernel_norm kernel_pool kernel_softmax kernel_vector
		kernel_watch)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/math.c
		LIBS trainer_models PkgConfig::XXHASH LABELS unit trainer)
endforeach()
ipuscope_add_test(NAME test_kernel_gemm SOURCES test_kernel_gemm.c support/math.c
	LIBS trainer_models LABELS unit trainer processor)
ipuscope_add_test(NAME test_kernel_pad SOURCES test_kernel_pad.c support/math.c
	LIBS trainer_models LABELS unit trainer)
