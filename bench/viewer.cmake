# The viewer in a terminal of its own, driven by bench_viewer.sh.
add_executable(bench_view bench_view.c)
target_link_libraries(bench_view PRIVATE viewer util)
