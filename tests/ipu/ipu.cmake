# Tests of ipu/.
foreach(module IN ITEMS composite target plan plan_conv plan_vector plan_vector_examples plan_vertex schedule timeline bubble partition)
	ipuscope_add_test(NAME test_ipu_${module} SOURCES test_ipu_${module}.c LIBS ipu LABELS unit ipu)
endforeach()
ipuscope_add_test(NAME test_ipu_cost SOURCES test_ipu_cost.c support/pipeline_sample.c support/program_sample.c LIBS ipu LABELS unit ipu)
ipuscope_add_test(NAME test_ipu_pipeline SOURCES test_ipu_pipeline.c support/pipeline_sample.c LIBS ipu LABELS unit ipu)
ipuscope_add_test(NAME test_ipu_pipeline_closed SOURCES test_ipu_pipeline_closed.c support/pipeline_sample.c LIBS ipu
	LABELS unit ipu)
ipuscope_add_test(NAME test_ipu_memory SOURCES test_ipu_memory.c support/memory_sample.c LIBS ipu LABELS unit ipu)
ipuscope_add_test(NAME test_ipu_program SOURCES test_ipu_program.c support/program_sample.c LIBS ipu LABELS unit ipu)
ipuscope_add_test(NAME test_ipu_trace SOURCES test_ipu_trace.c support/program_sample.c LIBS ipu LABELS unit ipu)
ipuscope_add_test(NAME test_ipu_simulated SOURCES test_ipu_simulated.c support/program_sample.c support/memory_sample.c LIBS ipu LABELS unit ipu)
