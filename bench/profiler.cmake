add_executable(bench_record bench_record.c)
target_link_libraries(bench_record PRIVATE profiler common PkgConfig::SQLITE ipuscope_options)
