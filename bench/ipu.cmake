# Benchmarks of ipu/.
add_executable(fidelity fidelity.c)
target_link_libraries(fidelity PRIVATE ipu common m ipuscope_options)
add_executable(bench_plan bench_plan.c)
target_link_libraries(bench_plan PRIVATE ipu common ipuscope_options)
