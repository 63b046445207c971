// As algorithms/graph_mkl/learning.py: what one set of experts learns from a row, and its refits early on.
#pragma once
#include "graph_mkl/mixture.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// A set of experts that has learned nothing.
static void start_set(const Problem &p, ExpertSet &set) {
  reset_coefficients(p, set.coefficients);
  for (long j = 0; j < p.E * p.stride_stack; ++j) set.stack.R[j] = 0;
  for (long e = 0; e < p.E; ++e) set.stack.R[e * p.stride_stack + e] = 1 / sqrt(STACK_RIDGE), set.stack.theta[e] = 0;
  for (long e = 0; e < p.E; ++e) {
    set.evidence[e] = 0;
    set.noise.level[e] = START_NOISE, set.noise.rounds[e] = 0;
    set.selection.rank[e] = e;
  }
  set.selection.explorer = 0;
  for (long k = 0; k < p.V.d; ++k) set.scaling.mean[k] = 0, set.scaling.scale[k] = 0;
  for (long k = 0; k < p.K; ++k) set.scaling.shift[k] = 0;
  set.scaling.unit = p.classify ? 1 : 0;
  for (long j = 0; j < FIRST_ROWS * p.V.d; ++j) set.first.X[j] = 0;
  for (long j = 0; j < FIRST_ROWS * p.K; ++j) set.first.Y[j] = 0;
  for (long j = 0; j < FIRST_ROWS; ++j) set.first.weight[j] = 0;
  for (long j = 0; j < FIRST_ROWS * p.S; ++j) set.first.sparse[j] = 0;
  for (long k = 0; k < p.S; ++k) set.scaling.sparse[k] = 0;
  for (long j = 0; j < WINDOW * p.V.d; ++j) set.window.X[j] = 0;
  for (long j = 0; j < WINDOW * p.K; ++j) set.window.Y[j] = 0;
  reset_block(p, set.block);
  set.age = 0;
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
    for (long e = 0; e < p.E; ++e) set.noise.level[e] *= ratio * ratio;
  reset_coefficients(p, set.coefficients);
  double *z = out.z, *phi = out.phi;
  for (long j = 0; j < n; ++j) {
    const double *Y = set.first.Y + j * p.K;
    scaled(p, set.scaling, w, set.first.X + j * d);
    take_sparse(p, set.first.sparse + j * p.S, w.first_sparse);
    append_memory(p, set.window, j, w.xs, Y);
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
        update(p, set, w, first_on(p, i) + b, z, phi, sparse, dense + sparse.leverage, w.target, set.first.weight[j]);
    }
  }
}

// After one row, with the selection for the next round.
static void learn(const Problem &p, ExpertSet &set, Workspace &w, Evaluations &out, double y, double weight,
                  bool incumbent, double uniform) {
  const bool known = set.scaling.unit > 0;
  if (!is_refit_age(set.age + 1)) take_unit(set.scaling, y);
  each_evaluated(p, set, incumbent, [&](long e, bool) {
    if (known) update_noise(p, set, out, w, e, y);
    for (long k = 0; k < p.K; ++k)
      w.target[k] = (target_value(p, y, k) - set.scaling.shift[k]) / unit_of(set.scaling);  // (G3)
    const long place = Expert(p, set.coefficients, e).i * w.widest;
    Sparse sparse = {nullptr, out.z_sparse, out.phi_sparse, 0};
    if (e == p.on_kernels && w.sparse.n > 0) {
      sparse.row = &w.sparse;
      for (long j = 0; j < w.sparse.n; ++j) sparse.leverage += out.phi_sparse[j] * out.phi_sparse[j];
    }
    update(p, set, w, e, out.z + place, out.phi + place, sparse, out.leverage[e], w.target, weight);
  });
  append_first(p, set.first, set.age, w.x, w.sparse, y, weight);
  for (long k = 0; k < p.K; ++k) w.target[k] = target_value(p, y, k);
  scaled(p, set.scaling, w, w.x);
  append_memory(p, set.window, set.age, w.xs, w.target);
  set.age += 1;
  if (is_refit_age(set.age))
    refit(p, set, w, out);
  else
    update_scaling(p, set.scaling, w.x), update_sparse(set.scaling, w.sparse);
  if (set.age > FIRST_ROWS) update_block(p, set.block, set.scaling, w.x, y);
  update_selection(p, set, w, incumbent, uniform);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
