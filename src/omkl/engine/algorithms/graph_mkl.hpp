// C++ counterpart of algorithms/graph_mkl: a mixture of least squares, gradient and memory experts on a dictionary of
// kernels. graph_mkl/ has the parts.
#pragma once
#include "graph_mkl/state.hpp"

#ifdef OMKL_ISA
#include "graph_mkl/change.hpp"
#include "graph_mkl/intervals.hpp"
#include "graph_mkl/large.hpp"
#include "graph_mkl/learning.hpp"
#include "graph_mkl/several.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// Experts, mixture and stacking for one row.
static void evaluate(const Problem &p, const State &s, Scratch &scratch, Workspace &w, const double *x) {
  double *prediction = w.prediction;
  for (long k = 0; k < p.V.d; ++k) w.x[k] = clipped(x[k], LARGEST_VALUE);
  take_sparse(p, x + p.V.d, w.sparse);
  w.share = row_share(s.weights);
  w.finite = true;
  w.evaluated = 0;
  for (long g = 0; g < 2; ++g) {
    const ExpertSet &set = s.sets[g];
    Evaluations &out = w.sets[g];
    for (long i = 0; i <= p.maps; ++i) scratch.flags[i] = 0;
    if (set.age >= 0) scaled(p, set.scaling, w, w.x);
    if (set.age >= 0 && w.coming) begin_row(p, set, w, out.ahead);
    if (g == s.incumbent) predict_large(p, s.large, set.scaling, w);
    each_evaluated(p, set, s.large, g == s.incumbent, w.share, [&](long e, bool) {
      evaluate(p, set, w, out, e, scratch.flags);
      w.finite = w.finite && bounded(out.mean + e * p.K, p.K) && is_finite(out.leverage[e]);
      ++w.evaluated;
    });
  }
  mixture_weights(p, s, w);
  mix(p, s, w, prediction);
  if (p.stack && p.classify) stack_labels(p, s, w, prediction);
  if (p.stack && !p.classify) prediction[0] = stacked(p, s, w, prediction[0], prediction[1]);
  if (!p.classify) prediction[1] = reported(s.calibration, w);
}

inline void predict(const Problem &p, const State &s, Scratch &scratch, const double *x, double *out) {
  Workspace w(p, scratch.extra);
  w.coming = nullptr;
  evaluate(p, s, scratch, w, x);
  for (long k = 0; k < outputs(p); ++k) out[k] = w.prediction[k];
  *w.kept = w;
}

// Whether the row that was predicted last is this one; then the workspace is as it was after that.
static bool take_predicted(const Problem &p, Workspace &w, const double *x) {
  const Workspace &last = *w.kept;
  take_sparse(p, x + p.V.d, w.first_sparse);
  const auto differ = [](const double *a, const double *b, long n) {
    return __builtin_memcmp(a, b, static_cast<size_t>(n) * sizeof *a) != 0;
  };
  const SparseRow &row = w.first_sparse;
  if (row.n != last.sparse.n || differ(row.place, last.sparse.place, row.n) ||
      differ(row.value, last.sparse.value, row.n))
    return false;
  for (long k = 0; k < p.V.d; ++k) {
    const double value = clipped(x[k], LARGEST_VALUE);
    if (differ(&value, last.x + k, 1)) return false;
  }
  w = last;
  return true;
}

static void end_trial(const Problem &p, State &s, int64_t winner) {
  dismiss_set(p, s.sets[1 - winner]);
  s.incumbent = winner;
  s.trend = {};
}

