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

set(host_options -Wall -Wextra -Wpedantic -Wno-missing-field-initializers "$<$<CXX_COMPILER_ID:GNU>:-Wno-psabi;-Wno-restrict>")
# Sums have one order everywhere: the compiler must not fuse a multiply and an add behind the source's back.
list(APPEND host_options -ffp-contract=off)
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${host_options}>")

if(CONSONANT_SANITIZE)
  add_compile_options(-fsanitize=${CONSONANT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CONSONANT_SANITIZE})
endif()
if(CONSONANT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
  add_custom_target(fuzzers)  # all of them
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()

# Where tools/fetch_model.py puts the real models; a test of one that isn't there skips by name.
if(DEFINED ENV{XDG_CACHE_HOME})
  set(default_models $ENV{XDG_CACHE_HOME}/consonant/models)
else()
  set(default_models $ENV{HOME}/.cache/consonant/models)
endif()
set(CONSONANT_MODELS ${default_models} CACHE PATH "Folder of the real models that some tests use")

# Two build trees can be tested in one run of ctest, so the names of a sanitizer's tests begin with it.
function(consonant_test_name out name)
  if(CONSONANT_SANITIZE)
    set(name "${CONSONANT_SANITIZE}: ${name}")
  endif()
  set(${out} "${name}" PARENT_SCOPE)
endfunction()

# What every test program may name: its fixtures, the real models, the source tree.
function(consonant_test_settings target)
  target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main ${RAPIDCHECK_LIBRARY})
  target_include_directories(${target} PRIVATE ${RAPIDCHECK_INCLUDE})
  target_compile_definitions(${target} PRIVATE CONSONANT_TEST_DATA="${CONSONANT_TEST_DATA}"
                                               CONSONANT_MODELS="${CONSONANT_MODELS}"
                                               CONSONANT_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  add_dependencies(${target} test_data)
  consonant_test_name(prefix "")
  gtest_discover_tests(${target} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 120 TEST_PREFIX "${prefix}" PROPERTIES TIMEOUT 300)
endfunction()

# consonant_folder(name [DEPS targets...] [TEST_DEPS targets...])
# A library `consonant_<name>` of every source in the folder, `test_<name>` of every *.test.cpp in it, and of every x.fuzz.cpp
# `fuzz_<x>` when fuzzing is on, else `replay_<x>`, which a test runs over the saved inputs in tests/corpus/<x>.
function(consonant_folder name)
  cmake_parse_arguments(ARG "" "" "DEPS;TEST_DEPS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS *.cpp)
  list(FILTER sources EXCLUDE REGEX "\\.gpu\\.cpp$|/device/emu/")  # cmake/accelerators.cmake builds those
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
    target_link_libraries(test_${name} PRIVATE consonant_${name} ${ARG_TEST_DEPS})
    consonant_test_settings(test_${name})
  endif()
  foreach(fuzzer ${fuzzers})
    get_filename_component(base ${fuzzer} NAME)
    string(REPLACE ".fuzz.cpp" "" base ${base})
    if(CONSONANT_FUZZ)
      add_executable(fuzz_${base} ${fuzzer})
      target_link_libraries(fuzz_${base} PRIVATE consonant_${name} ${ARG_TEST_DEPS})
      target_link_options(fuzz_${base} PRIVATE -fsanitize=fuzzer)
      add_dependencies(fuzzers fuzz_${base})
    elseif(CONSONANT_TESTS)
      add_executable(replay_${base} ${fuzzer} ${CMAKE_SOURCE_DIR}/tests/replay.cpp)
      target_link_libraries(replay_${base} PRIVATE consonant_${name} ${ARG_TEST_DEPS})
      consonant_test_name(corpus "corpus.${base}")
      add_test(NAME "${corpus}" COMMAND replay_${base} ${CMAKE_SOURCE_DIR}/tests/corpus/${base})
      set_tests_properties("${corpus}" PROPERTIES TIMEOUT 300)
    endif()
  endforeach()
endfunction()
