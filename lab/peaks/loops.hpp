// The benchmark loops of one instruction set.
#pragma once
#include "problem.hpp"

namespace omkl {

struct Peaks {
  using Run = long (*)(double *memory, long times);
  Run sincos, multiply_adds, bytes_read, least_squares;
};
constexpr long SECOND_CACHE_SIZE =
    20480;  // doubles: 160 KB fit into the second cache of any machine, not into the first
constexpr long LEAST_SQUARES_SIZE = 53248;

}  // namespace omkl
