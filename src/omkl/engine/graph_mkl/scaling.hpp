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
OMKL_INLINE double scaled_input(const Scaling &scaling, long k, double x, double root, double clip) {
  const double a = (x - scaling.mean[k]) * scaling.scale[k];
  return a != a ? 0 : root * clipped(a, clip);  // (G1)
}

static void scaled(const Problem &p, const Scaling &scaling, Workspace &w, const double *x) {
  const double root = 1 / sqrt(static_cast<double>(p.V.d));
  for (long k = 0; k < p.V.d; ++k) {
    w.xs[k] = scaled_input(scaling, k, x[k], root, CLIP);
    w.xs_linear[k] = scaled_input(scaling, k, x[k], root, CLIP_LINEAR);
  }
}

// The sparse inputs of a row that are there, and not 0.
static void take_sparse(const Problem &p, const double *x, SparseRow &row) {
  constexpr long MANY = 4 * W;
  row.n = 0;
  for (long first = 0; first < p.S; first += MANY) {
    const long end = first + MANY < p.S ? first + MANY : p.S;
    if (end - first == MANY) {
      veci there = {};
#pragma GCC unroll 4
      for (long b = 0; b < MANY; b += W) {
        vec v;
        __builtin_memcpy(&v, x + first + b, sizeof v);
        there |= (v < 0) | (v > 0);
      }
      if (total(there) == 0) continue;
    }
    for (long k = first; k < end; ++k)
      if (x[k] < 0 || x[k] > 0) {  // neither 0 nor missing
        row.place[row.n] = static_cast<double>(k);
        row.value[row.n++] = clipped(x[k], LARGEST_VALUE);
      }
  }
}

OMKL_INLINE long place_of(const SparseRow &row, long j) { return static_cast<long>(row.place[j]); }

static double inverse(double deviation, double mean) {
  return !(deviation <= MIN_RELATIVE_DEVIATION * fabs(mean)) && deviation > MIN_DEVIATION ? 1 / deviation : 0;  // (G2)
}

static void append_first(const Problem &p, FirstRows &first, int64_t row, const double *x, const SparseRow &sparse,
                         double y, double weight) {
  if (row >= FIRST_ROWS) return;
  for (long j = 0; j < sparse.n; ++j) first.sparse[row * p.S + place_of(sparse, j)] = sparse.value[j];
  first.weight[row] = weight;
  for (long k = 0; k < p.V.d; ++k) first.X[row * p.V.d + k] = x[k];
  for (long k = 0; k < p.K; ++k) first.Y[row * p.K + k] = target_value(p, y, k);
}

struct Column {
  double mean, scale;
};

// Of input k in the first n rows.
static Column column_of(const Problem &p, const FirstRows &first, long n, long k) {
  const double *x = first.X + k;
  double count = 0, total = 0, square = 0, raw = 0;
  for (long j = 0; j < n; ++j)
    if (x[j * p.V.d] == x[j * p.V.d]) count += 1, total += x[j * p.V.d], raw += x[j * p.V.d] * x[j * p.V.d];
  const double mean = count > 0 ? total / count : NAN;  // (G2)
  const bool rare = 2 * count <= static_cast<double>(n);
  count = greater(count, 1);
  for (long j = 0; j < n; ++j)
    if (x[j * p.V.d] == x[j * p.V.d]) square += (x[j * p.V.d] - mean) * (x[j * p.V.d] - mean);
  const double scale = inverse(sqrt(square / count), mean);  // (G2)
  const double from_zero = inverse(sqrt(raw / static_cast<double>(n)), 0);
  if (scale == 0 && rare && from_zero > 0) return {0, from_zero};  // (G2)
  return {mean, scale};
}

// `count` is working memory for S numbers.
static void estimate_sparse(const Problem &p, Scaling &scaling, const FirstRows &first, long n, double *count) {
  for (long k = 0; k < p.S; ++k) scaling.sparse[k] = count[k] = 0;
  for (long j = 0; j < n; ++j)
    for (long k = 0; k < p.S; ++k) {
      const double x = first.sparse[j * p.S + k];
      scaling.sparse[k] += x * x;
      count[k] += x != 0 ? 1 : 0;
    }
  for (long k = 0; k < p.S; ++k)
    scaling.sparse[k] = inverse(sqrt(scaling.sparse[k] / greater(count[k], 1)), 0);  // (G58)
}