// After the error of a round: a challenger may start, or its trial end.
static void follow_change(const Problem &p, State &s, const Workspace &w, double error) {
  const int64_t g = s.incumbent, other = 1 - g;
  ExpertSet &incumbent = s.sets[g];
  update_trend(s.trend, error, incumbent.age, unit_of(incumbent.scaling));
  const double unit = incumbent.scaling.unit;
  bool misfit = false;
  if (is_over(incumbent.block, incumbent.age)) {
    misfit = !fits(p, incumbent.block, incumbent.scaling, incumbent.first);
    reset_block(p, incumbent.block);
  }
  if (s.sets[other].age >= 0) {
    double weight[2] = {0, 0};
    for (long set = 0; set < 2; ++set)
      for (long e = 0; e < p.E; ++e) weight[set] += w.sets[set].weight[e];
    update_trial(s.trial, weight[g], weight[other]);
  }
  switch (verdict(p, s.trend, s.trial, s.sets[other].age, unit, misfit)) {
    case Verdict::none:
      break;
    case Verdict::keep:
      end_trial(p, s, g);
      break;
    case Verdict::replace:
      restart_large(p, s.large, s.sets[other].age);
      end_trial(p, s, other);
      break;
    case Verdict::start:
      start_set(p, s.sets[other]), s.trial = {};
      break;
  }
}

// Of what targets do alone and in a group there is one copy each: where it was inlined, the compiler could round
// differently.
#define OMKL_ONE_COPY static __attribute__((noinline))

// Predicts a row; false where it cannot be learned. The state stays as it is.
OMKL_ONE_COPY bool attempt(const Problem &p, const State &s, Scratch &scratch, Workspace &w, const Chunk &chunk,
                           Row &row) {
  row.y = clipped(chunk.y[chunk.done], LARGEST_VALUE);
  const double *x = chunk.X + chunk.done * (p.V.d + p.S);
  if (!(scratch.predicted && take_predicted(p, w, x))) {
    w.coming = x, w.row = chunk.done, w.left = chunk.rows - chunk.done;
    evaluate(p, s, scratch, w, x);
  }
  scratch.predicted = false;
  double *prediction = chunk.out + chunk.done * outputs(p);
  for (long k = 0; k < outputs(p); ++k) prediction[k] = w.prediction[k];
  if (!w.finite) return false;
  row.weight = chunk.weight ? chunk.weight[chunk.done] : 1;
  row.known = s.sets[s.incumbent].scaling.unit > 0;
  row.seen = {};
  if (row.weight == 0) return true;
  if (!is_finite(row.y) || !s.has_room(p)) return false;
  row.seen = recognise(p, s, w.x, w.sparse, row.y);
  const bool again = row.seen.kind == Kind::again;
  row.means = again ? s.weights : means_after(s.weights, s.t, row.weight, row.seen.weight);
  row.relative = again ? 0 : relative_weight(row.means, row.weight);
  return !row.is_new() || !row.known || score(p, s, w, row.y, row.relative);
}

// After an attempt. Wide least squares, intervals and changes come later, and only where the row is new.
OMKL_ONE_COPY void learn(const Problem &p, State &s, Workspace &w, Chunk &chunk, const Row &row) {
  const double *uniform = chunk.uniforms + 2 * chunk.done, *prediction = chunk.out + chunk.done * outputs(p);
  const double y = row.y, weight = row.weight, relative = row.relative;
  if (row.is_new() && row.known) update_evidence(p, s, w, relative);
  chunk.evaluated += w.evaluated;
  if (chunk.extra) write_extra(p, s, chunk.extra + chunk.done * extras(p));
  if (weight == 0) return;
  s.repeats = row.seen.evidence, s.weights = row.means;
  if (!row.is_new()) {
    if (row.seen.kind == Kind::copy && is_last(s.sets[s.incumbent], row.seen.found))
      make_heavier(s.large.archive, weight);
    for (long g = 0; g < 2; ++g)
      if (s.sets[g].age >= 0)
        learn_again(p, s.sets[g], w, w.sets[g], y, weight, relative, g == s.incumbent, row.seen, s.t);
    return;
  }
  for (long g = 0; g < 2; ++g)
    if (s.sets[g].age >= 0) {
      Stack &stack = s.sets[g].stack;
      if (p.stack && p.classify) update_label_stack(p, s.sets[g], w, w.sets[g].differences, y, relative);
      if (p.stack && !p.classify) update_stack(p, stack, w, w.sets[g].differences, y, lesser(weight, 1));
      if (g == s.incumbent) large_losses(p, s, w, prediction, y);
      learn(p, s.sets[g], w, w.sets[g], y, weight, relative, row.known, s.large, g == s.incumbent, uniform[g], row.seen,
            s.t);
    }
  learn_trees(p, s.large, w, y, weight);
}

