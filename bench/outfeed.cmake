# Benchmarks of outfeed/.
add_executable(bench_stats bench_stats.c)
target_link_libraries(bench_stats PRIVATE outfeed common ipuscope_options)
set_source_files_properties(bench_stats.c PROPERTIES COMPILE_OPTIONS -O3)
target_compile_definitions(bench_stats PRIVATE
	BENCH_STATS_NUMPY="${CMAKE_CURRENT_SOURCE_DIR}/bench_stats_numpy.py")
add_executable(bench_outfeed bench_outfeed.c)
target_link_libraries(bench_outfeed PRIVATE outfeed profiler common ipuscope_options)
