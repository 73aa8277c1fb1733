ipuscope_add_script(NAME commands LABELS golden)
ipuscope_add_script(NAME completion_zsh LABELS golden)
ipuscope_add_test(NAME test_hostile_db SOURCES test_hostile_db.c LIBS reports profiler view_fixture LABELS unit)
ipuscope_add_script(NAME installed LABELS golden ARGS ${PROJECT_BINARY_DIR})
