// Registers full of doubles: the widest that the instruction set of this translation unit has.
//
// Everything below and in the headers that include it is compiled once per instruction set, inside
// a namespace of its own, and must not call an inline function of another namespace that could
// be emitted out of line: the linker would choose one copy for all instruction sets.
#pragma once
#include <cmath>
#include <cstdint>

#if defined(__AVX512F__)
#define OMKL_WIDTH 8
#elif defined(__AVX__)
#define OMKL_WIDTH 4
#else
#define OMKL_WIDTH 2
#endif

namespace omkl {
namespace OMKL_ISA {

constexpr long W = OMKL_WIDTH;
typedef double vec __attribute__((vector_size(OMKL_WIDTH * 8)));
typedef int64_t veci __attribute__((vector_size(OMKL_WIDTH * 8)));
typedef uint64_t vecu __attribute__((vector_size(OMKL_WIDTH * 8)));

#if OMKL_WIDTH == 8
constexpr veci LANE = {0, 1, 2, 3, 4, 5, 6, 7};
#elif OMKL_WIDTH == 4
constexpr veci LANE = {0, 1, 2, 3};
#else
constexpr veci LANE = {0, 1};
#endif

constexpr auto run_several = nullptr;  // of algorithms that have no function of this name

#define OMKL_INLINE static inline __attribute__((always_inline))

OMKL_INLINE vec splat(double a) { return vec{} + a; }
OMKL_INLINE vec load(const double *a) { return *reinterpret_cast<const vec *>(a); }
OMKL_INLINE void store(double *a, vec v) { *reinterpret_cast<vec *>(a) = v; }
OMKL_INLINE vec magnitude(vec a) { return (vec)((veci)a & INT64_MAX); }
OMKL_INLINE vec larger(vec a, vec b) { return a > b ? a : b; }
OMKL_INLINE vec smaller(vec a, vec b) { return a < b ? a : b; }

// Lane l of the result is lane index[l] of `a`, modulo their number.
template <class Lanes>
OMKL_INLINE Lanes permuted(Lanes a, veci index) {
#ifdef __clang__  // has no shuffle by a variable; where the index is a constant, it makes one of this
  Lanes out;
  for (long l = 0; l < W; ++l) out[l] = a[index[l] & (W - 1)];
  return out;
#else
  return __builtin_shuffle(a, index);
#endif
}

// Lane l of the result is lane l ^ step of `a`.
template <class Lanes>
OMKL_INLINE Lanes across(Lanes a, int64_t step) {
  return permuted(a, LANE ^ step);
}

OMKL_INLINE double sum(vec a) {
  for (long step = W / 2; step > 0; step /= 2) a += across(a, step);
  return a[0];
}

OMKL_INLINE double max(vec a) {
  for (long step = W / 2; step > 0; step /= 2) a = larger(a, across(a, step));
  return a[0];
}

OMKL_INLINE long total(veci a) {
  for (long step = W / 2; step > 0; step /= 2) a += across(a, step);
  return a[0];
}

// Lane l becomes the sum of the lanes up to l.
OMKL_INLINE vec running_sum(vec a) {
  for (long step = 1; step < W; step *= 2) a += LANE < step ? vec{} : permuted(a, LANE - step);
  return a;
}

// Nearest whole number to a, twice: as a double, and in the low bits of an integer.
constexpr double ROUND = 0x1.8p52;
OMKL_INLINE vec nearest(vec a, veci &bits) {
  const vec shifted = a + ROUND;
  bits = (veci)shifted;
  return shifted - ROUND;
}

// Sine and cosine for |a| <= LARGEST_PHASE, within 1.5 ulp: Cody and Waite's reduction modulo pi / 2, then the minimax
// polynomials of Sun's fdlibm. With FMA two parts of pi / 2 are enough, since the first product is not rounded;
// without, three whose products with a quadrant number of 20 bits are exact.
constexpr double LARGEST_PHASE = 1e6;
OMKL_INLINE void sincos(vec a, vec &sine, vec &cosine) {
  veci quadrant;
  const vec n = nearest(a * 0x1.45f306dc9c883p-1, quadrant);
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  const vec r = a - n * 0x1.921fb54442d18p0 - n * 0x1.1a62633145c07p-54;
#else
  const vec r = a - n * 0x1.921fb544p0 - n * 0x1.0b4611a6p-34 - n * 0x1.3198a2e037073p-69;
#endif
  const vec x = r * r;
  const vec s =
      r + r * x *
              (-0x1.5555555555549p-3 +
               x * (0x1.111111110f8a6p-7 +
                    x * (-0x1.a01a019c161d5p-13 +
                         x * (0x1.71de357b1fe7dp-19 + x * (-0x1.ae5e68a2b9cebp-26 + x * 0x1.5d93a5acfd57cp-33)))));
  const vec c = 1 + x * (-0.5 + x * (0x1.555555555554cp-5 +
                                     x * (-0x1.6c16c16c15177p-10 +
                                          x * (0x1.a01a019cb1590p-16 +
                                               x * (-0x1.27e4f809c52adp-22 +
                                                    x * (0x1.1ee9ebdb4b1c4p-29 + x * -0x1.8fae9be8838d4p-37))))));
  const veci swap = (quadrant & 1) != 0;
  const veci minus_sine = (quadrant << 62) & INT64_MIN, minus_cosine = ((quadrant + 1) << 62) & INT64_MIN;
  sine = (vec)((veci)(swap ? c : s) ^ minus_sine);
  cosine = (vec)((veci)(swap ? s : c) ^ minus_cosine);
}

// exp(a) for a <= 0, within 1.5 ulp; what would be subnormal is 0.
OMKL_INLINE vec exp_below_zero(vec a) {
  veci n;
  const vec k = nearest(a * 0x1.71547652b82fep0, n);
  const vec r = a - k * 0x1.62e42fefp-1 - k * 0x1.473de6af278edp-34;
  vec e = splat(1.0 / 6227020800);
  e = e * r + 1.0 / 479001600;
  e = e * r + 1.0 / 39916800;
  e = e * r + 1.0 / 3628800;
  e = e * r + 1.0 / 362880;
  e = e * r + 1.0 / 40320;
  e = e * r + 1.0 / 5040;
  e = e * r + 1.0 / 720;
  e = e * r + 1.0 / 120;
  e = e * r + 1.0 / 24;
  e = e * r + 1.0 / 6;
  e = e * r + 0.5;
  e = e * r + 1.0;
  e = e * r + 1.0;
  // unsigned, because the sum may wrap in lanes that are then 0
  return a < -708 ? vec{} : (vec)((vecu)e + ((vecu)n << 52));
}

}  // namespace OMKL_ISA
}  // namespace omkl
