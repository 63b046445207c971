// As algorithms/graph_mkl/learning.py: what one set of experts learns from a row, and its refits early on.
#pragma once
#include "graph_mkl/mixture.hpp"
#include "graph_mkl/repeats.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// A set of experts that has learned nothing.
// All but scaling and age.
static void reset_learned(const Problem &p, ExpertSet &set) {
  reset_coefficients(p, set.coefficients);
  for (long j = 0; j < p.E * p.stride_stack; ++j) set.stack.R[j] = 0;
  const double ridge = p.classify ? LABEL_STACK_RIDGE : STACK_RIDGE;
  for (long e = 0; e < p.E; ++e) set.stack.R[e * p.stride_stack + e] = 1 / sqrt(ridge), set.stack.theta[e] = 0;
  for (long e = 0; e < p.E; ++e) {
    set.evidence[e] = 0;
    set.noise.level[e] = START_NOISE, set.noise.rounds[e] = 0;
    set.judged.gain[e] = 0, set.judged.signal[e] = no_signal(p);
  }
  for (long e = 0; e <= p.E; ++e) set.judged.step[e] = 0;
  for (long e = 0; e < p.first_large; ++e) set.selection.rank[e] = e;
  set.selection.explorer = 0;
  for (long j = 0; j < FIRST_ROWS * p.V.d; ++j) set.first.X[j] = 0;
  for (long j = 0; j < FIRST_ROWS * p.K; ++j) set.first.Y[j] = 0;
  for (long j = 0; j < FIRST_ROWS; ++j) set.first.weight[j] = 0;
  for (long j = 0; j < FIRST_ROWS * p.S; ++j) set.first.sparse[j] = 0;
  for (long j = 0; j < WINDOW * p.V.d; ++j) set.window.X[j] = 0;
  for (long j = 0; j < WINDOW * p.K; ++j) set.window.Y[j] = 0;
  for (long j = 0; j < WINDOW; ++j) {
    set.window.weight[j] = 0;
    set.window.key[j] = set.window.met[j] = set.window.returned[j] = 0;
  }
  reset_block(p, set.block);
}

static void start_set(const Problem &p, ExpertSet &set) {
  reset_learned(p, set);
  for (long k = 0; k < p.V.d; ++k) set.scaling.mean[k] = 0, set.scaling.scale[k] = 0;
  for (long k = 0; k < p.K; ++k) set.scaling.shift[k] = 0;
  set.scaling.unit = p.classify ? 1 : 0;
  for (long k = 0; k < p.S; ++k) set.scaling.sparse[k] = 0;
  set.age = 0;
}

// A set that has lost a trial: as at the start, but for the scaling, which says what has changed.
static void dismiss_set(const Problem &p, ExpertSet &set) {
  reset_learned(p, set);
  set.age = -1;
}

static bool is_refit_age(int64_t age) {
  for (long at : REFIT_AGES)
    if (age == at) return true;
  return false;
}

// The set as if its first rows, all that it has learned, had been scaled by all of them from the start.
static void refit(const Problem &p, ExpertSet &set, Workspace &w, Evaluations &out) {
  const long n = set.age, d = p.V.d;
  const double ratio = estimate(p, set.scaling, set.first, n);
  estimate_sparse(p, set.scaling, set.first, n, w.first_sparse.value);
  if (!p.classify)
    for (long e = 0; e < p.E; ++e) set.noise.level[e] *= ratio * ratio, set.judged.signal[e] *= ratio * ratio;
  reset_coefficients(p, set.coefficients);
  forget_ahead(p, out.ahead);
  double *z = out.z, *phi = out.phi;
  for (long j = 0; j < n; ++j) {
    const double *Y = set.first.Y + j * p.K;
    scaled(p, set.scaling, w, set.first.X + j * d);
    take_sparse(p, set.first.sparse + j * p.S, w.first_sparse);
    append_memory(p, set.window, j, w.xs, Y, set.first.weight[j]);
    for (long k = 0; k < p.K; ++k) w.target[k] = (Y[k] - set.scaling.shift[k]) / unit_of(set.scaling);  // (G3)
    for (long i = 0; i <= p.maps; ++i) {
      features_of(p, i, w, z);
      const Expert first(p, set.coefficients, first_on(p, i));
      compute_phi(first, z, phi);
      const double dense = dot(phi, phi, first.stride);
      const bool linear = i == p.maps && w.first_sparse.n > 0;
      Sparse sparse = {linear ? &w.first_sparse : nullptr, out.z_sparse, out.phi_sparse, 0};
      if (linear) sparse.leverage = evaluate_sparse(set, w.first_sparse, out);
      for (long b = 0; b < learners_on(p, i); ++b)
        update(p, set, w, first_on(p, i) + b, z, phi, nullptr, sparse, dense + sparse.leverage, w.target,
               {set.first.weight[j], 0, false});
    }
  }
}

