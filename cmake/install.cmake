# What is installed beyond the programs: the libraries for recording, for tensors, for reports and for training,
# with their headers, for pkg-config and CMake; examples, documents and the scripts that fetch data sets.
#
# When the number in a library's soname (SOVERSION) is raised is written at the end of ipuscope/profiler.h.
# tests/golden/public_symbols.txt has the functions of each soname, and a test compares. The names of Debian's packages
# have the number, too.
include(CMakePackageConfigHelpers)

set(IPUSCOPE_LIBRARIES libipuscope libipuscope-outfeed libipuscope-report libipuscope-trainer)
foreach(library IN LISTS IPUSCOPE_LIBRARIES)
	get_target_property(number ${library} SOVERSION)
	install(TARGETS ${library} EXPORT ipuscopeTargets
		LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${library}${number}
		NAMELINK_COMPONENT libipuscope-dev)
endforeach()
install(FILES profiler/ipuscope/profiler.h profiler/ipuscope/profiler.hpp profiler/ipuscope/mpi.h outfeed/ipuscope/outfeed.h popvision/ipuscope/report.h trainer/ipuscope/trainer.h
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ipuscope COMPONENT libipuscope-dev)
# Where Debian's Python looks if the prefix is /usr; elsewhere PYTHONPATH names it. It finds the library from there.
install(FILES python/ipuscope.py DESTINATION lib/python3/dist-packages COMPONENT python3-ipuscope)
install(EXPORT ipuscopeTargets NAMESPACE ipuscope::
	DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ipuscope COMPONENT libipuscope-dev)

configure_package_config_file(cmake/ipuscopeConfig.cmake.in ${PROJECT_BINARY_DIR}/ipuscopeConfig.cmake
	INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ipuscope)
# Below 1.0 a minor version may change what headers declare.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ipuscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ipuscopeConfig.cmake ${PROJECT_BINARY_DIR}/ipuscopeConfigVersion.cmake
	DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ipuscope COMPONENT libipuscope-dev)

# Relative to the .pc file, so that `cmake --install --prefix` elsewhere works.
file(RELATIVE_PATH IPUSCOPE_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(IPUSCOPE_PC_PREFIX "\${pcfiledir}/${IPUSCOPE_PC_UP}")
foreach(name IN ITEMS ipuscope ipuscope-outfeed ipuscope-report ipuscope-trainer)
	configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libipuscope-dev)
endforeach()

# Laid out as the source is, so that the documents' links and the places they name hold. Programs look here for
# examples and scripts, from their own folder: in the build tree they find the source's.
set(IPUSCOPE_SHARED ${CMAKE_INSTALL_DATADIR}/ipuscope)
file(GLOB examples CONFIGURE_DEPENDS examples/*.json examples/*.c examples/*.cpp examples/*.py)
install(FILES ${examples} DESTINATION ${IPUSCOPE_SHARED}/examples)
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION ${IPUSCOPE_SHARED})
install(DIRECTORY docs DESTINATION ${IPUSCOPE_SHARED})
install(PROGRAMS script/get-mnist script/get-cifar10 DESTINATION ${IPUSCOPE_SHARED}/script)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${IPUSCOPE_SHARED})
foreach(name IN ITEMS examples script)
	file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${PROJECT_BINARY_DIR}/${IPUSCOPE_SHARED}/${name} SYMBOLIC)
endforeach()
