# LibTorch from the torch wheel: its libraries are linked directly. The wheel's own TorchConfig.cmake is not asked, for it demands
# a CUDA toolkit where the wheel is the CUDA build, and its folders, put into CMAKE_PREFIX_PATH, would bring an old protobuf.
set(ABLATE_VENV "${PROJECT_SOURCE_DIR}/build/venv" CACHE PATH "Python environment that holds the torch wheel")
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

# The libraries and headers of CUDA, for the plugin of NVIDIA devices alone. PyPI's wheel is the CUDA build; the headers that it
# lacks are in small wheels of NVIDIA's, which deploy/setup.sh installs beside it.
file(GLOB ablate_cuda_include "${ABLATE_TORCH_ROOT}/../nvidia/cu1*/include")
file(GLOB ablate_cuda_runtime "${ABLATE_TORCH_ROOT}/../nvidia/cu1*/lib/libcudart.so.1*")
if(EXISTS "${ABLATE_TORCH_LIB}/libtorch_cuda.so" AND EXISTS "${ablate_cuda_include}/crt" AND EXISTS "${ablate_cuda_include}/cccl" AND ablate_cuda_runtime)
  set(ABLATE_CUDA ON)
  add_library(ablate_torch_cuda INTERFACE)
  target_include_directories(ablate_torch_cuda SYSTEM INTERFACE "${ablate_cuda_include}" "${ablate_cuda_include}/cccl")
  target_link_libraries(ablate_torch_cuda INTERFACE ablate_torch "${ABLATE_TORCH_LIB}/libtorch_cuda.so"
                        "${ABLATE_TORCH_LIB}/libc10_cuda.so" "${ablate_cuda_runtime}")
else()
  set(ABLATE_CUDA OFF)
endif()
