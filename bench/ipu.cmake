# Benchmarks of ipu/.
add_executable(fidelity fidelity.c fidelity_bubbles.c fidelity_golden.c fidelity_network.c)
target_compile_definitions(fidelity PRIVATE IPUSCOPE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
target_link_libraries(fidelity PRIVATE model_plan trainer ipu common m ipuscope_options)
add_executable(bench_plan bench_plan.c)
target_link_libraries(bench_plan PRIVATE ipu common ipuscope_options)
add_executable(bench_plan_vector bench_plan_vector.c)
target_link_libraries(bench_plan_vector PRIVATE ipu common ipuscope_options)
