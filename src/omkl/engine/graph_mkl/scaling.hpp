// As algorithms/graph_mkl/scaling.py: inputs and targets in raw units become standardised ones.
#pragma once
#include "../losses.hpp"
#include "graph_mkl/state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

OMKL_INLINE double clipped(double a, double limit) { return a > limit ? limit : a < -limit ? -limit : a; }

OMKL_INLINE double unit_of(const Scaling &scaling) { return scaling.unit > 0 ? scaling.unit : 1; }

// Output k of the target: the number itself, or 1 at the label.
OMKL_INLINE double target_value(const Problem &p, double y, long k) {
  return p.classify ? (static_cast<long>(y) == k ? 1 : 0) : y;
}

// w.xs for the kernels, w.xs_linear for the linear expert.
static void scaled(const Problem &p, const Scaling &scaling, Workspace &w, const double *x) {
  const double root = 1 / sqrt(static_cast<double>(p.V.d));
  for (long k = 0; k < p.V.d; ++k) {
    const double a = (x[k] - scaling.mean[k]) * scaling.scale[k];
    w.xs[k] = a != a ? 0 : root * clipped(a, CLIP);  // (G1)
    w.xs_linear[k] = a != a ? 0 : root * clipped(a, CLIP_LINEAR);  // (G1)
  }
}

static double inverse(double deviation, double mean) {
  return !(deviation <= MIN_RELATIVE_DEVIATION * fabs(mean)) && deviation > MIN_DEVIATION ? 1 / deviation : 0;  // (G2)
}

static void append_first(const Problem &p, FirstRows &first, int64_t row, const double *x, double y, double weight) {
  if (row >= FIRST_ROWS) return;
  first.weight[row] = weight;
  for (long k = 0; k < p.V.d; ++k) first.X[row * p.V.d + k] = x[k];
  for (long k = 0; k < p.K; ++k) first.Y[row * p.K + k] = target_value(p, y, k);
}

// The scaling by the first n rows. Returns the old unit of the target over the new one, 1 where there was none.
static double estimate(const Problem &p, Scaling &scaling, const FirstRows &first, long n) {
  const long d = p.V.d;
  const double *X = first.X, *Y = first.Y;
  for (long k = 0; k < d; ++k) {
    double count = 0, total = 0, square = 0;
    for (long j = 0; j < n; ++j)
      if (X[j * d + k] == X[j * d + k]) count += 1, total += X[j * d + k];
    const double mean = count > 0 ? total / count : NAN;  // (G2)
    count = greater(count, 1);
    for (long j = 0; j < n; ++j)
      if (X[j * d + k] == X[j * d + k]) square += (X[j * d + k] - mean) * (X[j * d + k] - mean);
    scaling.mean[k] = mean;
    scaling.scale[k] = inverse(sqrt(square / count), mean);  // (G2)
  }
  for (long k = 0; k < p.K; ++k) {
    double total = 0;
    for (long j = 0; j < n; ++j) total += Y[j * p.K + k];
    scaling.shift[k] = total / static_cast<double>(n);  // (G3)
  }
  if (p.classify) return 1;
  double square = 0;
  for (long j = 0; j < n; ++j) square += (Y[j] - scaling.shift[0]) * (Y[j] - scaling.shift[0]);
  const double unit = sqrt(square / static_cast<double>(n));  // (G3)
  if (!(unit > 0)) return 1;
  const double ratio = scaling.unit > 0 ? scaling.unit / unit : 1;
  scaling.unit = unit;
  return ratio;
}

// A column that was constant so far takes its first move as its deviation.
static void update_scaling(const Problem &p, Scaling &scaling, const double *x) {
  for (long k = 0; k < p.V.d; ++k) {
    if (scaling.mean[k] != scaling.mean[k]) scaling.mean[k] = x[k];
    const double gap = fabs(x[k] - scaling.mean[k]);
    if (scaling.scale[k] == 0 && gap == gap) scaling.scale[k] = inverse(gap, scaling.mean[k]);  // (G4)
  }
}

}  // namespace omkl::graph_mkl::OMKL_ISA
