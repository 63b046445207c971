// As algorithms/graph_mkl/trees.py: boosted trees, fitted to the rows of the archive a little with every row.
#pragma once
#include "graph_mkl/tree_fit.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

static void restart(const Problem &, Trees &t) {
  t.active = -1;
  t.rows = t.unit = t.started = 0;
}

// Predictions

// The leaf of a tree that a row falls into; a feature that is not there is taken as the first.
OMKL_INLINE long leaf_of(const Problem &p, const int64_t *feature, const double *threshold, const double *x) {
  long at = 0;
  for (long level = 0; level < TREE_DEPTH; ++level) {
    const auto k = static_cast<uint64_t>(feature[at]);
    at = 2 * at + 1 + (x[k < static_cast<uint64_t>(p.V.d) ? k : 0] >= threshold[at]);  // (G75)
  }
  return at - NODES;
}

// Of every tree of an ensemble the place of the value that it has for a row.
static void find_leaves(const Problem &p, const Trees &t, int64_t which, const double *x, int64_t *places) {
  const long T = static_cast<long>(p.trees), first = static_cast<long>(which) * T;
  for (long tree = 0; tree < T; ++tree) {
    const long nodes = (first + tree) * NODES;
    places[tree] = (first + tree) * LEAVES + leaf_of(p, t.feature + nodes, t.threshold + nodes, x);
  }
}

static void predict(const Problem &p, const Trees &t, const int64_t *places, double *mean) {
  for (long k = 0; k < p.K; ++k) mean[k] = t.base[t.active * p.K + k];
  for (long tree = 0; tree < p.trees; ++tree)
    for (long k = 0; k < p.K; ++k) mean[k] += t.value[places[tree] * p.K + k];  // (G75)
}

// A row for the leaves of an ensemble that it falls into.
static void show(const Problem &p, Trees &t, int64_t which, const int64_t *places, double y, double weight) {
  double mean = t.base[which];
  for (long tree = 0; tree < p.trees; ++tree) {
    const int64_t place = places[tree];
    const double residual = y - mean;                                                  // (G82)
    mean += t.value[place];
    t.total[place] += weight * residual;                                               // (G82)
    t.weight[place] += weight;                                                         // (G82)
    t.value[place] = TREE_RATE * t.total[place] / (t.weight[place] + t.ridge[which]);  // (G82)
  }
}

static void learn(const Problem &p, Trees &t, const int64_t *places, double y, double weight) {
  if (!p.classify) show(p, t, t.active, places, y, weight);
}

// Fits

OMKL_INLINE int64_t new_ensemble(const Trees &t) { return t.active == 0 ? 1 : 0; }

// Whether enough rows have come since the last fit began.
static bool is_due(const Problem &p, const Trees &t, const Archive &a) {
  const double growth = TREE_GROWTH[p.classify ? 1 : 0] * static_cast<double>(t.started);
  const double refresh = TREE_REFRESH * static_cast<double>(p.archive);
  return static_cast<double>(a.rows - t.started) >= (growth < refresh ? growth : refresh);  // (G76)
}

// The rows of a fit, in order.
struct TreeRows {
  const Problem &p;
  const Archive &a;
  long n;
  const double *y, *weight;  // [n]
  double mean_weight;
  double size;  // of the largest weighted target: residuals that are much smaller are rounding
};

static void start_ensemble(const TreeRows &rows, double *base, double *fitted) {
  const long K = rows.p.K;
  for (long k = 0; k < K; ++k) base[k] = 0;
  double whole = 0;
  for (long i = 0; i < rows.n; ++i) {
    whole += rows.weight[i];
    if (rows.p.classify)
      base[static_cast<long>(rows.y[i])] += rows.weight[i];  // (G78)
    else
      base[0] += rows.weight[i] * rows.y[i];                                  // (G78)
  }
  const double least = 0.5 / static_cast<double>(rows.n + K);
  for (long k = 0; k < K; ++k) {
    base[k] /= whole;
    if (rows.p.classify) base[k] = std::log(base[k] > least ? base[k] : least);  // (G78)
  }
  for (long i = 0; i < rows.n; ++i)
    for (long k = 0; k < K; ++k) fitted[i * K + k] = base[k];
}

