# Warnings for our own code; third-party headers are system includes and stay quiet.
function(ablate_warnings target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Werror
                                           $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
endfunction()

# A library of our own: sources compiled with our warnings, includes rooted at the repository.
function(ablate_library target)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PUBLIC ${ARG_LIBS})
  ablate_warnings(${target})
endfunction()

# Compiles a library or a test with -O1 in Release: its own work is little, and a fifth to a third of its compile time is saved.
function(ablate_light target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# Compiles a library in units of up to 16 files, where most of a unit's cost is the headers that its files share.
function(ablate_large_units target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD_BATCH_SIZE 16)
endfunction()
