# One test program per folder or topic; every TEST in it becomes a ctest entry of its own. Entries whose names begin with Long/,
# as those of an instantiation of this name do, take more than some five seconds of a core: only tests/run.sh --all runs them.
if(ABLATE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()

# LABELS grpc: it makes calls. Debian's gRPC is not built with ThreadSanitizer, which then sees races that are none.
# SHARDS N: N entries with a share of the tests each, instead of one entry per test. For programs that link LibTorch: each start
# takes a quarter of a second of a core, and most of their tests much less.
# ENVIRONMENT NAME=VALUE: at most one, because CMake 3.25 of Debian 12 gives discovered tests only the first of several.
# COST N: ctest starts tests of a higher cost first, so that no long one is left for the end, when the other cores idle.
function(ablate_test target)
  cmake_parse_arguments(ARG "" "TIMEOUT;SHARDS;COST" "SOURCES;LIBS;ENVIRONMENT;LABELS" ${ARGN})
  if("grpc" IN_LIST ARG_LABELS AND NOT ABLATE_GRPC_TESTS)
    return()
  endif()
  list(LENGTH ARG_ENVIRONMENT variables)
  if(variables GREATER 1)
    message(FATAL_ERROR "${target}: ENVIRONMENT: ${variables} variables; expected at most one")
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(NOT ARG_COST)
    set(ARG_COST 0)
  endif()
  add_executable(${target} ${ARG_SOURCES})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gmock GTest::gtest_main)
  ablate_warnings(${target})
  ablate_light(${target})
  set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/tests")
  if(ARG_SHARDS)
    foreach(shard RANGE 1 ${ARG_SHARDS})
      math(EXPR index "${shard} - 1")
      add_test(NAME ${target}/${shard} COMMAND ${target})
      set(environment ${ARG_ENVIRONMENT} GTEST_TOTAL_SHARDS=${ARG_SHARDS} GTEST_SHARD_INDEX=${index})
      set_tests_properties(${target}/${shard} PROPERTIES
                           TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} ENVIRONMENT "${environment}" LABELS "${ARG_LABELS}")
    endforeach()
    return()
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST
                       PROPERTIES TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} ENVIRONMENT "${ARG_ENVIRONMENT}" LABELS "${ARG_LABELS}")
endfunction()
