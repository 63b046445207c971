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
# make sanitize: slow, and ends the process where memory of others is read or written, or behaviour is undefined.
option(OMKL_SANITIZE "Build with AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
if(OMKL_SANITIZE)
  add_compile_options(-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=address,undefined)
  set(OPTIMISED -O2)  # below it GCC fuses no multiplications and additions, which the accuracy of the sine needs
else()
  set(OPTIMISED -O3)
endif()

set(MATHS ${OPTIMISED} -fno-math-errno -fno-trapping-math -ffp-contract=fast)

function(add_isa module source name)
  add_library(${module}_${name} OBJECT ${source})
  target_compile_definitions(${module}_${name} PRIVATE OMKL_ISA=${name})
  target_compile_options(${module}_${name} PRIVATE ${MATHS} ${ARGN} -Wall -Wextra -fvisibility=hidden)
  target_include_directories(${module}_${name} PRIVATE ${ENGINE} ${CMAKE_CURRENT_BINARY_DIR})
  target_sources(${module} PRIVATE $<TARGET_OBJECTS:${module}_${name}>)
endfunction()

# A Python module from `bindings` and one copy of `source` per instruction set, of which bindings pick one at run time.
function(add_module module bindings source)
  # NOMINSIZE: nanobind's default -Os would keep the compiler from vectorising.
  nanobind_add_module(${module} NB_STATIC NOMINSIZE ${bindings})
  # No contraction: a fleet maps predictions back in C++, the estimators in NumPy, to the same last bit.
  target_compile_options(${module} PRIVATE -O2 -ffp-contract=off -Wall -Wextra)
  target_include_directories(${module} PRIVATE ${ENGINE} ${CMAKE_CURRENT_BINARY_DIR})
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    target_compile_definitions(${module} PRIVATE OMKL_X86)
    add_isa(${module} ${source} baseline -march=x86-64)
    add_isa(${module} ${source} avx2 -march=x86-64-v3)
    add_isa(${module} ${source} avx512 -march=x86-64-v4 -mprefer-vector-width=512)
  else()
    add_isa(${module} ${source} baseline)
  endif()
endfunction()