// Intervals and changes, after a row that is new.
OMKL_ONE_COPY void follow(const Problem &p, State &s, const Workspace &w, const Chunk &chunk, const Row &row) {
  const double *prediction = chunk.out + chunk.done * outputs(p);
  double gap;
  if (p.classify) {
    gap = 1 - prediction[static_cast<long>(row.y)];
  } else {
    gap = row.y - prediction[0];
    if (row.known) update_calibration(s.calibration, w, gap);
  }
  follow_change(p, s, w, gap * gap);
}

OMKL_ONE_COPY void learn_whole(const Problem &p, State &s, Workspace &w, Chunk &chunk, const Row &row) {
  learn(p, s, w, chunk, row);
  if (row.is_new()) {
    learn_wide(p, s.large, s.sets[s.incumbent].scaling);
    follow(p, s, w, chunk, row);
  }
  ++s.t, ++chunk.done;
}

inline void run(const Problem &p, State &s, Scratch &scratch, Chunk &chunk) {
  Workspace w(p, scratch.extra);
  Row row = {};
  for (Evaluations &out : w.sets) forget_ahead(p, out.ahead);
  while (chunk.done < chunk.rows && attempt(p, s, scratch, w, chunk, row)) learn_whole(p, s, w, chunk, row);
}

// Several targets

// One row for all of a group; false where the group has ended, before the row or with it.
static bool learn_row(const Problem &p, Target *const *group, long n, Scratch &scratch) {
  const Chunk &first = group[0]->chunk;
  const bool counts = !first.weight || first.weight[first.done] != 0;
  bool room = true, usable = true;
  for (long k = 0; counts && k < n; ++k) room = room && group[k]->state.has_room(p);
  for (long k = 0; k < n; ++k) {
    Target &t = *group[k];
    t.stopped = !room || !attempt(p, t.state, scratch, t.w, t.chunk, t.row);
    usable = usable && !t.stopped;
  }
  const bool together = usable && is_same_for_all(group, n), is_new = group[0]->row.is_new();
  if (!together) end_group(p, group, n);
  for (long k = 0; usable && k < n; ++k) {
    Target &t = *group[k];
    if (together)
      learn(p, t.state, t.w, t.chunk, t.row);
    else
      learn_whole(p, t.state, t.w, t.chunk, t.row);
  }
  if (!together) return false;
  if (is_new) learn_wide(p, group, n);
  const bool ends = is_new && any_trial_ends(p, group, n);
  if (ends) end_group(p, group, n);
  for (long k = 0; k < n; ++k) {
    Target &t = *group[k];
    if (is_new) follow(p, t.state, t.w, t.chunk, t.row);
    ++t.state.t, ++t.chunk.done;
  }
  return !ends;
}

// One target by itself, at first no further than to where its scaling is final and it may become part of a group.
static void run_alone(const Problem &p, Target &t, Scratch &scratch) {
  const long rows = t.chunk.rows, left = FIRST_ROWS - incumbent_of(t.state).age;
  if (left > 0 && t.chunk.done + left < rows) t.chunk.rows = t.chunk.done + left;
  run(p, t.state, scratch, t.chunk);
  t.stopped = t.chunk.done < t.chunk.rows;
  t.chunk.rows = rows;
}

inline void run_several(const Problem &p, State *const *states, Chunk *chunks, long n, Scratch &scratch,
                        double *memory) {
  Targets targets(p, states, chunks, n, memory);
  while (const long size = take_group(p, targets)) {
    if (size == 1) {
      run_alone(p, *targets.group[0], scratch);
      continue;
    }
    form_group(p, targets.group, size);
    const Chunk &first = targets.group[0]->chunk;
    bool together = true;
    while (together && first.done < first.rows) together = learn_row(p, targets.group, size, scratch);
    if (together) end_group(p, targets.group, size);
  }
}

}  // namespace omkl::graph_mkl::OMKL_ISA
#endif
