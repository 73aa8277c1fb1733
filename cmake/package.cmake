# `cpack -G DEB`: packages for Debian and Ubuntu: the tools (ipuscope), a package for each library, called after its
# soname, so that a program that records takes no OpenBLAS with it (libipuscope0, libipuscope-outfeed0, ...), and what
# programs are built with (libipuscope-dev). The preset `package` makes them as Debian does: its folders for libraries,
# its hardening. tests/soak/package.sh installs, uses and removes them in a fresh Debian.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME ipuscope)
# Each package has a summary of its own.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")
set(CPACK_PACKAGE_VENDOR "The ipuscope authors")
set(CPACK_PACKAGE_CONTACT "The ipuscope authors <maintainers@users.noreply.a-seed-d397bb4d.example>")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
	OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

# The packages' version is what their changelog begins with.
file(STRINGS cmake/debian/changelog first LIMIT_COUNT 1)
if(NOT first MATCHES "^ipuscope \\((${PROJECT_VERSION})-([0-9]+)\\)")
	message(FATAL_ERROR "cmake/debian/changelog does not begin with version ${PROJECT_VERSION}: ${first}")
endif()
set(CPACK_DEBIAN_PACKAGE_RELEASE ${CMAKE_MATCH_2})
set(version ${PROJECT_VERSION}-${CMAKE_MATCH_2})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE xz)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS_POLICY ">=")
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_stage.cmake)
# What that script is told.
set(CPACK_IPUSCOPE_SOURCE_DIR ${PROJECT_SOURCE_DIR})

# ipuscope_package(NAME SECTION SUMMARY TEXT [DEPENDS ...]): the component NAME as a package.
set(CPACK_COMPONENTS_ALL "")
function(ipuscope_package name section summary text)
	cmake_parse_arguments(PACKAGE "" "" "DEPENDS" ${ARGN})
	string(TOUPPER ${name} upper)
	list(JOIN PACKAGE_DEPENDS ", " depends)
	set(CPACK_COMPONENTS_ALL ${CPACK_COMPONENTS_ALL} ${name} PARENT_SCOPE)
	set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${name} PARENT_SCOPE)
	set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section} PARENT_SCOPE)
	set(CPACK_DEBIAN_${upper}_PACKAGE_DEPENDS "${depends}" PARENT_SCOPE)
	set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${text}" PARENT_SCOPE)
endfunction()

ipuscope_package(ipuscope science "profiler and tensor inspection around a simulated IPU"
	"Trains Keras-style models on the CPU while it plays a Graphcore IPU system,
and records the device timeline, activations and gradients into one SQLite
file per run: to look at in a terminal viewer, as reports, or with sqlite3.
.
This package has the commands ipu-train, ipu-run, ipu-view, ipu-report,
ipu-plan and ipu-monitor, examples, documents, and scripts that fetch data
sets.")
set(recommends "curl | wget")
# libhdf5 is loaded only for the files that need it, so no program says that it is linked with it.
if(HDF5_FOUND)
	execute_process(COMMAND dpkg-query -S ${HDF5_REAL_PATH} OUTPUT_VARIABLE hdf5_package)
	string(REGEX REPLACE ":.*" "" hdf5_package "${hdf5_package}")
	string(APPEND recommends ", ${hdf5_package}")
endif()
set(CPACK_DEBIAN_IPUSCOPE_PACKAGE_RECOMMENDS "${recommends}")
set(CPACK_DEBIAN_IPUSCOPE_PACKAGE_SUGGESTS "sqlite3, libopenblas0")

set(dev_depends "")
foreach(library IN LISTS IPUSCOPE_LIBRARIES)
	get_target_property(number ${library} SOVERSION)
	get_target_property(links ${library} INTERFACE_LINK_LIBRARIES)
	set(depends "")
	if("libipuscope" IN_LIST links)
		get_target_property(first libipuscope SOVERSION)
		set(depends "libipuscope${first} (= ${version})")
	endif()
	set(summary_libipuscope "recording of what a program does into one SQLite file")
	set(summary_libipuscope-outfeed "statistics and health rules of a program's tensors")
	set(summary_libipuscope-report "reading of what a run recorded")
	set(summary_libipuscope-trainer "training of a run file from a program")
	ipuscope_package(${library}${number} libs "${summary_${library}}"
		"A library of ipuscope, the profiling and tensor inspection toolkit around a
simulated Graphcore IPU system; programs that use it need this package."
		DEPENDS ${depends})
	string(TOUPPER ${library}${number} upper)
	set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
	get_target_property(folder ${library} BINARY_DIR)
	list(APPEND CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${folder})
	list(APPEND dev_depends "${library}${number} (= ${version})")
endforeach()
ipuscope_package(libipuscope-dev libdevel "recording, inspection, reports and training: development files"
	"Headers, and files for pkg-config and CMake, of ipuscope's libraries: recording
what a program does, looking at its tensors, walking a report, and training a
run file with callbacks."
	DEPENDS ${dev_depends})
get_target_property(number libipuscope-outfeed SOVERSION)
ipuscope_package(python3-ipuscope python "recording of what a Python program does, and of its tensors"
	"A module of Python that records spans and tensors of numpy and PyTorch into a
file of ipuscope: statistics, health rules, the first number that is none."
	DEPENDS "libipuscope-outfeed${number} (= ${version})" "python3:any")
set(CPACK_DEBIAN_PYTHON3-IPUSCOPE_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON3-IPUSCOPE_PACKAGE_ARCHITECTURE all)
foreach(implementation IN ITEMS openmpi mpich)
	if(TARGET ranks-${implementation})
		ipuscope_package(ipuscope-${implementation} science "training on several processes: ${implementation}"
			"What ipu-train exchanges gradients with where mpirun or srun has started
several of it, and a library that, preloaded, records any program's calls of
MPI."
			DEPENDS "ipuscope (= ${version})")
		string(TOUPPER ipuscope-${implementation} upper)
		set(CPACK_DEBIAN_${upper}_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/cmake/debian/triggers)
	endif()
endforeach()
include(CPack)
