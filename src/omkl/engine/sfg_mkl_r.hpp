// As rounds/sfg_mkl_r.py (Algorithm 2): SFG-MKL on a graph refined by what the nodes are worth.
// The refined graph is the first one and at most one edge more into each kernel, (d_i, i).
#pragma once
#include "sfg_mkl.hpp"

namespace omkl {
namespace OMKL_ISA {

constexpr long RANK = 10;
constexpr double ROUNDING = 4e-16;

struct SfgMklRRound {
  using Problem = SfgMklR::Problem;
  using State = SfgMklR::State;

  static double tenth_largest(const double *log_u, long N) {
    double top[RANK];
    const long rank = N < RANK ? N : RANK;
    long n = 0;
    for (long i = 0; i < N; ++i) {
      if (n == rank && !(log_u[i] > top[rank - 1])) continue;
      long j = n < rank ? n++ : rank - 1;
      for (; j > 0 && top[j - 1] < log_u[i]; --j) top[j] = top[j - 1];
      top[j] = log_u[i];
    }
    return top[rank - 1];
  }

  // d_{i,t} of round t; `share` holds u / U.
  static void refine(const Problem &problem, State &state, const double *share, uint8_t *lead, int64_t t) {
    const long N = problem.V.N;
    const int64_t *order = problem.graph.order;
    if (problem.beta < 0) {
      const double tenth = tenth_largest(state.log_u, N);
      for (long i = 0; i < N; ++i) lead[i] = state.log_u[i] >= tenth;  // (22)
    } else {
      const double xi = xi_at(problem.schedule, t);
      for (long i = 0; i < N; ++i)
        lead[i] = (1 - xi) * share[i] >= problem.beta - xi / static_cast<double>(N) - ROUNDING;  // (22)
      lead[heaviest(share, N)] = 1;
    }
    for (long i = 0; i < N; ++i) {
      const int64_t *row = order + i * N;
      while (!lead[*row]) ++row;
      state.d[i] = *row;  // (23)
    }
  }

  static void chances(const Problem &problem, const State &state, int64_t t, double *p) {
    const long N = problem.V.N;
    const double xi = xi_at(problem.schedule, t);
    long leaders = 0;
    for (long i = 0; i < N; ++i) leaders += state.d[i] == i;
    const double bonus = xi / static_cast<double>(leaders);
    for (long i = 0; i < N; ++i) p[i] = (1 - xi) * p[i] + (state.d[i] == i ? bonus : 0);  // (24)
  }

  static long hear(const Problem &problem, const State &state, Scratch &s, const double *x, double &y_hat) {
    const auto &[F, graph, descent, schedule, commit, commit_after, beta] = problem;
    const uint8_t *out = graph.A + state.node * F.N;
    long n = 0;
    for (long i = 0; i < F.N; ++i) {
      if (!out[i] && state.d[i] != state.node) continue;
      listen(F, i, state.theta, x, s.z + n * 2 * F.P, s.f[n], s.norm[n]);
      s.heard[n++] = static_cast<int>(i);
    }
    y_hat = combined(state.log_w, s.heard, n, s.f, s.work);  // (25)
    return n;
  }

  static void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
    hear(problem, state, s, x, *out);
  }

  static void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
    const auto &[F, graph, descent, schedule, commit, commit_after, beta] = problem;
    normalised(state.log_u, F.N, s.p);
    chances(problem, state, state.t + 1, s.p);
    for (; chunk.done < chunk.rows; ++chunk.done) {
      const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
      const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
      const int64_t t = state.t + 1;
      const double eta = eta_at(schedule, t);
      double y_hat;
      const long n = hear(problem, state, s, x, y_hat);
      if (!bounded(s.f, n)) return;
      chunk.out[chunk.done] = y_hat;

      for (long j = 0; j < n; ++j) {
        const long i = s.heard[j], mentor = state.d[i];
        double q = chance_to_hear(graph, s.p, i);  // (15)
        if (!graph.A[mentor * F.N + i]) q += s.p[mentor];
        const double h = importance(descent, q, eta, weight);
        learn(F, descent, i, state.theta, state.log_w, s.z + j * 2 * F.P, s.f[j], s.norm[j], y, eta, h, h);
      }
      const double ell_hat = weight * loss_value(descent.loss, y_hat, y) / greater(s.p[state.node], LEAST);  // (16)
      state.log_u[state.node] -= eta * ell_hat;  // (18b)

      state.t = t;
      normalised(state.log_u, F.N, s.p);
      if (commit == Commit::never || t + 1 <= commit_after) refine(problem, state, s.p, s.lead, t + 1);
      chances(problem, state, t + 1, s.p);
      state.node = next_node(commit, commit_after, state.log_u, s.p, F.N, t + 1, chunk.r[chunk.done]);
      chunk.heard += n;
    }
  }
};

}  // namespace OMKL_ISA
}  // namespace omkl
