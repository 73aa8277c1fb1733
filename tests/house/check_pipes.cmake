# Fail where a script reads the end of a pipe with grep -q.
#
#	cmake -D ROOT=<source tree> -P check_pipes.cmake
#
# It stops at the first match, and what still writes then dies of SIGPIPE, by which pipefail makes a failure
# of a success, now and then. grep PATTERN >/dev/null reads to the end.

cmake_policy(VERSION 3.25)

file(GLOB scripts ${ROOT}/tests/*/*.sh ${ROOT}/bench/*.sh ${ROOT}/script/* ${ROOT}/.ci/*)
set(found "")
foreach(script IN LISTS scripts)
	file(STRINGS ${script} lines REGEX "[^|][|] *(LC_ALL=C +)?grep( +-[-a-zA-Z0-9]+)* +-[a-zA-Z]*q")
	foreach(line IN LISTS lines)
		string(APPEND found "${script}: ${line}\n")
	endforeach()
endforeach()
if(found)
	message(NOTICE "${found}")
	message(FATAL_ERROR "grep PATTERN >/dev/null in place of grep -q mends these")
endif()
