# The viewer's pictures, on the recording of its tests.
if(TARGET view_fixture)
	add_executable(bench_view bench_view.c)
	target_link_libraries(bench_view PRIVATE viewer view_fixture)
endif()
