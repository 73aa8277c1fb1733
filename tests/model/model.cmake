# Tests of what describes a model, of run files and their rules, and of plans.
foreach(module IN ITEMS application application_model layer_attention_lower layer_conv_lower layers learn model model_graph model_texts schedule)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/lowered.c support/math.c
		support/model_texts.c LIBS model LABELS unit model)
endforeach()
foreach(module IN ITEMS lower lower_nodes)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/lowering.c
		support/lowering_check.c support/math.c LIBS model outfeed LABELS unit model)
endforeach()
ipuscope_add_test(NAME test_plan_gantt SOURCES test_plan_gantt.c support/pipeline_sample.c LIBS model_plan LABELS unit model)
# These run the command.
foreach(module IN ITEMS plan_schedule plan_operation plan_figures)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/plan.c LIBS PkgConfig::CJSON LABELS unit model)
endforeach()
add_dependencies(tests_model ipu-plan)

add_library(run_sample STATIC support/run_sample.c support/run_set.c)
target_link_libraries(run_sample PUBLIC model outfeed test_support)
ipuscope_add_test(NAME test_plan_command SOURCES test_plan_command.c LIBS model_plan outfeed LABELS unit model)
ipuscope_add_test(NAME test_plan_graphs SOURCES test_plan_graphs.c support/lowered.c LIBS model outfeed LABELS unit model)
ipuscope_add_test(NAME test_plan_run SOURCES test_plan_run.c support/plan.c LIBS run_sample model_plan PkgConfig::CJSON LABELS unit model)
foreach(module IN ITEMS run_data run_device run_file run_flags run_ipus run_outputs run_queues run_rules)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS run_sample LABELS unit model)
endforeach()
ipuscope_add_test(NAME test_run_examples SOURCES test_run_examples.c LIBS model outfeed test_support LABELS unit model)
