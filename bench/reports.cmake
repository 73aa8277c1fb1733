# For bench_import.sh.
add_executable(bench_trace bench_trace.c)
target_link_libraries(bench_trace PRIVATE reports ipuscope_options)
add_executable(make_trace make_trace.c)
target_link_libraries(make_trace PRIVATE reports ipuscope_options)
