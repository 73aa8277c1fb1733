ipuscope_add_script(NAME commands LABELS golden)
ipuscope_add_script(NAME locales LABELS golden release)
ipuscope_add_script(NAME completion_zsh LABELS golden release)
ipuscope_add_test(NAME test_hostile_db SOURCES test_hostile_db.c LIBS reports profiler view_fixture LABELS unit)
ipuscope_add_script(NAME installed LABELS golden ARGS ${PROJECT_BINARY_DIR})

# Preloaded by failing_alloc.sh. Sanitizers replace the allocator themselves.
if(NOT IPUSCOPE_SANITIZE)
	add_library(fail_alloc MODULE support/fail_alloc.c)
	target_link_libraries(fail_alloc PRIVATE ${CMAKE_DL_LIBS} ipuscope_options)
	set_target_properties(fail_alloc PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
endif()
ipuscope_add_script(NAME failing_alloc LABELS golden release)
ipuscope_add_script(NAME endless_inputs LABELS golden release)
