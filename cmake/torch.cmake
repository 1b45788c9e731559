# LibTorch from the torch wheel, found by Torch_DIR and never by CMAKE_PREFIX_PATH: the wheel carries an old
# protobuf of its own that FindProtobuf would take.
set(ABLATE_VENV "${PROJECT_SOURCE_DIR}/build/venv" CACHE PATH "Python environment that holds the torch wheel")
if(NOT Torch_DIR)
  file(GLOB ablate_torch_candidates "${ABLATE_VENV}/lib/python3*/site-packages/torch/share/cmake/Torch")
  list(GET ablate_torch_candidates 0 ablate_torch_dir)
  set(Torch_DIR "${ablate_torch_dir}" CACHE PATH "torch/share/cmake/Torch of the wheel")
endif()
find_package(Torch REQUIRED)

# Torch's interface target carries include folders and flags that are ours to treat as system headers.
add_library(ablate_torch INTERFACE)
target_include_directories(ablate_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
target_link_libraries(ablate_torch INTERFACE ${TORCH_LIBRARIES})
