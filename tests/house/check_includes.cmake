# Fail where a room includes what it may not, where two files share a name, or where a header of one processor's
# instructions is included on every processor.
#
#	cmake -D ROOT=<source tree> -P check_includes.cmake
#
# Rooms include "room/file.h", public headers are <ipuscope/file.h>. Tests and benchmarks look
# anywhere; only the uniqueness of names and the processors concern them.

cmake_policy(VERSION 3.25)

set(rooms common ipu model profiler outfeed popvision reports trainer viewer examples)

# What a room may include beside its own files.
set(allowed_common)
set(allowed_ipu common)
set(allowed_profiler common)
set(allowed_outfeed profiler common)
set(allowed_model ipu common)
set(allowed_popvision profiler_read common)
set(allowed_reports profiler_read popvision model ipu outfeed common)
set(allowed_trainer model ipu outfeed popvision profiler common)
set(allowed_viewer reports profiler_read common)
set(allowed_examples ipuscope)

# The read side of the profiler, and what of it one room alone may have.
set(profiler_read prof_announce.h prof_db.h prof_guard.h prof_process.h prof_timeline.h ipuscope/profiler.h)
set(profiler_read_more_reports prof_merge.h prof_repair.h)

set(failures 0)

function(complain text)
	message(NOTICE "${text}")
	math(EXPR failures "${failures} + 1")
	set(failures ${failures} PARENT_SCOPE)
endfunction()

# May @room include the file @path (below its room's folder) of the room @other? Sets @out.
function(is_allowed room other path out)
	set(${out} FALSE PARENT_SCOPE)
	if(room STREQUAL other)
		set(${out} TRUE PARENT_SCOPE)
	elseif(path MATCHES "_internal\\.h$")
		return()
	elseif(other IN_LIST allowed_${room})
		set(${out} TRUE PARENT_SCOPE)
	elseif(other STREQUAL "profiler" AND "profiler_read" IN_LIST allowed_${room} AND
			(path IN_LIST profiler_read OR path IN_LIST profiler_read_more_${room}))
		set(${out} TRUE PARENT_SCOPE)
	endif()
endfunction()

# Which room does the include @path of a file of @room belong to? Sets @other ("" for system and
# generated headers) and @rest, the path below that room.
function(find_room path quoted other rest)
	set(${other} "" PARENT_SCOPE)
	set(${rest} "${path}" PARENT_SCOPE)
	if(path MATCHES "^([a-z]+)/(.*)$")
		if(CMAKE_MATCH_1 STREQUAL "ipuscope" OR CMAKE_MATCH_1 IN_LIST rooms)
			set(${other} "${CMAKE_MATCH_1}" PARENT_SCOPE)
			set(${rest} "${CMAKE_MATCH_2}" PARENT_SCOPE)
		endif()
	elseif(quoted AND DEFINED room_of_${path})
		# A bare name is a path too: names are unique in the tree.
		set(${other} "${room_of_${path}}" PARENT_SCOPE)
	endif()
endfunction()

function(check_include room file line)
	string(REGEX MATCH "[<\"]([^>\"]+)[>\"]" found "${line}")
	if(NOT found)
		return()
	endif()
	set(path "${CMAKE_MATCH_1}")
	string(FIND "${found}" "\"" quote)
	set(quoted TRUE)
	if(quote EQUAL -1)
		set(quoted FALSE)
	endif()

	if(path MATCHES "(^|/)\\.\\.(/|$)")
		complain("${file}: includes \"${path}\": a path with .. hides the room")
		set(failures ${failures} PARENT_SCOPE)
		return()
	endif()

	find_room("${path}" ${quoted} other rest)
	if(other STREQUAL "")
		return()
	endif()
	if(other STREQUAL "ipuscope" AND NOT room STREQUAL "examples")
		# A public header is its room's; the profiler's where no room has it.
		set(rest "ipuscope/${rest}")
		set(other profiler)
		foreach(owner IN LISTS rooms)
			if(EXISTS ${ROOT}/${owner}/${rest})
				set(other ${owner})
			endif()
		endforeach()
	endif()
	is_allowed(${room} ${other} "${rest}" good)
	if(room STREQUAL "examples" AND quoted)
		set(good FALSE)
	endif()
	if(NOT good)
		complain("${file}: ${room} may not include ${path}")
		set(failures ${failures} PARENT_SCOPE)
	endif()
endfunction()

# --- names ---------------------------------------------------------------------------------------

set(sources)
foreach(folder IN LISTS rooms ITEMS tests bench)
	file(GLOB_RECURSE found RELATIVE ${ROOT} ${ROOT}/${folder}/*.c ${ROOT}/${folder}/*.h)
	list(APPEND sources ${found})
endforeach()
list(LENGTH sources count)
if(count EQUAL 0)
	message(FATAL_ERROR "${ROOT}: no sources found")
endif()

foreach(file IN LISTS sources)
	get_filename_component(name ${file} NAME)
	string(REGEX MATCH "^[a-z]+" room ${file})
	if(file MATCHES "^[a-z]+/ipuscope/")
		# A public header is included by its folder's name: another file may be called so.
		continue()
	endif()
	if(DEFINED file_of_${name})
		complain("${file}: the name is taken by ${file_of_${name}}")
	endif()
	set(file_of_${name} ${file})
	set(room_of_${name} ${room})
endforeach()

# --- includes ------------------------------------------------------------------------------------

foreach(file IN LISTS sources)
	string(REGEX MATCH "^[a-z]+" room ${file})
	if(NOT room IN_LIST rooms)
		continue()
	endif()
	file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*include[ \t]*[<\"]")
	foreach(line IN LISTS lines)
		check_include(${room} ${file} "${line}")
	endforeach()
endforeach()

# --- processors ----------------------------------------------------------------------------------

foreach(file IN LISTS sources)
	file(STRINGS ${ROOT}/${file} lines REGEX "^[ \t]*#[ \t]*(if|endif|include[ \t]*<.*(intrin|arm_neon)\\.h>)")
	if(NOT lines MATCHES "include")
		continue()
	endif()
	set(depth 0)
	set(asked 0) # how deep the condition lies that names a processor
	foreach(line IN LISTS lines)
		if(line MATCHES "#[ \t]*include")
			if(asked EQUAL 0)
				complain("${file}: ${line} outside of any #if that names a processor")
			endif()
		elseif(line MATCHES "#[ \t]*if")
			math(EXPR depth "${depth} + 1")
			if(asked EQUAL 0 AND line MATCHES "__(x86_64|i386|aarch64|SSE|AVX|ARM_)")
				set(asked ${depth})
			endif()
		else()
			if(asked EQUAL depth)
				set(asked 0)
			endif()
			math(EXPR depth "${depth} - 1")
		endif()
	endforeach()
endforeach()

if(failures GREATER 0)
	message(FATAL_ERROR "${failures} broken rules in ${count} files")
endif()
message(NOTICE "${count} files keep the rules")
