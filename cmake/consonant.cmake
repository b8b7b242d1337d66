# SPDX-License-Identifier: Apache-2.0
# Compile settings for all targets, and one function that makes a folder's library and its test program.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -DNDEBUG")

add_compile_options(-Wall -Wextra -Wpedantic -Wno-missing-field-initializers
                    "$<$<CXX_COMPILER_ID:GNU>:-Wno-psabi;-Wno-restrict>")
# Sums have one order everywhere: the compiler must not fuse a multiply and an add behind the source's back.
add_compile_options(-ffp-contract=off)

if(CONSONANT_SANITIZE)
  add_compile_options(-fsanitize=${CONSONANT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CONSONANT_SANITIZE})
endif()
if(CONSONANT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# consonant_folder(name [DEPS targets...] [TEST_DEPS targets...])
# A library `consonant_<name>` of every source in the folder, `test_<name>` of every *.test.cpp in it and
# `fuzz_<x>` of every x.fuzz.cpp when fuzzing is on.
function(consonant_folder name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "\\.test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "\\.fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "\\.(test|fuzz|bench|main)\\.cpp$")
  if(sources)
    add_library(consonant_${name} STATIC ${sources})
    target_include_directories(consonant_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(consonant_${name} PUBLIC ${ARG_DEPS})
  else()
    add_library(consonant_${name} INTERFACE)
    target_include_directories(consonant_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
    target_link_libraries(consonant_${name} INTERFACE ${ARG_DEPS})
  endif()
  if(tests AND CONSONANT_TESTS)
    add_executable(test_${name} ${tests})
    target_link_libraries(test_${name} PRIVATE consonant_${name} ${ARG_TEST_DEPS} GTest::gmock GTest::gtest_main
                                               ${RAPIDCHECK_LIBRARY})
    target_include_directories(test_${name} PRIVATE ${RAPIDCHECK_INCLUDE})
    target_compile_definitions(test_${name} PRIVATE CONSONANT_TEST_DATA="${CONSONANT_TEST_DATA}"
                                                    CONSONANT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
    add_dependencies(test_${name} test_data)
    gtest_discover_tests(test_${name} DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300)
  endif()
  if(CONSONANT_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(base ${fuzzer} NAME)
      string(REPLACE ".fuzz.cpp" "" base ${base})
      add_executable(fuzz_${base} ${fuzzer})
      target_link_libraries(fuzz_${base} PRIVATE consonant_${name} ${ARG_TEST_DEPS})
      target_link_options(fuzz_${base} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()
