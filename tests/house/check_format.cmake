# Fail where a tracked source is not as .clang-format wants it.
#
#	cmake -D ROOT=<source tree> -P check_format.cmake
#
# Versions of clang-format differ in their results, so only the one that the sources were formatted
# with is asked.

cmake_policy(VERSION 3.25)

set(version 14)

function(skip why)
	message(NOTICE "skipped: ${why}")
endfunction()

find_program(formatter NAMES clang-format-${version} clang-format)
find_program(git git)
if(NOT formatter)
	skip("clang-format is absent")
	return()
endif()
if(NOT git)
	skip("git is absent, so the tracked files are not known")
	return()
endif()

execute_process(COMMAND ${formatter} --version OUTPUT_VARIABLE text)
if(NOT text MATCHES "version ${version}\\.")
	string(STRIP "${text}" text)
	skip("version ${version} is needed, this is: ${text}")
	return()
endif()

execute_process(COMMAND ${git} ls-files -- *.c *.h
	WORKING_DIRECTORY ${ROOT} RESULT_VARIABLE code OUTPUT_VARIABLE files ERROR_QUIET)
if(NOT code EQUAL 0 OR files STREQUAL "")
	skip("not a git work tree")
	return()
endif()

string(STRIP "${files}" files)
string(REPLACE "\n" ";" files "${files}")
set(present)
foreach(file IN LISTS files)
	# Deleted, but not yet committed.
	if(EXISTS ${ROOT}/${file})
		list(APPEND present ${file})
	endif()
endforeach()

execute_process(COMMAND ${formatter} --dry-run -Werror ${present}
	WORKING_DIRECTORY ${ROOT} RESULT_VARIABLE code ERROR_VARIABLE complaints)
if(NOT code EQUAL 0)
	string(REGEX MATCHALL "[^\n]*:[0-9]+: error: " places "${complaints}")
	list(TRANSFORM places REPLACE ":[0-9]+: error: $" "")
	# NOTICE, since errors are wrapped.
	list(JOIN places "\n" complaints)
	message(NOTICE "${complaints}")
	message(FATAL_ERROR "clang-format -i mends these")
endif()