// After a row between refits: a sparse input that was 0 so far has its first value.
static void update_sparse(Scaling &scaling, const SparseRow &row) {
  for (long j = 0; j < row.n; ++j) {
    double &scale = scaling.sparse[place_of(row, j)];
    if (scale == 0) scale = inverse(fabs(row.value[j]), 0);  // (G59)
  }
}

// The scaling by the first n rows. Returns the old unit of the target over the new one, 1 where there was none.
static double estimate(const Problem &p, Scaling &scaling, const FirstRows &first, long n) {
  const double *Y = first.Y;
  for (long k = 0; k < p.V.d; ++k) {
    const auto [mean, scale] = column_of(p, first, n, k);
    scaling.mean[k] = mean, scaling.scale[k] = scale;
  }
  for (long k = 0; k < p.K; ++k) {
    double total = 0;
    double mass = 0;
    for (long j = 0; j < n; ++j) {
      const double weight = p.classify ? first.weight[j] : 1;
      mass += weight, total += weight * Y[j * p.K + k];
    }
    scaling.shift[k] = total / mass;  // (G3)
  }
  if (p.classify) return 1;
  double square = 0;
  for (long j = 0; j < n; ++j) square += (Y[j] - scaling.shift[0]) * (Y[j] - scaling.shift[0]);
  const double unit = sqrt(square / static_cast<double>(n));  // (G3)
  if (!(inverse(unit, scaling.shift[0]) > 0)) return 1;
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

// Before a row between refits is learned: a target that was constant so far takes its first move as its unit.
static void take_unit(Scaling &scaling, double y) {
  if (scaling.unit > 0) return;
  const double gap = fabs(y - scaling.shift[0]);
  if (inverse(gap, scaling.shift[0]) > 0) scaling.unit = gap;  // (G50)
}

// Whether the scaling fits what has come since

static void reset_block(const Problem &p, Block &block) {
  for (long k = 0; k <= p.V.d; ++k) block.rows[k] = 0, block.mean[k] = 0, block.square[k] = 0;
}

OMKL_INLINE double center_of(const Problem &p, const Scaling &scaling, long k) {
  return k > 0 ? scaling.mean[k - 1] : p.classify ? 0 : scaling.shift[0];
}
OMKL_INLINE double scale_of(const Problem &p, const Scaling &scaling, long k) {
  return k > 0 ? scaling.scale[k - 1] : !p.classify && scaling.unit > 0 ? 1 / scaling.unit : 0;
}

// With one more row. Labels are counted and not judged.
static void update_block(const Problem &p, Block &block, const Scaling &scaling, const double *x, double y) {
  for (long k = 0; k <= p.V.d; ++k) {
    double value = k > 0 ? x[k - 1] : p.classify ? 0 : y;
    if (value != value) continue;
    const double scale = scale_of(p, scaling, k), center = center_of(p, scaling, k), margin = BLOCK_CLIP / scale;
    if (scale > 0) value = lesser(greater(value, center - margin), center + margin);  // (G51)
    block.rows[k] += 1;
    const double gap = value - block.mean[k];
    block.mean[k] += gap / static_cast<double>(block.rows[k]);  // (G51)
    block.square[k] += gap * (value - block.mean[k]);  // (G51)
  }
}

// Whether a set of this age is to be judged by these rows.
static bool is_over(const Block &block, int64_t age) {
  return block.rows[0] >= BLOCK_ROWS && block.rows[0] >= age / BLOCK_DIVISOR;  // (G52)
}

// Whether location and scale are about those of the block; a column that is constant in it may have any scale.
static bool fits(const Problem &p, const Block &block, const Scaling &scaling, const FirstRows &first) {
  for (long k = 0; k <= p.V.d; ++k) {
    const double scale = scale_of(p, scaling, k);
    if (!(scale > 0) || block.rows[k] < BLOCK_VALUES) continue;
    const double deviation = sqrt(block.square[k] / static_cast<double>(block.rows[k]));
    const bool varies = inverse(deviation, block.mean[k]) > 0;
    const bool constant = k > 0 && !(column_of(p, first, FIRST_ROWS, k - 1).scale > 0);
    const double most = constant ? FIRST_CHANGE_MISFIT : MISFIT;
    if (varies && (deviation * scale > most || MISFIT * (deviation * scale) < 1)) return false;  // (G52)
    if (k == 0 && fabs(block.mean[k] - center_of(p, scaling, k)) * scale > MISFIT) return false;  // (G52)
  }
  return true;
}

}  // namespace omkl::graph_mkl::OMKL_ISA