// The sparse inputs of the row that has been evaluated, as expert e has them.
static Sparse sparse_of(const Problem &p, const Workspace &w, const Evaluations &out, long e) {
  Sparse sparse = {nullptr, out.z_sparse, out.phi_sparse, 0};
  if (e != p.on_kernels || w.sparse.n == 0) return sparse;
  sparse.row = &w.sparse;
  for (long j = 0; j < w.sparse.n; ++j) sparse.leverage += out.phi_sparse[j] * out.phi_sparse[j];
  return sparse;
}

// P z, which the update of the least squares has computed, for those that follow.
static void keep_Pz(const Workspace &w, Evaluations &out, const Expert &x, long place) {
  if (x.b > 0 || out.has_Pz[x.i]) return;
  for (long j = 0; j < x.stride; j += W) store(out.Pz + place + j, load(w.Pz + j));
  out.has_Pz[x.i] = 1;
}

// The coefficients of an expert that has been evaluated, after that row.
static void update_evaluated(const Problem &p, ExpertSet &set, Workspace &w, Evaluations &out, long e,
                             const Counting &row) {
  if (e >= p.first_memory) return;  // memory and large experts have no coefficients here
  const long i = Expert(p, set.coefficients, e).i, place = i * w.widest;
  const bool changed = update(p, set, w, e, out.z + place, out.phi + place, out.has_Pz[i] ? out.Pz + place : nullptr,
                              sparse_of(p, w, out, e), out.leverage[e], w.target, row);
  if (out.leads) keep_Pz(w, out, Expert(p, set.coefficients, e), place);
  if (changed && i < p.V.N) out.ahead.count[i] = 0, out.ahead.changed[i] = 1;
}

// After a row that stands in the set's memory, and is a copy of the last one or shown again. A copy adds to the weight
// of the row: it is judged by the predictions made before the row was learned. A row that is shown again corrects
// coefficients, and is no evidence.
static void learn_again(const Problem &p, ExpertSet &set, Workspace &w, Evaluations &out, double y, double weight,
                        double relative, bool incumbent, const Recognised &row, int64_t t) {
  const long found = incumbent ? row.found : column_of(set.window, row.key);
  if (found < 0) return;
  const bool copy = row.kind == Kind::copy;
  const double before = copy ? set.window.weight[found] : 0;
  set.window.met[found] = t;
  if (copy) {
    for (long e = 0; e < p.E; ++e) {
      if (set.judged.gain[e] != 0) set.evidence[e] = evidence_moved(p, set.evidence[e], set.judged.gain[e], relative);
      move_noise(p, set, e, relative);
    }
    move_label_stack(p, set.stack, w, set.judged.step, relative);
    set.window.weight[found] = lesser(set.window.weight[found] + weight, MAX_COPIED_WEIGHT);
    const int64_t number = row_in_column(set.age, found);
    if (number < FIRST_ROWS) set.first.weight[number] = lesser(set.first.weight[number] + weight, MAX_COPIED_WEIGHT);
  }
  for (long k = 0; k < p.K; ++k)
    w.target[k] = (target_value(p, y, k) - set.scaling.shift[k]) / unit_of(set.scaling);  // (G3)
  each_selected(p, set, incumbent, w.share,
                [&](long e, bool) { update_evaluated(p, set, w, out, e, {weight, before, !copy, out.follows}); });
}

// After one row, with the selection for the next round; `judged`: whether the evidence for its experts has been
// updated.
static void learn(const Problem &p, ExpertSet &set, Workspace &w, Evaluations &out, double y, double weight,
                  double relative, bool judged, const Large &large, bool incumbent, double uniform,
                  const Recognised &row, int64_t t) {
  const bool known = set.scaling.unit > 0;
  for (long e = 0; e < p.E; ++e) set.judged.gain[e] = 0, set.judged.signal[e] = no_signal(p);
  if (!is_refit_age(set.age + 1)) take_unit(set.scaling, y);
  each_evaluated(p, set, large, incumbent, w.share, [&](long e, bool) {
    if (judged) set.judged.gain[e] = out.score[e];
    if (known) update_noise(p, set, out, w, e, y, relative);
    for (long k = 0; k < p.K; ++k)
      w.target[k] = (target_value(p, y, k) - set.scaling.shift[k]) / unit_of(set.scaling);  // (G3)
    update_evaluated(p, set, w, out, e, {weight, 0, false, out.follows});
  });
  append_first(p, set.first, set.age, w.x, w.sparse, y, weight);
  for (long k = 0; k < p.K; ++k) w.target[k] = target_value(p, y, k);
  scaled(p, set.scaling, w, w.x);
  const long found = incumbent ? row.found : column_of(set.window, row.key);
  append_memory(p, set.window, set.age, w.xs, w.target, weight);
  mark_new(set.window, set.age, row.key, t, found);
  set.age += 1;
  if (is_refit_age(set.age))
    refit(p, set, w, out);
  else
    update_scaling(p, set.scaling, w.x), update_sparse(set.scaling, w.sparse);
  if (set.age > FIRST_ROWS) update_block(p, set.block, set.scaling, w.x, y);
  update_selection(p, set, w, incumbent, uniform);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
