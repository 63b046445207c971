// As algorithms/graph_mkl/selection.py: which experts are evaluated in a round.
#pragma once
#include "../losses.hpp"
#include "graph_mkl/state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

OMKL_INLINE int64_t warm_up(const Problem &p, bool incumbent) {
  const int64_t half = p.warm_up / CHALLENGER_WARM_UP_DIVISOR;
  return incumbent ? p.warm_up : half > 1 ? half : 1;  // (G32)
}

// The share of the rows that their weights count for: where a few are heavy, these decide which expert is best.
OMKL_INLINE double row_share(const Weights &weights) {
  if (!(weights.square > 0)) return 1;
  return greater(weights.mean * weights.mean / weights.square, MIN_ROW_SHARE);  // (G32)
}

// Calls f(e, counted) for every expert of a set that is evaluated and is not large; `counted`: it is part of the
// mixture.
template <class F>
OMKL_INLINE void each_selected(const Problem &p, const ExpertSet &set, bool incumbent, double share, F f) {
  if (set.age < 0) return;
  const bool counted = incumbent || set.age >= SILENT_ROUNDS;  // (G32)
  const double rows = static_cast<double>(set.age) * share, warm = static_cast<double>(warm_up(p, incumbent));
  if (rows < warm || p.active >= p.first_large) {  // (G32)
    for (long e = 0; e < p.first_large; ++e) f(e, counted);
    return;
  }
  for (long j = 0; j < p.active - 1; ++j) f(set.selection.rank[j], counted);
  f(set.selection.explorer, false);
}

// Whether there is a large expert of this number, counted from the first of them.
OMKL_INLINE bool is_ready(const Problem &p, const Large &large, long e) {
  return e < p.large - p.wide_experts ? ready(large.trees) : ready(large.wide);
}

// The same for every expert, the incumbent's large ones last.
template <class F>
OMKL_INLINE void each_evaluated(const Problem &p, const ExpertSet &set, const Large &large, bool incumbent,
                                double share, F f) {
  each_selected(p, set, incumbent, share, f);
  for (long e = 0; incumbent && e < p.large; ++e)
    if (is_ready(p, large, e)) f(p.first_large + e, set.noise.rounds[p.first_large + e] >= SILENT_ROUNDS);  // (G64)
}

// `mark`: 1 does not lead, 3 does not lead and is on a neighbour of a leader's kernel.
static int64_t explore(const Problem &p, const int64_t *rank, uint8_t *mark, double uniform) {
  for (long e = 0; e < p.first_large; ++e) mark[e] = 1;
  for (long j = 0; j < p.active - 1; ++j) mark[rank[j]] = 0;
  long near = 0, others = p.first_large - (p.active - 1);
  for (long j = 0; j < p.active - 1; ++j) {
    const long i = rank[j] / p.B, b = rank[j] % p.B;
    if (i >= p.V.N) continue;
    for (int l = p.graph.out_start[i]; l < p.graph.out_start[i + 1]; ++l) {
      uint8_t &m = mark[p.graph.out_list[l] * p.B + b];
      if (m == 1) m = 3, ++near;
    }
  }
  const bool any_far = near < others;
  const long count = any_far ? others - near : others;
  long pick = static_cast<long>(uniform * static_cast<double>(count));  // (G34)
  if (pick > count - 1) pick = count - 1;
  for (long e = 0; e < p.first_large; ++e)
    if ((any_far ? mark[e] == 1 : mark[e] != 0) && pick-- == 0) return e;
  return 0;
}

// Expert e first, the order of the others as it is: sparse inputs take the linear expert long to learn.
static void lead(int64_t *rank, int64_t e) {
  long j = 0;
  while (rank[j] != e) ++j;
  for (; j > 0; --j) rank[j] = rank[j - 1];
  rank[0] = e;  // (G33)
}

// After a round that brought the set to its age.
static void update_selection(const Problem &p, ExpertSet &set, Workspace &w, bool incumbent, double uniform) {
  const int64_t warm = warm_up(p, incumbent);
  if (set.age < warm || p.active >= p.first_large) return;
  int64_t *rank = set.selection.rank;
  const double *evidence = set.evidence;
  if ((set.age - warm) % RANK_EVERY == 0) {
    for (long e = 0; e < p.first_large; ++e) {
      long j = e;
      for (; j > 0 && evidence[rank[j - 1]] < evidence[e]; --j) rank[j] = rank[j - 1];
      rank[j] = e;  // (G33)
    }
    if (p.S > 0) lead(rank, p.on_kernels);
  }
  set.selection.explorer = explore(p, rank, reinterpret_cast<uint8_t *>(w.mark), uniform);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
