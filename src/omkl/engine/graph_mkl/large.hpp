// As algorithms/graph_mkl/large.py: boosted trees and wide least squares, fitted to the rows of an archive.
#pragma once
#include "graph_mkl/mixture.hpp"
#include "graph_mkl/trees.hpp"
#include "graph_mkl/wide.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// What the large experts predict for the row in the workspace, which has been scaled for the incumbent.
static void predict_large(const Problem &p, const Large &large, const Scaling &scaling, Workspace &w) {
  if (ready(large.trees)) {
    find_leaves(p, large.trees, large.trees.active, w.x, w.leaves);
    predict(p, large.trees, w.leaves, w.forecast);
  }
  if (ready(large.wide)) predict(p, large.wide, w.xs, scaling, w.forecast + (p.large - p.wide_experts) * p.K);
}

// Squared errors of the large experts, NaN for those that are not there, and of the prediction.
static void large_losses(const Problem &p, const State &s, Workspace &w, const double *prediction, double y) {
  const ExpertSet &set = s.sets[s.incumbent];
  const Evaluations &out = w.sets[s.incumbent];
  for (long e = 0; e < p.large; ++e) {
    w.losses[e] = NAN;
    if (!is_ready(p, s.large, e)) continue;
    const long expert = p.first_large + e;
    double gap = y - out.mean[expert * p.K];
    if (p.classify) {
      label_probabilities(out.mean + expert * p.K, variance(p, set, expert, out.leverage[expert]), p.K, w.probability);
      gap = 1 - w.probability[static_cast<long>(y)];
    }
    w.losses[e] = gap * gap;  // (G65)
  }
  const double gap = p.classify ? 1 - prediction[static_cast<long>(y)] : y - prediction[0];
  w.losses[p.large] = gap * gap;  // (G65)
}

static void judge_large(const Problem &p, Large &large, const double *losses) {
  for (long e = 0; e <= p.large; ++e)
    if (losses[e] != losses[e]) return;
  large.rounds += 1;
  const double rate = greater(1.0 / LARGE_LOSS_ROUNDS, 1 / static_cast<double>(large.rounds));
  for (long e = 0; e <= p.large; ++e) large.loss[e] += rate * (losses[e] - large.loss[e]);  // (G65)
}

// Whether wide least squares deserve more features. A few they always get; more are for those that come close enough to
// the prediction, and with which a larger ridge, which leaves less to the features, is worse.
static bool wide_is_useful(const Problem &p, const Large &large) {
  if (large.wide.features < WIDE_FREE) return true;
  if (large.rounds == 0 || p.wide_experts == 0) return false;
  const long first = p.large - p.wide_experts;
  bool useful = large.loss[first] <= WIDE_USEFUL * large.loss[p.large];                                 // (G66)
  for (long e = first + 1; e < p.large; ++e) useful &= large.loss[first] <= WIDE_GAIN * large.loss[e];  // (G66)
  return useful;
}

static void learn_trees(const Problem &p, Large &large, Workspace &w, double y, double weight) {
  if (p.large == 0) return;
  judge_large(p, large, w.losses);
  if (ready(large.trees)) learn(p, large.trees, w.leaves, y, weight);
  append(p, large.archive, w.x, y, weight);
  advance(p, large.trees, large.archive);
}

// After `learn_trees`, which has appended the row to the archive.
static void learn_wide(const Problem &p, Large &large, const Scaling &scaling) {
  if (p.large == 0) return;
  large.wide.grow = wide_is_useful(p, large) ? 1 : 0;
  advance(p, large.wide, large.archive, scaling);
}

// For a new incumbent that has learned the last `age` rows.
static void restart_large(const Problem &p, Large &large, int64_t age) {
  if (p.large == 0) return;
  cut(p, large.archive, age);
  restart(p, large.trees), restart(p, large.wide);
  for (long e = 0; e <= p.large; ++e) large.loss[e] = 0;
  large.rounds = 0;
}

}  // namespace omkl::graph_mkl::OMKL_ISA