// Probabilities of labels in n rows; `out`, aligned, is written up to a whole register.
static void softmax(const double *fitted, long n, long K, double *out) {
  for (long i = 0; i < n; ++i) {
    double most = fitted[i * K];
    for (long k = 1; k < K; ++k) most = fitted[i * K + k] > most ? fitted[i * K + k] : most;
    for (long k = 0; k < K; ++k) out[i * K + k] = fitted[i * K + k] - most;
  }
  for (long i = n * K; i < padded(n * K); ++i) out[i] = 0;
  for (long i = 0; i < n * K; i += W) store(out + i, exp_below_zero(load(out + i)));
  for (long i = 0; i < n; ++i) {
    double sum = 0;
    for (long k = 0; k < K; ++k) sum += out[i * K + k];
    const double share = 1 / sum;
    for (long k = 0; k < K; ++k) out[i * K + k] *= share;
  }
}

OMKL_INLINE double rounded_to(double value, double least, double most) {  // NaN becomes the least
  value = std::floor(value + TREE_ROUNDING);
  return value > least ? (value < most ? value : most) : least;
}

// What splits are searched with, S numbers of each row; `probability` is that of its labels, `signs` is memory.
template <long S>
static void project(const TreeRows &rows, int64_t tree, const double *fitted, double *probability, double *signs,
                    double *out) {
  const long n = rows.n, K = rows.p.K;
  if (!rows.p.classify) {
    for (long i = 0; i < n; ++i) out[i] = rows.weight[i] * (rows.y[i] - fitted[i]);  // (G79)
    return;
  }
  for (long s = 0; s < S; ++s) {
    double sum = 0;
    for (long k = 0; k < K; ++k) {
      double &sign = signs[s * K + k];
      sign = K <= TREE_SKETCH ? s == k : hashed(tree, TREE_SIGN_STEP * (1 + s) + k) & 1 ? 1 : -1;  // (G71)
      sum += sign;
    }
    if (K > TREE_SKETCH && std::fabs(sum) == static_cast<double>(K)) signs[s * K + s] *= -1;  // (G71)
  }
  constexpr long BLOCK = 64;  // rows that stay in the cache; whole registers
  for (long from = 0; from < n; from += BLOCK) {
    const long to = from + BLOCK < n ? from + BLOCK : n;
    softmax(fitted + from * K, to - from, K, probability + from * K);
    for (long i = from; i < to; ++i) {
      const double *p = probability + i * K;
      const long label = static_cast<long>(rows.y[i]);
      for (long s = 0; s < S; ++s) {
        double sum = signs[s * K + label];
        for (long k = 0; k < K; ++k) sum -= signs[s * K + k] * p[k];
        out[i * S + s] = rows.weight[i] * sum;  // (G71) (G79)
      }
    }
  }
}

template <long S>
static void make_cells(const TreeRows &rows, const double *projected, typename Cells<S>::Cell *cells) {
  const long n = rows.n;
  const long bound = TREE_LARGEST_SUM / n;
  const auto quanta = static_cast<double>(bound < TREE_QUANTA ? bound : TREE_QUANTA);  // (G72)
  double largest = 0;
  for (long i = 0; i < n * S; ++i) largest = std::fabs(projected[i]) > largest ? std::fabs(projected[i]) : largest;
  const double small = MIN_RELATIVE_DEVIATION * rows.size, least = small > MIN_DEVIATION ? small : MIN_DEVIATION;
  const double scale = largest > least && largest < INFINITY ? quanta / largest : 0;  // (G72)
  for (long i = 0; i < n; ++i) {
    int32_t q[S];
    for (long s = 0; s < S; ++s)
      q[s] = static_cast<int32_t>(rounded_to(projected[i * S + s] * scale, -quanta, quanta));  // (G72)
    const double weight = TREE_WEIGHT * rows.weight[i] / rows.mean_weight;                    // (G72)
    cells[i] = Cells<S>::cell(static_cast<int32_t>(rounded_to(weight, 0, static_cast<double>(TREE_WEIGHT * n))), q);
  }
}

