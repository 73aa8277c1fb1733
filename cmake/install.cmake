# What is installed beyond the programs: the libraries for recording, for tensors, for reports and for training,
# with their headers, for pkg-config and CMake.
# `cmake --install BUILD --component library` installs it alone.
include(CMakePackageConfigHelpers)

install(TARGETS libipuscope libipuscope-outfeed libipuscope-report libipuscope-trainer EXPORT ipuscopeTargets
	LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library NAMELINK_COMPONENT library)
install(FILES profiler/ipuscope/profiler.h outfeed/ipuscope/outfeed.h reports/ipuscope/report.h trainer/ipuscope/trainer.h
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/ipuscope COMPONENT library)
install(EXPORT ipuscopeTargets NAMESPACE ipuscope::
	DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ipuscope COMPONENT library)

configure_package_config_file(cmake/ipuscopeConfig.cmake.in ${PROJECT_BINARY_DIR}/ipuscopeConfig.cmake
	INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ipuscope)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/ipuscopeConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/ipuscopeConfig.cmake ${PROJECT_BINARY_DIR}/ipuscopeConfigVersion.cmake
	DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/ipuscope COMPONENT library)

# Relative to the .pc file, so that `cmake --install --prefix` elsewhere works.
file(RELATIVE_PATH IPUSCOPE_PC_UP /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
set(IPUSCOPE_PC_PREFIX "\${pcfiledir}/${IPUSCOPE_PC_UP}")
foreach(name IN ITEMS ipuscope ipuscope-outfeed ipuscope-report ipuscope-trainer)
	configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
	install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
endforeach()

# Laid out as the source is, so that the documents' links and the places they name hold. Programs look here for
# examples and scripts, from their own folder: in the build tree they find the source's.
set(IPUSCOPE_SHARED ${CMAKE_INSTALL_DATADIR}/ipuscope)
file(GLOB examples CONFIGURE_DEPENDS examples/*.json examples/*.c examples/*.cpp)
install(FILES ${examples} DESTINATION ${IPUSCOPE_SHARED}/examples)
install(FILES README.md LICENSE DESTINATION ${IPUSCOPE_SHARED})
install(DIRECTORY docs DESTINATION ${IPUSCOPE_SHARED})
install(PROGRAMS script/get-mnist script/get-cifar10 DESTINATION ${IPUSCOPE_SHARED}/script)
file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/${IPUSCOPE_SHARED})
foreach(name IN ITEMS examples script)
	file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${name} ${PROJECT_BINARY_DIR}/${IPUSCOPE_SHARED}/${name} SYMBOLIC)
endforeach()
