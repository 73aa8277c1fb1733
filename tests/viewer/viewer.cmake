# Tests of viewer/.
file(GLOB fixtures CONFIGURE_DEPENDS support/view_fixture*.c)
add_library(view_fixture STATIC ${fixtures})
target_link_libraries(view_fixture PUBLIC profiler ipu test_support m)

# Sessions on recordings, for tests of screens.
add_library(view_rig STATIC EXCLUDE_FROM_ALL support/view_rig.c)
target_link_libraries(view_rig PUBLIC viewer view_fixture)

add_executable(view_make support/view_make.c)
target_link_libraries(view_make PRIVATE view_fixture PkgConfig::SQLITE)
add_executable(view_play support/view_play.c)
target_link_libraries(view_play PRIVATE viewer)
set_target_properties(view_make view_play PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

foreach(module IN ITEMS
		canvas
		config
		grid
		keys
		layout
		style
		svg
		time)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c LIBS viewer LABELS unit viewer)
endforeach()
# In panes.
foreach(module IN ITEMS chart heat)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c support/view_pane.c
		LIBS viewer LABELS unit viewer)
endforeach()
# On recordings.
foreach(module IN ITEMS
		accelerators
		communication
		ends
		health
		help
		liveness
		memory
		memory_room
		mouse
		place
		programs
		runs
		session
		tensors
		tensors_two
		timeline
		timeline_arrows
		timeline_counters
		timeline_device
		timeline_fold
		timeline_hide
		timeline_idle
		timeline_names
		timeline_ranks
		write)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c LIBS view_rig LABELS unit viewer)
endforeach()
ipuscope_add_test(NAME test_view_busy SOURCES test_view_busy.c LIBS view_rig PkgConfig::SQLITE LABELS unit viewer)
ipuscope_add_test(NAME test_view_timeline_runs SOURCES test_view_timeline_runs.c LIBS view_rig PkgConfig::SQLITE
	LABELS unit viewer)
ipuscope_add_test(NAME test_view_marks SOURCES test_view_marks.c LIBS view_rig LABELS unit viewer)
foreach(module IN ITEMS operations summary)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c support/prof_testing.c
		LIBS view_rig PkgConfig::SQLITE LABELS unit viewer)
endforeach()
ipuscope_add_test(NAME test_view_screens SOURCES test_view_screens.c support/prof_testing.c support/report_sample.c
	LIBS view_rig PkgConfig::SQLITE LABELS unit viewer)
ipuscope_add_test(NAME test_view_sql SOURCES test_view_sql.c LIBS view_rig reports LABELS unit viewer)
# On the run that the tests of reports/ look at, too.
foreach(module IN ITEMS insights join metrics)
	ipuscope_add_test(NAME test_view_${module} SOURCES test_view_${module}.c support/report_sample.c
		LIBS view_rig LABELS unit viewer)
endforeach()

# Every recording there is, for what is tried on all.
ipuscope_test_source(support/report_sample.c view_rig)
add_library(view_recordings STATIC EXCLUDE_FROM_ALL support/view_recordings.c ${object})
target_link_libraries(view_recordings PUBLIC view_rig reports)
add_library(view_stop STATIC EXCLUDE_FROM_ALL support/view_stop.c)
target_link_libraries(view_stop PUBLIC test_support PkgConfig::SQLITE)
ipuscope_add_test(NAME test_view_away SOURCES test_view_away.c LIBS view_recordings LABELS unit viewer)
ipuscope_add_test(NAME test_view_term SOURCES test_view_term.c LIBS view_fixture LABELS unit viewer)
add_dependencies(tests_viewer ipu-view)
ipuscope_add_test(NAME test_view_alloc SOURCES test_view_alloc.c support/sqlite_alloc.c
	LIBS view_recordings PkgConfig::SQLITE
	LABELS unit viewer sanitized)
ipuscope_add_test(NAME test_view_hostile SOURCES test_view_hostile.c LIBS view_recordings PkgConfig::SQLITE
	LABELS unit viewer sanitized)
ipuscope_add_test(NAME test_view_stopped SOURCES test_view_stopped.c LIBS view_recordings view_stop
	LABELS unit viewer sanitized)

# Scripts: the built programs, and the recording that view_make writes. Those that take long run as released only.
foreach(script IN ITEMS
		view_batch
		view_matrix
		view_shrinks
		view_tmux)
	ipuscope_add_script(NAME ${script} LABELS golden viewer)
endforeach()
foreach(script IN ITEMS
		view_keys
		view_live
		view_numbers
		view_sequences
		view_terms
		view_tutorials
		view_walks
		view_words)
	ipuscope_add_script(NAME ${script} LABELS golden viewer release)
endforeach()