// Values of the leaves, and what the trees predict for the rows with them; the fit ends if one is not finite.
// `sums` has room for 2 K.
template <long S>
static void fill_leaves(const TreeRows &rows, const Growth<S> &grown, Trees &t, long tree, const double *residual,
                        const double *probability, double *sums) {
  const bool labels = rows.p.classify;
  const long K = rows.p.K;
  double *__restrict total = sums, *__restrict whole = sums + K;
  const double ridge = t.ridge[new_ensemble(t)];
  const double rate = labels ? TREE_RATE * static_cast<double>(K - 1) / static_cast<double>(K) : TREE_RATE;  // (G80)
  bool finite = true;
  for (long v = 0; v < LEAVES; ++v) {
    for (long k = 0; k < K; ++k) total[k] = whole[k] = 0;
    for (long i = grown.begin[v]; i < grown.end[v]; ++i) {
      const long row = grown.order[i];
      const double weight = rows.weight[row], *p = probability + row * K;
      if (!labels) {
        total[0] += residual[row], whole[0] += weight;  // (G79)
        continue;
      }
      for (long k = 0; k < K; ++k) total[k] -= weight * p[k], whole[k] += weight * p[k] * (1 - p[k]);  // (G79)
      total[static_cast<long>(rows.y[row])] += weight;                                               // (G79)
    }
    double *value = t.value + (tree * LEAVES + v) * K;
    for (long k = 0; k < K; ++k) {
      value[k] = rate * total[k] / (whole[k] + ridge);  // (G80)
      finite = finite && std::isfinite(value[k]);
    }
    if (!labels) t.total[tree * LEAVES + v] = total[0], t.weight[tree * LEAVES + v] = whole[0];
  }
  if (!finite) {
    for (long i = 0; i < LEAVES * K; ++i) t.value[tree * LEAVES * K + i] = 0;
    for (long v = 0; v < LEAVES && !labels; ++v) t.total[tree * LEAVES + v] = t.weight[tree * LEAVES + v] = 0;
    t.rows = t.unit = 0;
    return;
  }
  t.grown += 1;
  double *__restrict fitted = t.fitted;
  for (long v = 0; v < LEAVES; ++v) {
    const double *__restrict value = t.value + (tree * LEAVES + v) * K;
    for (long i = grown.begin[v]; i < grown.end[v]; ++i)
      for (long row = grown.order[i], k = 0; k < K; ++k) fitted[row * K + k] += value[k];  // (G81)
  }
}

// Tree number `number` of the ensemble that is being fitted.
template <long S>
static void fit_tree(const TreeRows &rows, Trees &t, long number, double *memory) {
  const Problem &p = rows.p;
  const long n = rows.n, K = p.K, d = p.V.d;
  const int64_t which = new_ensemble(t);
  const long tree = which * static_cast<long>(p.trees) + number;
  auto cut = [&](long doubles) __attribute__((always_inline)) {
    double *here = memory;
    memory += padded(doubles);
    return here;
  };
  typedef typename Cells<S>::Cell Cell;
  double *projected = cut(n * S), *probability = cut(p.classify ? n * K : 0), *work = cut((S > 2 ? S : 2) * K);
  auto *inputs = reinterpret_cast<int32_t *>(cut(d / 2 + 1)), *widths = reinterpret_cast<int32_t *>(cut(d / 2 + 1));
  auto *offsets = reinterpret_cast<int32_t *>(cut(d / 2 + 1));
  auto *order = reinterpret_cast<int32_t *>(cut(n / 2 + 1)), *other = reinterpret_cast<int32_t *>(cut(n / 2 + 1));
  auto *cells = reinterpret_cast<Cell *>(cut(n * static_cast<long>(sizeof(Cell) / sizeof(double))));
  auto *histograms = reinterpret_cast<Cell *>(memory);

  t.ridge[which] = rows.mean_weight * (p.classify ? TREE_LABEL_RIDGE : TREE_RIDGE);  // (G80)
  if (number == 0) start_ensemble(rows, t.base + which * K, t.fitted);
  project<S>(rows, t.grown, t.fitted, probability, work, projected);
  make_cells<S>(rows, projected, cells);
  const long low = n / TREE_LEAST_SHARE < TREE_LEAST_ROWS[0] ? TREE_LEAST_ROWS[0] : n / TREE_LEAST_SHARE;
  const long least = TREE_WEIGHT * (low < TREE_LEAST_ROWS[1] ? low : TREE_LEAST_ROWS[1]);  // (G74)
  const long F = inputs_of(p, t, inputs);
  offsets[0] = 0;
  for (long j = 0; j < F; ++j) {
    widths[j] = static_cast<int32_t>(padded(t.bins_of(inputs[j])));
    offsets[j + 1] = offsets[j] + widths[j];
  }
  Growth<S> growth{t.bins,
                   d,
                   F,
                   inputs,
                   widths,
                   offsets,
                   cells,
                   order,
                   other,
                   histograms,
                   static_cast<double>(least),
                   t.cuts,
                   t.feature + tree * NODES,
                   t.threshold + tree * NODES,
                   {},
                   {}};
  growth.grow(n);
  fill_leaves<S>(rows, growth, t, tree, projected, probability, work);
}

