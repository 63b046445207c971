// What the machine can do at best: the loops that the floor of `omkl bench` is made of. They are compiled with the
// rounds, because a peak only bounds code of the same compiler, flags and polynomials.
#pragma once
#include "features.hpp"

namespace omkl {
namespace OMKL_ISA {

// The compiler must believe that `a` is wanted, and change: no instruction is added.
OMKL_INLINE void wanted(vec &a) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(a));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(a));
#else
  asm volatile("" : "+m"(a));
#endif
}

struct PeakLoops {
  static constexpr long HOT = 512;  // doubles: phases that stay in the first cache

  // Pairs of sine and cosine.
  static long sincos_pairs(double *a, long times) {
    for (long j = 0; j < HOT; ++j) a[j] = 0.01 * static_cast<double>(j - HOT / 2);
    for (long n = 0; n < times; ++n)
      for (long j = 0; j < HOT; j += 4 * W)
        for (long b = 0; b < 4; ++b) {
          vec s, c;
          sincos(load(a + j + b * W), s, c);
          wanted(s);
          wanted(c);
        }
    return times * HOT;
  }

  // Multiply-adds of doubles, in registers.
  static long multiply_adds(double *a, long times) {
    constexpr long B = 12;
    vec sum[B], x = splat(a[0] = 0.5);
    wanted(x);
#pragma GCC unroll 12
    for (long b = 0; b < B; ++b) sum[b] = x;
    for (long n = 0; n < times; ++n) {
#pragma GCC unroll 12
      for (long b = 0; b < B; ++b) sum[b] = sum[b] * x + x;
#pragma GCC unroll 12
      for (long b = 0; b < B; ++b) wanted(sum[b]);
    }
    return times * B * W;
  }

  // Bytes read from `size` doubles.
  static long bytes_read(double *a, long size, long times) {
    constexpr long B = 8;
    vec sum[B] = {};
    for (long n = 0; n < times; ++n)
      for (long j = 0; j + B * W <= size; j += B * W)
        for (long b = 0; b < B; ++b) {
          sum[b] += load(a + j + b * W);
          wanted(sum[b]);
        }
    return times * (size / (B * W)) * (B * W) * 8;
  }
};

}  // namespace OMKL_ISA
}  // namespace omkl
