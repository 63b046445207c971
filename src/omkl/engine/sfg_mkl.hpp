// As algorithms/sfg_mkl.py (Algorithm 1): draw a node, hear its out-neighbours, learn from them.
#pragma once
#include "weights.hpp"

namespace omkl {
namespace OMKL_ISA {

OMKL_INLINE int64_t next_node(Commit commit, int64_t commit_after, const double *log_u, const double *p, long N,
                              int64_t t, double r) {
  if (commit == Commit::never || t <= commit_after) return draw(p, N, r);
  return commit == Commit::argmax ? heaviest(log_u, N) : 0;
}

OMKL_INLINE double chance_to_hear(const Graph &graph, const double *p, long i) {
  double q = 0;
  for (int j = graph.in_start[i]; j < graph.in_start[i + 1]; ++j) q += p[graph.in_list[j]];  // (15)
  return q;
}

struct SfgMklRound {
  static void chances(const SfgMkl::Problem &problem, const Shares &shares, int64_t t, double *p) {
    const double xi = xi_at(problem.schedule, t);
    shares.mix(1 - xi, xi, problem.graph.cover, p);  // (12)
  }

  static long hear(const SfgMkl::Problem &problem, const SfgMkl::State &state, Scratch &s, const double *x,
                   double &y_hat) {
    const int *out = problem.graph.out_list + problem.graph.out_start[state.node];
    const long n = problem.graph.out_start[state.node + 1] - problem.graph.out_start[state.node];
    for (long j = 0; j < n; ++j) s.heard[j] = out[j];
    y_hat = answer(problem.V, state.theta, state.log_w, s, n, x);  // (13)
    return n;
  }

  static void predict(const SfgMkl::Problem &problem, const SfgMkl::State &state, Scratch &s, const double *x,
                      double *out) {
    hear(problem, state, s, x, *out);
  }

  static void run(const SfgMkl::Problem &problem, SfgMkl::State &state, Scratch &s, Chunk &chunk) {
    const auto &[F, graph, descent, schedule, commit, commit_after] = problem;
    Shares shares{state.log_u, s.u, F.N, 0};
    shares.take();
    chances(problem, shares, state.t + 1, s.p);
    for (; chunk.done < chunk.rows; ++chunk.done) {
      const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
      const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
      const int64_t t = state.t + 1;
      const double eta = eta_at(schedule, t);
      double y_hat;
      const long n = hear(problem, state, s, x, y_hat);
      if (!bounded(s.f, n)) return;
      chunk.out[chunk.done] = y_hat;

      for (long j = 0; j < n; ++j) s.work[j] = importance(descent, chance_to_hear(graph, s.p, s.heard[j]), eta, weight);
      // u before w and theta: all that comes next waits for the node, and what the kernels learn can be done meanwhile
      const double ell_hat = weight * loss_value(descent.loss, y_hat, y) / greater(s.p[state.node], LEAST);  // (16)
      state.log_u[state.node] -= eta * ell_hat;  // (18b)
      shares.fell(state.node);
      chances(problem, shares, t + 1, s.p);
      state.node = next_node(commit, commit_after, state.log_u, s.p, F.N, t + 1, chunk.r[chunk.done]);

      for (long j = 0; j < n; ++j) {
        const double h = s.work[j];
        learn(F, descent, s.heard[j], state.theta, state.log_w, s.z + j * 2 * F.P, s.f[j], s.norm[j], y, eta, h, h);
      }
      state.t = t;
      chunk.heard += n;
    }
  }
};

}  // namespace OMKL_ISA
}  // namespace omkl
