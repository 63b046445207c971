// As algorithms/omkl_gf.py: M draws with replacement, the different ones among them are heard.
#pragma once
#include "weights.hpp"

namespace omkl {
namespace OMKL_ISA {

struct OmklGfRound {
  static void choose(const OmklGf::Problem &problem, OmklGf::State &state, Scratch &s, int64_t t, const double *r) {
    const long N = problem.V.N;
    const double xi = xi_at(problem.schedule, t);
    normalised(state.log_w, N, s.p);
    for (long i = 0; i < N; ++i) s.p[i] = (1 - xi) * s.p[i] + xi / static_cast<double>(N);
    for (long i = 0; i < N; ++i) state.q[i] = s.p[i];
    // q = 1 - (1 - p)^M, without the subtraction that would cancel
    for (long m = 1; m < problem.M; ++m)
      for (long i = 0; i < N; ++i) state.q[i] += s.p[i] * (1 - state.q[i]);
    for (long i = 0; i < N; ++i) state.chosen[i] = 0;
    for (long m = 0; m < problem.M; ++m) state.chosen[draw(s.p, N, r[m])] = 1;
  }

  static long hear(const OmklGf::Problem &problem, const OmklGf::State &state, Scratch &s, const double *x,
                   double &y_hat) {
    long n = 0;
    for (long i = 0; i < problem.V.N; ++i)
      if (state.chosen[i]) s.heard[n++] = static_cast<int>(i);
    y_hat = answer(problem.V, state.theta, state.log_w, s, n, x);  // (6)
    return n;
  }

  static void predict(const OmklGf::Problem &problem, const OmklGf::State &state, Scratch &s, const double *x,
                      double *out) {
    hear(problem, state, s, x, *out);
  }

  static void run(const OmklGf::Problem &problem, OmklGf::State &state, Scratch &s, Chunk &chunk) {
    const auto &[F, descent, schedule, M, freeze_after, weighted] = problem;
    for (; chunk.done < chunk.rows; ++chunk.done) {
      const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
      const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
      const int64_t t = state.t + 1;
      const double eta = eta_at(schedule, t);
      const long n = hear(problem, state, s, x, chunk.out[chunk.done]);
      if (!bounded(s.f, n)) return;

      for (long j = 0; j < n; ++j) {
        const long i = s.heard[j];
        const double h = importance(descent, state.q[i], eta, weight);
        const double g = weighted ? h : importance(descent, 1, eta, weight);
        learn(F, descent, i, state.theta, state.log_w, s.z + j * 2 * F.P, s.f[j], s.norm[j], y, eta, h, g);
      }
      state.t = t;
      if (freeze_after < 0 || t < freeze_after) choose(problem, state, s, t + 1, chunk.r + chunk.done * M);
      chunk.heard += n;
    }
  }
};

}  // namespace OMKL_ISA
}  // namespace omkl
