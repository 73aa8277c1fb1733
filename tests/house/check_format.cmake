# Fail where a tracked source is not as the house writes it: comments and tests of pointers, which are
# looked for line by line, and the rest as .clang-format wants it.
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

find_program(git git)
if(NOT git)
	skip("git is absent, so the tracked files are not known")
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

# ---- lines -------------------------------------------------------------------------------------

set(wrong "")

# Complain of each line that git grep finds by the patterns.
function(refuse why)
	execute_process(COMMAND ${CMAKE_COMMAND} -E env LC_ALL=C ${git} grep -nE ${ARGN} -- *.c *.h
		WORKING_DIRECTORY ${ROOT} OUTPUT_VARIABLE lines)
	if(NOT lines STREQUAL "")
		set(wrong "${wrong}${why}:\n${lines}" PARENT_SCOPE)
	endif()
endfunction()

refuse("a rule is /* ---- what follows ---- */ on one line of 100 columns"
	-e "^[[:space:]]*(/\\*|//|\\*)[[:space:]]*(-|=|\\*){3,}" --and --not
	"(" -e "^/\\* ---- [^-].* -{4,} \\*/$" --and -e "^.{100}$" ")")
refuse("a line of a comment that its formatter has broken" -e "^ \\*[^ /[:space:]]")
refuse("a line of a comment beyond 100 columns" -e "^ \\* .{98,}$" -e "^/\\* .{98,}$")
refuse("!pointer tests for NULL" -e "== NULL")
refuse("a pointer tests for what is not NULL"
	-e "(&&|\\|\\|) [^,&|]* != NULL" -e " != NULL( &&| \\|\\|| [?])" -e "(if|while) \\([^()]* != NULL\\)")

foreach(file IN LISTS present)
	file(READ ${ROOT}/${file} top LIMIT 4)
	if(NOT top MATCHES "^/[*]")
		string(APPEND wrong "a file begins with a comment that says what it is: ${file}\n")
	endif()
endforeach()

if(NOT wrong STREQUAL "")
	# NOTICE, since errors are wrapped.
	message(NOTICE "${wrong}")
	message(FATAL_ERROR "comments and tests of pointers are not as the house writes them")
endif()

# ---- format ------------------------------------------------------------------------------------

find_program(formatter NAMES clang-format-${version} clang-format)
if(NOT formatter)
	skip("clang-format is absent")
	return()
endif()

execute_process(COMMAND ${formatter} --version OUTPUT_VARIABLE text)
if(NOT text MATCHES "version ${version}\\.")
	string(STRIP "${text}" text)
	skip("version ${version} is needed, this is: ${text}")
	return()
endif()

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
