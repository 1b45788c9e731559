# Training: the model's parts, the reference trainer, and what its runs guarantee.
ablate_test(engine_train_test
  SOURCES
    packed_batch_test.cc
    run_loop_test.cc
    samples_test.cc
    train_checks_test.cc
    train_device_test.cc
    train_dropout_test.cc
    train_gelu_test.cc
    train_head_loss_test.cc
    train_initial_values_test.cc
    train_lanes_test.cc
    train_model_test.cc
    train_norm_test.cc
    train_optimizer_test.cc
    train_resume_test.cc
    train_seeds_test.cc
    train_states_test.cc
    train_subnormals_test.cc
    train_threads_test.cc
    train_torch_backend_test.cc
    train_torch_memory_test.cc
    train_hooks_test.cc
    train_trainer_test.cc
    ${PROJECT_SOURCE_DIR}/tests/tokenizer/small_tokenizer.cc
    ${PROJECT_SOURCE_DIR}/server/config/estimate.cc  # its library has protobuf, which a process with LibTorch keeps apart
  LIBS ablate_engine
  TIMEOUT 300 SHARDS 4)
target_compile_definitions(engine_train_test PRIVATE
  ABLATE_DOCS="${PROJECT_SOURCE_DIR}/docs"
  ABLATE_EXAMPLES_DATA="${PROJECT_SOURCE_DIR}/examples/data")
# Two thirds of a file's compile time are LibTorch's headers. The other test programs of the engine use this one's.
target_precompile_headers(engine_train_test PRIVATE <ATen/ATen.h> <gmock/gmock.h>)
