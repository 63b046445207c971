// As algorithms/sfg_mkl_r.py (Algorithm 2): SFG-MKL on a graph refined by what the nodes are worth.
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

  // Who leads, `lead`, and their equal shares of 1, `s.extra`, as d has it.
  static void count(const State &state, long N, Scratch &s) {
    long leaders = 0;
    for (long i = 0; i < N; ++i) leaders += s.lead[i] = state.d[i] == i;
    for (long i = 0; i < padded(N); ++i) s.extra[i] = i < N && s.lead[i] ? 1 / static_cast<double>(leaders) : 0;
  }

  // d_{i,t} of round t, after u of the node fell. `tenth` is the tenth-largest log u, before and after.
  static void refine(const Problem &problem, State &state, Scratch &s, double &tenth, int64_t t) {
    const long N = problem.V.N;
    const int64_t *order = problem.graph.order;
    uint8_t *lead = s.lead;
    if (problem.beta < 0) {
      // who did not lead, or still does, changes nothing
      if (!lead[state.node] || state.log_u[state.node] >= tenth) return;
      tenth = tenth_largest(state.log_u, N);
      for (long i = 0; i < N; ++i) lead[i] = state.log_u[i] >= tenth;  // (22)
    } else {
      const double xi = xi_at(problem.schedule, t);
      normalised(state.log_u, N, s.p);
      for (long i = 0; i < N; ++i)
        lead[i] = (1 - xi) * s.p[i] >= problem.beta - xi / static_cast<double>(N) - ROUNDING;  // (22)
      lead[heaviest(s.p, N)] = 1;
      bool same = true;
      for (long i = 0; i < N; ++i) same = same && lead[i] == (state.d[i] == i);
      if (same) return;
    }
    for (long i = 0; i < N; ++i) {
      const int64_t *row = order + i * N;
      while (!lead[*row]) ++row;
      state.d[i] = *row;  // (23)
    }
    count(state, N, s);
  }

  static void chances(const Problem &problem, const Shares &shares, int64_t t, Scratch &s) {
    const double xi = xi_at(problem.schedule, t);
    shares.mix(1 - xi, xi, s.extra, s.p);  // (24)
  }

  static long hear(const Problem &problem, const State &state, Scratch &s, const double *x, double &y_hat) {
    const long N = problem.V.N, node = state.node;
    const Graph &graph = problem.graph;
    long n = 0;
    for (int j = graph.out_start[node]; j < graph.out_start[node + 1]; ++j) s.heard[n++] = graph.out_list[j];
    if (state.d[node] == node)
      for (long i = 0; i < N; ++i)
        if (state.d[i] == node && !graph.A[node * N + i]) s.heard[n++] = static_cast<int>(i);
    y_hat = answer(problem.V, state.theta, state.log_w, s, n, x);  // (25)
    return n;
  }

  static void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
    hear(problem, state, s, x, *out);
  }

  static void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
    const auto &[F, graph, descent, schedule, commit, commit_after, beta] = problem;
    Shares shares{state.log_u, s.u, F.N, 0};
    shares.take();
    count(state, F.N, s);
    double tenth = tenth_largest(state.log_u, F.N);
    chances(problem, shares, state.t + 1, s);
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
        s.work[j] = importance(descent, q, eta, weight);
      }
      // u first, as in sfg_mkl.hpp
      const double ell_hat = weight * loss_value(descent.loss, y_hat, y) / greater(s.p[state.node], LEAST);  // (16)
      state.log_u[state.node] -= eta * ell_hat;  // (18b)
      shares.fell(state.node);
      if (commit == Commit::never || t + 1 <= commit_after) refine(problem, state, s, tenth, t + 1);
      chances(problem, shares, t + 1, s);
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
