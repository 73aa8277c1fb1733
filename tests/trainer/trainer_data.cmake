# Tests of the data sets.
add_library(dataset_sample STATIC support/dataset_sample.c)
target_link_libraries(dataset_sample PUBLIC trainer_data test_support)
foreach(module IN ITEMS dataset dataset_cifar dataset_csv dataset_feed dataset_gather dataset_idx dataset_images dataset_imdb dataset_npz dataset_order dataset_pictures dataset_resize dataset_text
		 dataset_synthetic snapshot)
	ipuscope_add_test(NAME test_${module} SOURCES test_${module}.c LIBS dataset_sample LABELS unit trainer)
endforeach()
ipuscope_add_test(NAME test_npz_writer SOURCES test_npz_writer.c LIBS trainer_data common LABELS unit trainer)
