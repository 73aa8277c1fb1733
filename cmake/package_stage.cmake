# Run by cpack between installing and packing: what Debian wants otherwise than other places.
file(GLOB stages LIST_DIRECTORIES true ${CPACK_TEMPORARY_DIRECTORY}/*)
foreach(stage IN LISTS stages)
	get_filename_component(package ${stage} NAME)
	set(doc ${stage}/usr/share/doc/${package})

	# The licence and both changelogs in each package.
	file(MAKE_DIRECTORY ${doc})
	configure_file(${CPACK_IPUSCOPE_SOURCE_DIR}/LICENSE ${doc}/copyright COPYONLY)
	configure_file(${CPACK_IPUSCOPE_SOURCE_DIR}/CHANGELOG.md ${doc}/changelog COPYONLY)
	configure_file(${CPACK_IPUSCOPE_SOURCE_DIR}/cmake/debian/changelog ${doc}/changelog.Debian COPYONLY)
	file(GLOB pages ${stage}/usr/share/man/man1/*.1)
	execute_process(COMMAND gzip -9n ${doc}/changelog ${doc}/changelog.Debian ${pages} COMMAND_ERROR_IS_FATAL ANY)

	# Who looks for documents of a package finds what programs and documents find in their own place.
	foreach(name IN ITEMS README.md docs examples)
		if(EXISTS ${stage}/usr/share/ipuscope/${name})
			file(CREATE_LINK ../../ipuscope/${name} ${doc}/${name} SYMBOLIC)
		endif()
	endforeach()

	# Its zsh looks elsewhere for what packages bring.
	if(EXISTS ${stage}/usr/share/zsh/site-functions)
		file(RENAME ${stage}/usr/share/zsh/site-functions ${stage}/usr/share/zsh/vendor-completions)
	endif()

	# Libraries are where the linker looks.
	file(GLOB_RECURSE libraries ${stage}/usr/lib/*.so.${CPACK_PACKAGE_VERSION})
	foreach(library IN LISTS libraries)
		file(RPATH_REMOVE FILE ${library})
	endforeach()
endforeach()
