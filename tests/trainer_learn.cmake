# Tests of losses, metrics and optimizers, and of training against PyTorch's figures.
foreach(module IN ITEMS classes loss metric optimizer regularizer oracle)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/math.c
		LIBS trainer_learn LABELS unit trainer)
endforeach()
