add_executable(bench_record bench_record.c)
target_link_libraries(bench_record PRIVATE profiler common PkgConfig::SQLITE ipuscope_options)
# Large recordings for the benchmarks of reports and of the viewer.
add_executable(make_database make_database.c)
target_link_libraries(make_database PRIVATE profiler common ipuscope_options m)

# The memory of many IPUs, for bench_view.
add_executable(make_memory make_memory.c)
target_link_libraries(make_memory PRIVATE profiler common ipuscope_options m)