// Doubles of working memory for a fit of n rows.
static long tree_scratch(const Problem &p, long n) {
  const long S = TREE_SKETCH, F = p.V.d < TREE_INPUTS[1] ? p.V.d : TREE_INPUTS[1];
  return 8 * padded(n) + padded(n * p.K) + padded(n * S) + padded(S * p.K) + 3 * padded(p.V.d) +
         TREE_DEPTH * F * TREE_BINS * 2 + 16 * LANES;
}

static void do_unit(const Problem &p, Trees &t, const Archive &a) {
  const long n = static_cast<long>(t.rows), d = p.V.d, unit = static_cast<long>(t.unit);
  double *memory = tree_memory.at_least(tree_scratch(p, n));
  t.unit += 1;
  if (unit < d) return bin_input(p, t, a, unit, memory);
  double *y = memory, *weight = memory + padded(n), sum = 0;
  copy_rows(t, a, a.y, 1, y), copy_rows(t, a, a.weight, 1, weight);
  double size = 0;
  for (long i = 0; i < n; ++i) {
    const double target = p.classify ? weight[i] : std::fabs(weight[i] * y[i]);
    sum += weight[i], size = target > size ? target : size;
  }
  const TreeRows rows{p, a, n, y, weight, sum / static_cast<double>(n), size};
  memory += 2 * padded(n);
  if (p.classify && p.K > 2)
    fit_tree<3>(rows, t, unit - d, memory);
  else
    fit_tree<1>(rows, t, unit - d, memory);
}

// The new ensemble learns the rows that have come since the fit began, and then predicts.
static void finish(const Problem &p, Trees &t, const Archive &a) {
  const int64_t which = new_ensemble(t), oldest = a.rows - a.capacity;
  int64_t places[MAX_TREES];
  if (!p.classify)
    for (int64_t row = t.started > oldest ? t.started : oldest; row < a.rows; ++row) {
      const int64_t j = row % a.capacity;
      find_leaves(p, t, which, a.X + j * p.V.d, places);
      show(p, t, which, places, a.y[j], a.weight[j]);
    }
  t.active = which;
  t.rows = t.unit = 0;
}

static void advance(const Problem &p, Trees &t, const Archive &a) {
  if (t.rows == 0) {
    int64_t n = t.wanted_rows(p, a);
    n = n < a.rows ? n : a.rows;
    n = n < t.capacity ? n : t.capacity;
    if (n < TREE_START || !is_due(p, t, a)) return;
    t.rows = n, t.unit = 0, t.started = a.rows;
  }
  const int64_t units = p.V.d + p.trees;
  for (int64_t k = (TREE_SPREAD * units + t.rows - 1) / t.rows; k > 0 && t.rows > 0; --k) {  // (G77)
    do_unit(p, t, a);
    if (t.rows > 0 && t.unit >= units) finish(p, t, a);
  }
}

}  // namespace omkl::graph_mkl::OMKL_ISA
