# Tests of losses, metrics and optimizers, and of training against PyTorch's figures.
foreach(module IN ITEMS classes loss metric optimizer oracle_losses regularizer)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/math.c
		LIBS trainer_learn LABELS unit trainer)
endforeach()
# Whole trainings; the kernels that they run have tests of their own under the sanitizers.
ipuscope_add_test(NAME test_oracle SOURCES test_oracle.c support/math.c LIBS trainer_learn LABELS unit trainer release)
