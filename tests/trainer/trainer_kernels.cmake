# Tests of the trainer's kernels.
foreach(module IN ITEMS kernel_activation kernel_conv kernel_dropout kernel_half kernel_norm kernel_pool kernel_softmax kernel_vector
		kernel_watch)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c support/math.c
		LIBS trainer_models PkgConfig::XXHASH LABELS unit trainer)
endforeach()
ipuscope_add_test(NAME test_kernel_gemm SOURCES test_kernel_gemm.c support/math.c
	LIBS trainer_models LABELS unit trainer processor)
ipuscope_add_test(NAME test_kernel_pad SOURCES test_kernel_pad.c support/math.c
	LIBS trainer_models LABELS unit trainer)

# Programs with sanitizers have the tiles of products and convolutions as released (trainer/kernels/CMakeLists.txt). The
# unit tests of kernels, and of the layers and models that call them, have the same sources with the checks.
if(IPUSCOPE_SANITIZE MATCHES address)
	get_target_property(tiles trainer_kernels IPUSCOPE_TILES)
	list(TRANSFORM tiles PREPEND ${PROJECT_SOURCE_DIR}/trainer/kernels/)
	# They run for shorter than an optimising compiler takes for them.
	add_library(kernel_tiles_checked OBJECT ${tiles})
	target_compile_options(kernel_tiles_checked PRIVATE -fno-trapping-math -Wno-psabi -O0)
	target_link_libraries(kernel_tiles_checked PRIVATE trainer_kernels)
	target_sources(tests_trainer_kernels PRIVATE $<TARGET_OBJECTS:kernel_tiles_checked>)
endif()
