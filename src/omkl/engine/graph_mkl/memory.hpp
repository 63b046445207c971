// As algorithms/graph_mkl/memory.py: averages of the last targets.
#pragma once
#include "../weights.hpp"
#include "graph_mkl/state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

OMKL_INLINE long rows_in(int64_t age) { return age < WINDOW ? age : WINDOW; }

static void append_memory(const Problem &p, Window &window, int64_t row, const double *xs, const double *Y,
                          double weight) {
  const long j = row % WINDOW;
  for (long k = 0; k < p.V.d; ++k) window.X[k * WINDOW + j] = xs[k];
  for (long k = 0; k < p.K; ++k) window.Y[k * WINDOW + j] = Y[k];
  window.weight[j] = greater(weight, MIN_WEIGHT);
}

// Squared distances of w.xs to the rows of the window, in w.square; w.nearest is the least. Many rows at a time, so
// that what is read of an input is contiguous.
static void squared_distances(const Problem &p, const Window &window, int64_t age, Workspace &w) {
  constexpr long MANY = 8;
  const long n = rows_in(age);
  static_assert(WINDOW % (MANY * LANES) == 0);
  vec nearest = splat(INFINITY);
  for (long j = 0; j < n; j += MANY * W) {
    vec square[MANY] = {};
    for (long k = 0; k < p.V.d; ++k) {
      const double *values = window.X + k * WINDOW + j, x = w.xs[k];
#pragma GCC unroll 8
      for (long v = 0; v < MANY; ++v) {
        vec gap;
        __builtin_memcpy(&gap, values + v * W, sizeof gap);
        gap -= x;
        square[v] += gap * gap;
      }
    }
#pragma GCC unroll 8
    for (long v = 0; v < MANY; ++v) {
      store(w.square + j + v * W, square[v]);
      const veci there = LANE + (j + v * W) < n;
      nearest = there ? smaller(square[v], nearest) : nearest;
    }
  }
  w.nearest = nearest[0];
  for (long l = 1; l < W; ++l) w.nearest = lesser(w.nearest, nearest[l]);
}

// Weights of the rows by their distances, which are known; returns their sum.
static double weigh_memory(const Window &window, int64_t age, const Workspace &w, double width, double *weights,
                           double &leverage) {
  const long n = rows_in(age);
  leverage = 1;
  if (n == 0) return 0;
  const double rate = 1 / (2 * width * width);
  const double nearest = w.nearest;
  vec total = {}, squares = {};
  for (long j = 0; j < n; j += W) {
    const vec one = exp_below_zero(rate * (nearest - load(w.square + j)));  // (G11)
    vec near;
    __builtin_memcpy(&near, window.weight + j, sizeof near);
    near *= one;                                  // (G11)
    for (long l = n - j; l < W; ++l) near[l] = 0;
    store(weights + j, near);
    total += near;
    squares += near * one;
  }
  const double whole = sum(total);
  leverage = sum(squares) / (whole * whole);  // (G12)
  return whole;
}

static void predict_from_memory(const Problem &p, const Window &window, int64_t age, const double *near, double whole,
                                double *mean) {
  const long n = rows_in(age);
  for (long k = 0; k < p.K; ++k) {
    mean[k] = 0;
    if (n == 0) continue;
    const double *Y = window.Y + k * WINDOW;
    double mixed = 0;
    vec part = {};
    long j = 0;
    for (; j + W <= n; j += W) {
      vec a;
      __builtin_memcpy(&a, Y + j, sizeof a);
      part += load(near + j) * a;
    }
    for (; j < n; ++j) mixed += near[j] * Y[j];
    mean[k] = (mixed + sum(part)) / whole;  // (G12)
  }
}

// A number no further from the targets in the window than RANGE_MARGIN times their range.
static double within_range(const Window &window, int64_t age, double mean) {
  const long n = rows_in(age);
  const double *Y = window.Y;
  if (n == 0) return mean;
  vec lows = splat(Y[0]), highs = lows;
  long j = 0;
  for (; j + W <= n; j += W) {
    vec a;
    __builtin_memcpy(&a, Y + j, sizeof a);
    lows = smaller(a, lows);
    highs = larger(a, highs);
  }
  double low = lows[0], high = highs[0];
  for (long l = 1; l < W; ++l) low = lesser(low, lows[l]), high = greater(high, highs[l]);
  for (; j < n; ++j) low = lesser(low, Y[j]), high = greater(high, Y[j]);
  const double margin = RANGE_MARGIN * (high - low);  // (G10)
  return mean > high + margin ? high + margin : mean < low - margin ? low - margin : mean;  // (G10)
}

}  // namespace omkl::graph_mkl::OMKL_ISA
