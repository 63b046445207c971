// As algorithms/raker.py: every kernel, every round.
#pragma once
#include "weights.hpp"

namespace omkl {
namespace OMKL_ISA {

// z_i, f_i and |theta_i|^2 of all kernels, and their combination.
OMKL_INLINE double hear_all(const Frequencies &F, const Raker::State &state, Scratch &s, const double *x) {
  for (long i = 0; i < F.N; ++i) s.heard[i] = static_cast<int>(i);
  return answer(F, state.theta, state.log_w, s, F.N, x);  // (6)
}

struct RakerRound {
  static void predict(const Raker::Problem &problem, const Raker::State &state, Scratch &s, const double *x,
                      double *out) {
    *out = hear_all(problem.V, state, s, x);
  }

  static void run(const Raker::Problem &problem, Raker::State &state, Scratch &s, Chunk &chunk) {
    const auto &[F, descent, schedule] = problem;
    for (; chunk.done < chunk.rows; ++chunk.done) {
      const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
      const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
      const int64_t t = state.t + 1;
      const double eta = eta_at(schedule, t);
      const double y_hat = hear_all(F, state, s, x);  // (6)
      if (!bounded(s.f, F.N)) return;
      chunk.out[chunk.done] = y_hat;

      const double h = importance(descent, 1, eta, weight);
      for (long i = 0; i < F.N; ++i)
        learn(F, descent, i, state.theta, state.log_w, s.z + i * 2 * F.P, s.f[i], s.norm[i], y, eta, h, h);
      state.t = t;
      chunk.heard += F.N;
    }
  }
};

}  // namespace OMKL_ISA
}  // namespace omkl
