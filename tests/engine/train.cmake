# Training: the model's parts, the reference trainer, and what its runs guarantee.
ablate_test(engine_train_test
  SOURCES
    samples_test.cc
    train_lanes_test.cc
    train_model_test.cc
    train_seeds_test.cc
    train_stack_test.cc
    train_trainer_test.cc
  LIBS ablate_engine
  TIMEOUT 300)
target_compile_definitions(engine_train_test PRIVATE
  ABLATE_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")

add_executable(trainer_vs_eager ../bench/trainer_vs_eager.cc)
target_include_directories(trainer_vs_eager PRIVATE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(trainer_vs_eager PRIVATE
  ABLATE_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")
target_link_libraries(trainer_vs_eager PRIVATE ablate_engine)
ablate_warnings(trainer_vs_eager)
set_target_properties(trainer_vs_eager PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
