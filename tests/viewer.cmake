# Tests of viewer/.
add_library(view_fixture STATIC support/view_fixture.c support/view_fixture_model.c)
target_link_libraries(view_fixture PUBLIC profiler test_support m)

# Sessions on recordings, for tests of screens.
add_library(view_rig STATIC support/view_rig.c)
target_link_libraries(view_rig PUBLIC viewer view_fixture)

add_executable(view_make view_make.c support/view_fixture_device.c support/view_fixture_liveness.c
	support/view_fixture_memory.c support/view_fixture_metrics.c support/view_fixture_tensors.c)
target_link_libraries(view_make PRIVATE view_fixture ipu)
add_executable(view_play view_play.c)
target_link_libraries(view_play PRIVATE viewer)
set_target_properties(view_make view_play PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

foreach(module IN ITEMS
		canvas
		chart
		config
		heat
		keys
		layout
		style
		svg
		time)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c LIBS viewer LABELS unit viewer)
endforeach()
ipuscope_add_test(NAME test_view_write SOURCES test_view_write.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_marks SOURCES test_view_marks.c LIBS viewer view_fixture LABELS unit viewer)
ipuscope_add_test(NAME test_view_summary SOURCES test_view_summary.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_help SOURCES test_view_help.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_programs SOURCES test_view_programs.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_operations SOURCES test_view_operations.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_session SOURCES test_view_session.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_memory SOURCES test_view_memory.c support/view_fixture_memory.c LIBS view_rig
	LABELS unit viewer)
ipuscope_add_test(NAME test_view_busy SOURCES test_view_busy.c LIBS view_rig PkgConfig::SQLITE LABELS unit viewer)
ipuscope_add_test(NAME test_view_ends SOURCES test_view_ends.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_grid SOURCES test_view_grid.c LIBS viewer LABELS unit viewer)
ipuscope_add_test(NAME test_view_timeline SOURCES test_view_timeline.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_timeline_device SOURCES test_view_timeline_device.c support/view_fixture_device.c
	LIBS view_rig ipu LABELS unit viewer)
ipuscope_add_test(NAME test_view_timeline_runs SOURCES test_view_timeline_runs.c support/view_fixture_runs.c
	LIBS view_rig ipu LABELS unit viewer)

ipuscope_add_test(NAME test_view_liveness SOURCES test_view_liveness.c support/view_fixture_liveness.c
	LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_insights SOURCES test_view_insights.c report_sample.c
	LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_metrics SOURCES test_view_metrics.c report_sample.c
	support/view_fixture_metrics.c LIBS view_rig LABELS unit viewer)
ipuscope_add_test(NAME test_view_sql SOURCES test_view_sql.c LIBS view_rig reports LABELS unit viewer)

ipuscope_add_test(NAME test_view_join SOURCES test_view_join.c report_sample.c
	support/view_fixture_device.c LIBS view_rig ipu LABELS unit viewer)
foreach(module IN ITEMS health tensors tensors_two)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c support/view_fixture_tensors.c
		LIBS view_rig LABELS unit viewer)
endforeach()

# Every recording there is, for what is tried on all.
add_library(view_recordings STATIC support/view_recordings.c report_sample.c support/view_fixture_device.c
	support/view_fixture_liveness.c support/view_fixture_memory.c support/view_fixture_metrics.c
	support/view_fixture_tensors.c)
target_link_libraries(view_recordings PUBLIC view_rig reports ipu)
ipuscope_add_test(NAME test_view_away SOURCES test_view_away.c LIBS view_recordings LABELS unit viewer)
ipuscope_add_test(NAME test_view_hostile SOURCES test_view_hostile.c LIBS view_recordings PkgConfig::SQLITE
	LABELS unit viewer)

# Scripts: the built programs, and the recording that view_make writes. Those that take long run as released only.
foreach(script IN ITEMS
		view_batch
		view_matrix
		view_screens
		view_tmux)
	ipuscope_add_script(NAME ${script} LABELS golden viewer)
endforeach()
foreach(script IN ITEMS
		view_keys
		view_live
		view_numbers
		view_terms
		view_tutorials
		view_walks)
	ipuscope_add_script(NAME ${script} LABELS golden viewer release)
endforeach()
