# Tests of callbacks, and of the trainer as a whole.
foreach(module IN ITEMS auto options)
	ipuscope_add_test(NAME test_train_${module} SOURCES test_train_${module}.c LIBS trainer LABELS unit trainer)
endforeach()
ipuscope_add_test(NAME test_callback SOURCES test_callback.c support/math.c LIBS trainer LABELS unit trainer)
ipuscope_add_test(NAME test_train_screen SOURCES test_train_screen.c support/math.c LIBS trainer m LABELS unit trainer)
ipuscope_add_test(NAME test_train_accumulate SOURCES test_train_accumulate.c LIBS trainer m LABELS unit trainer)
ipuscope_add_test(NAME test_train_order SOURCES test_train_order.c LIBS trainer LABELS unit trainer)
ipuscope_add_test(NAME test_train_replicas SOURCES test_train_replicas.c LIBS trainer dataset_sample LABELS unit trainer)
ipuscope_add_test(NAME test_train_tree SOURCES test_train_tree.c LIBS trainer LABELS unit trainer)
ipuscope_add_test(NAME test_train_values SOURCES test_train_values.c ${PROJECT_SOURCE_DIR}/trainer/train_public.c LIBS trainer m
	LABELS unit trainer)
# This runs the program.
ipuscope_add_test(NAME test_train_runs SOURCES test_train_runs.c support/prof_testing.c LIBS trainer PkgConfig::SQLITE LABELS unit trainer)
add_dependencies(tests_trainer ipu-train)

# The same bytes in many forms, and whole trainings, whose code other tests run under the sanitizers; of train_compare they run
# what is refused.
foreach(test IN ITEMS train_compare train_device train_examples train_identity train_identity_graph train_identity_layers train_identity_optimizer train_loss_scale train_confusion train_backup train_half train_outfeed_shapes train_watch
		train_partition train_regularized train_gpt train_sequences device_conservation train_health train_learns train_hosts train_ranks)
	ipuscope_add_script(NAME ${test} LABELS golden release)
endforeach()
foreach(test IN ITEMS
		train_options train_accumulate_outfeed train_callbacks train_images train_inputs train_masks train_outputs train_positions train_shared train_stateful train_text train_twin train_weights train_tutorial
		train_data train_infeed train_report train_memory
		train_errors train_keras_files train_supported train_full_disk train_interrupted train_killed train_watched)
	ipuscope_add_script(NAME ${test} LABELS golden)
endforeach()

# What failed with OpenBLAS's kernels of other processors when products were its own.
ipuscope_add_script(NAME train_outfeed_replicas LABELS golden processor)

# Under address space that ends: not with the sanitizers.
ipuscope_add_script(NAME train_address_space LABELS golden release)

# The digests that everyone's weights have, with each instruction set.
ipuscope_add_script(NAME train_digest LABELS golden release)
foreach(level IN ITEMS 0 1)
	if(TARGET trainer_kernels_level_${level})
		add_executable(ipu-train-level-${level} ${PROJECT_SOURCE_DIR}/trainer/main_train.c
			$<TARGET_OBJECTS:trainer_kernels_level_${level}>)
		target_link_libraries(ipu-train-level-${level} PRIVATE trainer ipuscope_options)
		set_target_properties(ipu-train-level-${level} PROPERTIES
			RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
	endif()
endforeach()

# train_examples has the same commands, with little data.
ipuscope_add_script(NAME train_seeds LABELS golden release)
# What ipu-plan model says is what the run records; and what was published.
foreach(test IN ITEMS plan_bert plan_model plan_scale fidelity)
	ipuscope_add_script(NAME ${test} LABELS golden release)
endforeach()

# A network with a delay, for train_hosts.sh.
add_executable(tun_delay support/tun_delay.c)
target_link_libraries(tun_delay PRIVATE ipuscope_options)
set_target_properties(tun_delay PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})

# Looks at every captured value, for train_health.sh.
add_executable(capture_scan support/capture_scan.c)
target_link_libraries(capture_scan PRIVATE PkgConfig::SQLITE m ipuscope_options)
set_target_properties(capture_scan PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
