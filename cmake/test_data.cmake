# SPDX-License-Identifier: Apache-2.0
# Unpacks tests/data/*.tar.zst into the build tree: one archive a family of fixtures, unpacked again when it changes.

set(CONSONANT_TEST_DATA ${CMAKE_BINARY_DIR}/test-data)
file(GLOB archives CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/data/*.tar.zst)
set(stamps)
foreach(archive ${archives})
  get_filename_component(family ${archive} NAME)
  string(REPLACE ".tar.zst" "" family ${family})
  set(stamp ${CONSONANT_TEST_DATA}/.${family}.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CONSONANT_TEST_DATA}
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${CONSONANT_TEST_DATA}/${family}
    COMMAND ${CMAKE_COMMAND} -E chdir ${CONSONANT_TEST_DATA} ${CMAKE_COMMAND} -E tar xf ${archive}
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${archive}
    VERBATIM)
  list(APPEND stamps ${stamp})
endforeach()
add_custom_target(test_data ALL DEPENDS ${stamps})
