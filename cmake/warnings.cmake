# One INTERFACE target carries the language level, the warnings and the sanitizers of every target.
add_library(ipuscope_options INTERFACE)
target_compile_definitions(ipuscope_options INTERFACE _GNU_SOURCE)
target_include_directories(ipuscope_options INTERFACE ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/generated)
target_compile_options(ipuscope_options INTERFACE
	-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wundef -Wvla -Wformat=2
	$<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes -Wmissing-prototypes>
	# Sums keep the order they are written in: same seed, same bytes.
	-ffp-contract=off -fno-math-errno
	$<$<BOOL:${IPUSCOPE_WERROR}>:-Werror>)
if(IPUSCOPE_SANITIZE)
	target_compile_options(ipuscope_options INTERFACE
		-fsanitize=${IPUSCOPE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
	target_link_options(ipuscope_options INTERFACE -fsanitize=${IPUSCOPE_SANITIZE})
	# With -O1 alone GCC leaves the upper halves of vector registers as they are where a kernel ends: from then on a loop
	# with calls of fmaf() takes up to 50 times as long.
	target_compile_options(ipuscope_options INTERFACE $<$<C_COMPILER_ID:GNU>:-fexpensive-optimizations>)
endif()
# The fuzzer looks for inputs that reach new code, in every room.
if(IPUSCOPE_FUZZ)
	target_compile_options(ipuscope_options INTERFACE -fsanitize=fuzzer-no-link)
endif()
if(IPUSCOPE_SANITIZE_LEAN AND CMAKE_C_COMPILER_ID STREQUAL GNU)
	target_compile_options(ipuscope_options INTERFACE -fsanitize-undefined-trap-on-error --param=asan-globals=0)
	target_link_options(ipuscope_options INTERFACE -fsanitize-undefined-trap-on-error)
endif()
if(IPUSCOPE_SANITIZE MATCHES address)
	# Each global has a descriptor with addresses in it: at a fixed place none is relocated when a program starts.
	target_link_options(ipuscope_options INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
endif()

# ipuscope_room(NAME SOURCES ... LIBS ...): the static library of one folder.
function(ipuscope_room name)
	cmake_parse_arguments(ROOM "" "" "SOURCES;LIBS" ${ARGN})
	add_library(${name} STATIC ${ROOM_SOURCES})
	target_link_libraries(${name} PUBLIC ${ROOM_LIBS} ipuscope_options)
	# Rooms that compute little are not optimized, and those that compute no kernels are but for what takes GCC long:
	# their compilation would take longer than the tests gain.
	if(IPUSCOPE_SANITIZE_LEAN AND name MATCHES "^(model|popvision|trainer)$")
		target_compile_options(${name} PRIVATE -O0)
	elseif(IPUSCOPE_SANITIZE_LEAN AND NOT name MATCHES "^(ipu|outfeed|trainer_kernels)$")
		target_compile_options(${name} PRIVATE -Og)
	endif()
endfunction()

# ipuscope_embed(FILE HEADER TARGET): the bytes of FILE as the generated HEADER, for an array's body.
function(ipuscope_embed file header target)
	set(output ${PROJECT_BINARY_DIR}/generated/${header})
	add_custom_command(OUTPUT ${output}
		COMMAND ${CMAKE_COMMAND} -DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${file} -DOUTPUT=${output}
			-P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
		DEPENDS ${file} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
	add_custom_target(${target} DEPENDS ${output})
endfunction()

# ipuscope_program(NAME SOURCES ... LIBS ...): a command that is installed, with the man page and the shell
# completions that it prints of itself; its verbs (`NAME VERB ...`) have man pages of their own.
function(ipuscope_program name)
	cmake_parse_arguments(PROGRAM "" "" "SOURCES;LIBS;VERBS" ${ARGN})
	add_executable(${name} ${PROGRAM_SOURCES})
	target_link_libraries(${name} PRIVATE ${PROGRAM_LIBS} ipuscope_options)
	install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

	set(pages ${PROJECT_BINARY_DIR}/pages)
	# Leaks are the tests' to find, which know those of other people's libraries (tests/support/leaks.txt).
	set(run ${CMAKE_COMMAND} -E env ASAN_OPTIONS=detect_leaks=0 ${CMAKE_CROSSCOMPILING_EMULATOR} $<TARGET_FILE:${name}>)
	file(MAKE_DIRECTORY ${pages}/bash ${pages}/zsh)
	add_custom_command(TARGET ${name} POST_BUILD
		COMMAND ${run} --man > ${pages}/${name}.1
		COMMAND ${run} --completion bash > ${pages}/bash/${name}
		COMMAND ${run} --completion zsh > ${pages}/zsh/_${name})
	install(FILES ${pages}/${name}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	foreach(verb IN LISTS PROGRAM_VERBS)
		add_custom_command(TARGET ${name} POST_BUILD
			COMMAND ${run} ${verb} --man > ${pages}/${name}-${verb}.1)
		install(FILES ${pages}/${name}-${verb}.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
	endforeach()
	install(FILES ${pages}/bash/${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
	install(FILES ${pages}/zsh/_${name} DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
endfunction()
