// As algorithms/graph_mkl/trees.py: the state of the boosted trees.
#pragma once
#include "graph_mkl/archive.hpp"

namespace omkl::graph_mkl {

constexpr long NODES = (1L << TREE_DEPTH) - 1, LEAVES = 1L << TREE_DEPTH, CUTS = TREE_BINS - 1;

struct Trees {
  int64_t *feature;   // [2][T][NODES]
  double *threshold;  // [2][T][NODES]
  double *value;      // [2][T][LEAVES][K]
  double *total, *weight;  // [2][T][LEAVES]; for labels nothing
  double *base;            // [2][K]
  double *ridge;           // [2]
  double *cuts;            // [d][CUTS]
  int64_t *cut_counts;     // [d]
  uint8_t *bins;           // [capacity][d]
  double *fitted;          // [capacity][K]
  int64_t active, rows, unit, started, grown;
  int64_t ensembles, inputs, capacity;  // leading lengths: 2 and d, or 0; most rows of a fit

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    const long T = static_cast<long>(p.trees), online = p.classify ? 0 : T;
    int64_t same[7] = {};
    visitor.rows_array("feature", feature, ensembles, {T, NODES});
    visitor.rows_array("threshold", threshold, same[0], {T, NODES});
    visitor.rows_array("value", value, same[1], {T, LEAVES, p.K});
    visitor.rows_array("total", total, same[2], {online, LEAVES});
    visitor.rows_array("weight", weight, same[3], {online, LEAVES});
    visitor.rows_array("base", base, same[4], {p.K});
    visitor.rows_array("ridge", ridge, same[5], {});
    visitor.rows_array("cuts", cuts, inputs, {CUTS});
    visitor.rows_array("cut_counts", cut_counts, same[6], {});
    for (long k = 0; k < 6; ++k)
      if (same[k] != ensembles) ensembles = -1;
    if (same[6] != inputs) inputs = -1;
    int64_t fitted_rows = 0;
    visitor.rows_array("bins", bins, capacity, {p.V.d});
    visitor.rows_array("fitted", fitted, fitted_rows, {p.K});
    if (fitted_rows != capacity) capacity = -1;
    visitor.number("active", active);
    visitor.number("rows", rows);
    visitor.number("unit", unit);
    visitor.number("started", started);
    visitor.number("grown", grown);
  }

  // Bins of an input in the fit that is running.
  OMKL_ALWAYS_INLINE long bins_of(long k) const {
    const int64_t cuts_here = cut_counts[k];
    return cuts_here < 0 ? 1 : cuts_here < CUTS ? static_cast<long>(cuts_here) + 1 : TREE_BINS;
  }

  // Most rows of a fit that may begin after the next row.
  OMKL_ALWAYS_INLINE int64_t wanted_rows(const Problem &p, const Archive &a) const {
    if (p.trees == 0 || a.rows + 1 < TREE_START) return 0;
    const int64_t most = 3 * p.archive / 4;  // (G76)
    return a.capacity < most ? a.capacity : most;
  }
  OMKL_ALWAYS_INLINE bool has_room(const Problem &p, const Archive &a) const { return capacity >= wanted_rows(p, a); }

  // Features of nodes and bins are bounded where they are used.
  bool valid(const Problem &p, const Archive &a) const {
    const bool arrays = (ensembles == 0 && inputs == 0 && capacity == 0) ||
                        (ensembles == 2 && inputs == p.V.d && capacity >= 0 && capacity <= MAX_ARCHIVE);
    const bool fit = rows == 0 || (rows >= TREE_START && rows <= capacity && rows <= a.capacity && rows <= started);
    return arrays && fit && active >= -1 && active <= 1 && (active < 0 || ensembles == 2) && unit >= 0 &&
           (unit == 0 || unit < p.V.d + p.trees) && started >= 0 && started <= a.rows && grown >= 0 &&
           grown < LARGEST_COUNT - MAX_TREES;
  }
};

OMKL_ALWAYS_INLINE bool ready(const Trees &t) { return t.active >= 0; }

}  // namespace omkl::graph_mkl
