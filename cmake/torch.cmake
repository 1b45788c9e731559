# LibTorch from the torch wheel: its libraries are linked directly. The wheel's own TorchConfig.cmake is not asked, for it demands
# a CUDA toolkit where the wheel is the CUDA build, and its folders, put into CMAKE_PREFIX_PATH, would bring an old protobuf.
set(ABLATE_VENV "${PROJECT_SOURCE_DIR}/build/venv" CACHE PATH "Python environment that holds the torch wheel")
option(ABLATE_CUDA "Link the CUDA libraries of the wheel, too: for a box with an NVIDIA device" OFF)
if(NOT Torch_DIR)
  file(GLOB ablate_torch_candidates "${ABLATE_VENV}/lib/python3*/site-packages/torch/share/cmake/Torch")
  if(NOT ablate_torch_candidates)
    message(FATAL_ERROR "No torch wheel in ${ABLATE_VENV}: run deploy/setup.sh, or give Torch_DIR (share/cmake/Torch of a wheel)")
  endif()
  list(GET ablate_torch_candidates 0 ablate_torch_dir)
  set(Torch_DIR "${ablate_torch_dir}" CACHE PATH "torch/share/cmake/Torch of the wheel")
endif()
get_filename_component(ABLATE_TORCH_ROOT "${Torch_DIR}/../../.." ABSOLUTE)
set(ABLATE_TORCH_LIB "${ABLATE_TORCH_ROOT}/lib")
foreach(library torch_cpu c10)
  if(NOT EXISTS "${ABLATE_TORCH_LIB}/lib${library}.so")
    message(FATAL_ERROR "Torch_DIR is ${Torch_DIR}, but there is no ${ABLATE_TORCH_LIB}/lib${library}.so")
  endif()
endforeach()

# The wheel's headers are system headers to us. Its libraries name others (CUDA's runtime, say) that the loader finds beside them
# and the linker need not.
add_library(ablate_torch INTERFACE)
target_include_directories(ablate_torch SYSTEM INTERFACE
  "${ABLATE_TORCH_ROOT}/include" "${ABLATE_TORCH_ROOT}/include/torch/csrc/api/include")
target_link_libraries(ablate_torch INTERFACE "${ABLATE_TORCH_LIB}/libtorch_cpu.so" "${ABLATE_TORCH_LIB}/libc10.so")
target_link_options(ablate_torch INTERFACE "LINKER:--unresolved-symbols=ignore-in-shared-libs")
if(ABLATE_CUDA)
  # No symbol of these is ours to name: loading them registers the device.
  target_link_libraries(ablate_torch INTERFACE "-Wl,--no-as-needed" "${ABLATE_TORCH_LIB}/libtorch_cuda.so"
                        "${ABLATE_TORCH_LIB}/libc10_cuda.so" "-Wl,--as-needed")
endif()
