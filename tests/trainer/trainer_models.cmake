# Tests of layers, models and stages.
foreach(module IN ITEMS layer layer_merge model_init model_order model_policy stage)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/lowered.c support/math.c
		support/model_texts.c LIBS trainer_learn LABELS unit trainer)
endforeach()
# Files, which are read and written alike however that is compiled.
foreach(module IN ITEMS keras_file model_weights)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/lowered.c support/math.c
		support/model_texts.c LIBS trainer_learn LABELS unit trainer sanitized)
endforeach()
foreach(module IN ITEMS stage_graph stage_memory)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/graph.c
		support/graph_layers.c support/graph_pipe.c support/math.c LIBS trainer_learn
		LABELS unit trainer)
endforeach()
foreach(module IN ITEMS layer_conv)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/lowered.c support/math.c
		LIBS trainer_learn LABELS unit trainer)
endforeach()
foreach(module IN ITEMS layer_elementwise layer_norm layer_norm_stage layer_pool layer_sequence layer_recurrent
		layer_transpose layer_noise layer_sampling layer_groups layer_wrap layer_attention oracle_layers)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/lowered.c support/math.c support/layer_rig.c
		support/model_texts.c LIBS trainer_models LABELS unit trainer)
endforeach()
foreach(module IN ITEMS stage_models stage_watch)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/math.c support/network.c
		LIBS trainer_learn LABELS unit trainer)
endforeach()
ipuscope_add_test(NAME test_stage_tap SOURCES test_stage_tap.c support/graph.c support/graph_layers.c
	support/graph_pipe.c support/math.c support/network.c LIBS trainer_learn LABELS unit trainer)
if(TARGET kernel_tiles_checked)
	target_sources(tests_trainer_models PRIVATE $<TARGET_OBJECTS:kernel_tiles_checked>)
endif()
