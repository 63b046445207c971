// What the machine can do at best: the loops from which `omkl-lab bench` computes a lower bound of a round's time. They
// are made of the engine's headers and compiled with its flags, because a peak only bounds code that is made alike.
#pragma once
#include "least_squares.hpp"
#include "loops.hpp"
#include "weights.hpp"

namespace omkl {
namespace OMKL_ISA {

// Keeps the compiler from removing or combining what computes `a`, without an instruction of its own.
OMKL_INLINE void keep_value(vec &a) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(a));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(a));
#else
  asm volatile("" : "+m"(a));
#endif
}

// Each loop does its work `times` over in `a` and returns how much it did.

constexpr long HOT = 512;  // doubles that stay in the first cache

// Pairs of sine and cosine.
inline long sincos_pairs(double *a, long times) {
  for (long j = 0; j < HOT; ++j) a[j] = 0.01 * static_cast<double>(j - HOT / 2);
  for (long n = 0; n < times; ++n)
    for (long j = 0; j < HOT; j += 4 * W)
      for (long b = 0; b < 4; ++b) {
        vec s, c;
        sincos(load(a + j + b * W), s, c);
        keep_value(s);
        keep_value(c);
      }
  return times * HOT;
}

// Multiply-adds of doubles in registers.
inline long multiply_adds(double *a, long times) {
  constexpr long B = 12;
  vec sum[B], x = splat(a[0] = 0.5);
  keep_value(x);
#pragma GCC unroll 12
  for (long b = 0; b < B; ++b) sum[b] = x;
  for (long n = 0; n < times; ++n) {
#pragma GCC unroll 12
    for (long b = 0; b < B; ++b) sum[b] = sum[b] * x + x;
#pragma GCC unroll 12
    for (long b = 0; b < B; ++b) keep_value(sum[b]);
  }
  return times * B * W;
}

// Bytes from the second cache: more than the first one holds.
inline long bytes_read(double *a, long times) {
  constexpr long B = 8;
  vec sum[B] = {};
  for (long n = 0; n < times; ++n)
    for (long j = 0; j < SECOND_CACHE_SIZE; j += B * W) {
#pragma GCC unroll 8
      for (long b = 0; b < B; ++b) sum[b] += load(a + j + b * W);
#pragma GCC unroll 8
      for (long b = 0; b < B; ++b) keep_value(sum[b]);
    }
  return times * SECOND_CACHE_SIZE * 8;
}

// GraphMKL's least-squares steps on 100 features, five kernels in turn. Not a peak: the time that its lower
// bound is compared with.
inline long least_squares_steps(double *a, long times) {
  constexpr long n = 100, stride = 104, kernels = 5, size = n * stride;
  static_assert(kernels * size + 10 * stride <= LEAST_SQUARES_SIZE);
  double *z = a + kernels * size, *phi = z + stride, *scale = phi + stride, *subtract = scale + stride,
         *Pz = subtract + stride, *theta = Pz + stride;
  for (long j = 0; j < LEAST_SQUARES_SIZE; ++j) a[j] = 0;
  for (long i = 0; i < kernels * n; ++i) a[i * stride + i % n] = 1;
  for (long j = 0; j < n; ++j) z[j] = 0.1;
  for (long t = 0; t < times; ++t)
    for (long k = 0; k < kernels; ++k) {
      double *R = a + k * size;
      z[(t + k) % n] = -z[(t + k) % n];
      factor_times(R, n, stride, z, phi);
      const double q = dot(phi, phi, stride);
      factor_update(R, n, stride, phi, 1.0, 1.0, scale, subtract, Pz);
      const double gap = 1 - dot(theta + k * stride, z, stride);
      add(theta + k * stride, gap / (1 + q), Pz, stride);
    }
  return times * kernels;
}

}  // namespace OMKL_ISA
}  // namespace omkl
