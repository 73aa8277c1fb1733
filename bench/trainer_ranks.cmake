# Sums over ranks beside MPI_Allreduce, which Open MPI's launcher starts: bench_ranks.sh.
if(OPENMPI_FOUND)
	add_executable(bench_allreduce ${CMAKE_CURRENT_LIST_DIR}/bench_allreduce.c ${PROJECT_SOURCE_DIR}/trainer/train_stop.c)
	target_link_libraries(bench_allreduce PRIVATE trainer_ranks trainer_kernels common ipuscope_options PkgConfig::OPENMPI)
endif()
