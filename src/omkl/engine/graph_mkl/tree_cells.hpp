// Cells of the histograms that splits of trees are searched in.
#pragma once
#include "../lanes.hpp"
#include "graph_mkl/problem.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// Sums of the whole numbers of rows: the weight, then the projected residuals. `Sums` has those of the cells up to each
// of an input, from which whole registers are taken as doubles.
template <long S>
struct Cells;
template <>
struct Cells<1> {
  typedef uint64_t Cell;  // the residual in the upper half, the weight, never negative, in the lower
  static OMKL_ALWAYS_INLINE Cell cell(int32_t weight, const int32_t *q) {
    return (static_cast<uint64_t>(static_cast<int64_t>(q[0])) << 32) + static_cast<uint32_t>(weight);
  }
  struct Sums {
    alignas(64) uint64_t sums[TREE_BINS];
    OMKL_ALWAYS_INLINE void put(long k, Cell sum) { sums[k] = sum; }
    OMKL_ALWAYS_INLINE double weight(long k) const { return static_cast<int32_t>(sums[k]); }
    OMKL_ALWAYS_INLINE double residual(long k, long) const { return static_cast<int32_t>(sums[k] >> 32); }
    // Whole numbers below 2^32 as the last digits of doubles from 2^52 on.
    OMKL_ALWAYS_INLINE vec weights(long k) const {
      return (vec)(((vecu)load(reinterpret_cast<const double *>(sums) + k) & 0xffffffff) | DIGITS) - 0x1p52;
    }
    OMKL_ALWAYS_INLINE vec residuals(long k, long) const {
      const vecu sum = (vecu)load(reinterpret_cast<const double *>(sums) + k);
      return (vec)(((sum >> 32) ^ 0x80000000) | DIGITS) - (0x1p52 + 0x1p31);
    }
    static constexpr uint64_t DIGITS = 0x4330000000000000;
  };
};
template <>
struct Cells<3> {
  typedef uint32_t Cell __attribute__((vector_size(16)));
  static OMKL_ALWAYS_INLINE Cell cell(int32_t weight, const int32_t *q) {
    return Cell{static_cast<uint32_t>(weight), static_cast<uint32_t>(q[0]), static_cast<uint32_t>(q[1]),
                static_cast<uint32_t>(q[2])};
  }
  struct Sums {
    alignas(64) double sums[4][TREE_BINS];
    OMKL_ALWAYS_INLINE void put(long k, Cell sum) {
#pragma GCC unroll 4
      for (long s = 0; s < 4; ++s) sums[s][k] = static_cast<int32_t>(sum[s]);
    }
    OMKL_ALWAYS_INLINE double weight(long k) const { return sums[0][k]; }
    OMKL_ALWAYS_INLINE double residual(long k, long s) const { return sums[s + 1][k]; }
    OMKL_ALWAYS_INLINE vec weights(long k) const { return load(sums[0] + k); }
    OMKL_ALWAYS_INLINE vec residuals(long k, long s) const { return load(sums[s + 1] + k); }
  };
};

}  // namespace omkl::graph_mkl::OMKL_ISA
