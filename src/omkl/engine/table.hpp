// All algorithms compiled for one instruction set.
#pragma once
#include "omkl_algorithms.hpp"  // written by CMake: includes algorithms/*.hpp and defines OMKL_ALGORITHMS

namespace omkl {

struct Table {
#define OMKL_LOOP(NAME, TEXT) Loop<omkl::NAME::Problem, omkl::NAME::State> NAME;
  OMKL_ALGORITHMS(OMKL_LOOP)
#undef OMKL_LOOP
  bool (*all_at_most)(const double *values, long n, double limit);  // whether no magnitude is above the limit
};

}  // namespace omkl
