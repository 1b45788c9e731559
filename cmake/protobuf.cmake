# Protobuf, gRPC and one library with all generated code.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)

set(ABLATE_VENV "${PROJECT_SOURCE_DIR}/build/venv" CACHE PATH "Python environment that holds googleapis-common-protos")
if(NOT ABLATE_GOOGLEAPIS)
  file(GLOB ablate_googleapis_candidates "${ABLATE_VENV}/lib/python3*/site-packages/google/rpc/status.proto")
  list(GET ablate_googleapis_candidates 0 ablate_googleapis_status)
  cmake_path(GET ablate_googleapis_status PARENT_PATH ablate_googleapis_rpc)
  cmake_path(GET ablate_googleapis_rpc PARENT_PATH ablate_googleapis_google)
  cmake_path(GET ablate_googleapis_google PARENT_PATH ablate_googleapis_root)
  set(ABLATE_GOOGLEAPIS "${ablate_googleapis_root}" CACHE PATH "Folder with google/rpc/*.proto")
endif()
