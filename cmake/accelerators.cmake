# SPDX-License-Identifier: Apache-2.0
# The builds of the kernels' one source, ops/*/*.gpu.cpp: two emulators that are part of every program, and plug-ins for CUDA and
# HIP, which lie beside the program and are loaded when they are asked for. With a compiler at hand their default is ON.

set(CONSONANT_CUDA AUTO CACHE STRING "Build the CUDA plug-in: ON, OFF, AUTO (if there is an nvcc)")
set(CONSONANT_CUDA_ARCHITECTURES 90 CACHE STRING "Compute capabilities that it is compiled for, as CMAKE_CUDA_ARCHITECTURES")
set(CONSONANT_HIP AUTO CACHE STRING "Build the HIP plug-in: ON, OFF, AUTO (if there is a hipcc)")
set(CONSONANT_HIP_ARCHITECTURES gfx90a gfx1030 CACHE STRING "Targets that it is compiled for")

file(GLOB gpu_kernels CONFIGURE_DEPENDS src/ops/*.gpu.cpp src/ops/*/*.gpu.cpp)
file(GLOB cuda_kernels CONFIGURE_DEPENDS src/ops/*/*.cuda.cu)
file(GLOB emulator CONFIGURE_DEPENDS src/device/emu/*.cpp)
set(emulator_tests ${emulator})
list(FILTER emulator EXCLUDE REGEX "\\.test\\.cpp$")
list(FILTER emulator_tests INCLUDE REGEX "\\.test\\.cpp$")
set(native src/device/native.gpu.cpp)
find_program(CONSONANT_CCACHE ccache)
if(NOT CONSONANT_CCACHE)
  set(CONSONANT_CCACHE)
endif()

foreach(lanes 32 64)
  add_library(consonant_emu${lanes} STATIC ${gpu_kernels} ${emulator})
  target_compile_definitions(consonant_emu${lanes} PRIVATE GPU_BUILD=emu${lanes} GPU_EMULATED=${lanes}
                                                           CONSONANT_VERSION="${PROJECT_VERSION}")
  target_link_libraries(consonant_emu${lanes} PUBLIC consonant_ops Boost::context)
  if(CONSONANT_TESTS)
    add_executable(test_emulator${lanes} ${emulator_tests})
    target_compile_definitions(test_emulator${lanes} PRIVATE GPU_BUILD=emu${lanes} GPU_EMULATED=${lanes})
    target_link_libraries(test_emulator${lanes} PRIVATE consonant_emu${lanes})
    consonant_test_settings(test_emulator${lanes})
  endif()
endforeach()

# consonant_plugin(name compiler SOURCES s... FLAGS compiler's... LINK linker's...)
# The vendors' compilers are called directly: CMake 3.25 knows neither nvcc 13's C++20 nor Debian's hipcc.
function(consonant_plugin name compiler)
  cmake_parse_arguments(ARG "" "" "SOURCES;FLAGS;LINK" ${ARGN})
  set(objects)
  foreach(source ${ARG_SOURCES})
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/src ${source})
    string(REPLACE "/" "_" object ${path})
    set(object ${CMAKE_BINARY_DIR}/${name}/${object}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND ${CONSONANT_CCACHE} ${compiler} -std=c++20 -O3 -DNDEBUG ${ARG_FLAGS} -DGPU_BUILD=${name} -DCONSONANT_VERSION="${PROJECT_VERSION}"
              -I${CMAKE_SOURCE_DIR}/src -I${CMAKE_BINARY_DIR}/generated -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Building ${name} object ${path}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/${name})
  set(plugin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY}/libconsonant_${name}.so)
  set(layers)
  foreach(layer ops graph device tensor base)
    list(APPEND layers $<TARGET_FILE:consonant_${layer}>)
  endforeach()
  add_custom_command(
    OUTPUT ${plugin}
    COMMAND ${compiler} -shared ${ARG_LINK} ${objects} -o ${plugin} ${layers} -lfmt -lhwy
    DEPENDS ${objects} consonant_ops
    COMMENT "Linking ${plugin}" VERBATIM)
  add_custom_target(consonant_${name} ALL DEPENDS ${plugin})
endfunction()

# Whether to build a plug-in: asked for, or AUTO with its compiler there. Sanitized builds have none.
function(consonant_wants out choice compiler)
  set(${out} OFF PARENT_SCOPE)
  if(choice STREQUAL "AUTO")
    if(compiler AND NOT CONSONANT_SANITIZE AND NOT CONSONANT_FUZZ)
      set(${out} ON PARENT_SCOPE)
    endif()
  elseif(choice)
    if(NOT compiler)
      message(FATAL_ERROR "a plug-in was asked for, but its compiler isn't there")
    endif()
    set(${out} ON PARENT_SCOPE)
  endif()
endfunction()

find_program(CONSONANT_NVCC nvcc HINTS /usr/local/cuda/bin)
consonant_wants(cuda "${CONSONANT_CUDA}" "${CONSONANT_NVCC}")
if(cuda)
  # One machine code for each, and PTX of the last for what comes later.
  set(code)
  foreach(arch ${CONSONANT_CUDA_ARCHITECTURES})
    list(APPEND code -gencode=arch=compute_${arch},code=sm_${arch})
    set(newest ${arch})
  endforeach()
  list(APPEND code -gencode=arch=compute_${newest},code=compute_${newest})
  # fmt 9 takes nvcc for a compiler without constant expressions.
  consonant_plugin(cuda ${CONSONANT_NVCC} SOURCES ${gpu_kernels} ${cuda_kernels} ${CMAKE_SOURCE_DIR}/${native}
    FLAGS -x cu --expt-relaxed-constexpr -DFMT_CONSTEVAL= -DFMT_USE_CONSTEXPR=1 -DFMT_CONSTEXPR=constexpr
          -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers ${code}
    LINK -cudart static -Xlinker=--exclude-libs,ALL)
endif()

find_program(CONSONANT_HIPCC hipcc)
consonant_wants(hip "${CONSONANT_HIP}" "${CONSONANT_HIPCC}")
if(hip)
  list(TRANSFORM CONSONANT_HIP_ARCHITECTURES PREPEND --offload-arch= OUTPUT_VARIABLE code)
  consonant_plugin(hip ${CONSONANT_HIPCC} SOURCES ${gpu_kernels} ${CMAKE_SOURCE_DIR}/${native}
    FLAGS -x hip -fPIC -fvisibility=hidden ${code}
    LINK --hip-link ${code} -Wl,--exclude-libs,ALL)
endif()
