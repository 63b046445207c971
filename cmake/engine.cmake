# How C++ of the engine is compiled: the library and the laboratory's benchmarks share it.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
if(MSVC AND NOT CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  message(FATAL_ERROR "omkl's engine needs GCC or Clang (clang-cl on Windows): cmake -T ClangCL")
endif()

get_filename_component(ENGINE ${CMAKE_CURRENT_LIST_DIR}/../src/omkl/engine ABSOLUTE)
# For make sanitize: slow, and the process ends where memory of others is read or written, or behaviour is undefined;
# with "thread", two threads that use the same memory at a time are reported.
set(OMKL_SANITIZE "" CACHE STRING "Sanitizers to build with: address,undefined or thread")
if(OMKL_SANITIZE)
  add_compile_options(-fsanitize=${OMKL_SANITIZE} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${OMKL_SANITIZE})
  set(OPTIMISED -O2)  # below it GCC fuses no multiplications and additions, which the accuracy of the sine needs
else()
  set(OPTIMISED -O3)
endif()

set(WARNINGS -Wall -Wextra -Wshadow -Wconversion)
option(OMKL_WERROR "A warning of the compiler is an error" OFF)
if(OMKL_WERROR)
  list(APPEND WARNINGS -Werror)
endif()

set(MATHS ${OPTIMISED} -fno-math-errno -fno-trapping-math -ffp-contract=fast)

function(add_isa target source name)
  add_library(${target}_${name} OBJECT ${source})
  target_compile_definitions(${target}_${name} PRIVATE OMKL_ISA=${name})
  target_compile_options(${target}_${name} PRIVATE ${MATHS} ${ARGN} ${WARNINGS} -fvisibility=hidden)
  target_include_directories(${target}_${name} PRIVATE ${ENGINE} ${CMAKE_CURRENT_BINARY_DIR})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_${name}>)
endfunction()

# One copy of `source` per instruction set, of which the target picks one at run time.
function(add_isas target source)
  # No contraction: a fleet maps predictions back in C++, the estimators in NumPy, to the same last bit.
  target_compile_options(${target} PRIVATE -O2 -ffp-contract=off ${WARNINGS})
  target_include_directories(${target} PRIVATE ${ENGINE} ${CMAKE_CURRENT_BINARY_DIR})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    target_compile_definitions(${target} PRIVATE OMKL_X86)
    add_isa(${target} ${source} baseline -march=x86-64)
    add_isa(${target} ${source} avx2 -march=x86-64-v3)
    add_isa(${target} ${source} avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  else()
    add_isa(${target} ${source} baseline)
  endif()
endfunction()

# A Python module from `bindings` and `source`.
function(add_module module bindings source)
  # NOMINSIZE: nanobind's default -Os would keep the compiler from vectorising.
  nanobind_add_module(${module} NB_STATIC NOMINSIZE ${bindings})
  target_include_directories(${module} SYSTEM PRIVATE ${NB_DIR}/include)  # its warnings are not ours
  add_isas(${module} ${source})
endfunction()
