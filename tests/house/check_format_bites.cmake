# Show that check_format.cmake can fail: each bad text, in a tree of its own, must be named.
#
#	cmake -D WORK=<scratch folder> -P check_format_bites.cmake

cmake_policy(VERSION 3.25)

find_program(git git)
if(NOT git)
	message(NOTICE "skipped: git is absent")
	return()
endif()

set(good "/*\n * A file.\n */\nint add(int a, int b);\n")
string(REPEAT "-" 82 dashes)
set(rule "/* ---- asking ${dashes} */\n")

function(check_tree text result output)
	file(REMOVE_RECURSE ${WORK})
	file(WRITE ${WORK}/x.h "${text}")
	file(COPY ${CMAKE_CURRENT_LIST_DIR}/../../.clang-format DESTINATION ${WORK})
	execute_process(COMMAND ${git} init -q WORKING_DIRECTORY ${WORK})
	execute_process(COMMAND ${git} add x.h WORKING_DIRECTORY ${WORK})
	execute_process(COMMAND ${CMAKE_COMMAND} -D ROOT=${WORK} -P ${CMAKE_CURRENT_LIST_DIR}/check_format.cmake
		RESULT_VARIABLE code OUTPUT_VARIABLE out ERROR_VARIABLE err)
	set(${result} ${code} PARENT_SCOPE)
	set(${output} "${out}${err}" PARENT_SCOPE)
endfunction()

function(expect_complaint text complaint)
	check_tree("${text}" code out)
	string(FIND "${out}" "${complaint}" at)
	if(code EQUAL 0 OR at EQUAL -1)
		message(SEND_ERROR "${text} is not refused by \"${complaint}\":\n${out}")
	endif()
endfunction()

check_tree("${good}\n${rule}" code out)
if(NOT code EQUAL 0)
	message(FATAL_ERROR "the good file is refused:\n${out}")
endif()

string(REPEAT "a" 98 long)
expect_complaint("int add(int a, int b);\n" "a file begins with a comment that says what it is: x.h")
expect_complaint("${good}\n/* ---- asking ---- */\n" "a rule is /* ---- what follows ---- */ on one line")
expect_complaint("${good}\n/* --- asking -${dashes} */\n" "a rule is /* ---- what follows ---- */ on one line")
expect_complaint("${good}\n/* ---- asking -${dashes}-----\n */\n" "a rule is /* ---- what follows ---- */ on one line")
expect_complaint("/*\n * A file that\n *nobody reads.\n */\n" "x.h:3: *nobody reads.")
expect_complaint("/*\n * ${long}\n */\n" "a line of a comment beyond 100 columns")
expect_complaint("${good}#define NONE(p) ((p) == NULL)\n" "!pointer tests for NULL")
expect_complaint("${good}#define TWO(p, q) ((p) && (q) != NULL)\n" "a pointer tests for what is not NULL")
expect_complaint("${good}#define ONE(p) while (p != NULL)\n" "a pointer tests for what is not NULL")
