# Tests of the trainer's mathematics: kernels, layers, models, losses, optimizers.
foreach(module IN ITEMS kernel_gemm kernel_vector kernel_softmax
		layer model model_init stage loss optimizer oracle)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/math.c
		LIBS trainer_math LABELS unit trainer)
endforeach()
