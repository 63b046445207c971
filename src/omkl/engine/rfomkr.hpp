// As algorithms/rfomkr.py: OMKR's step and weights on the random features.
#pragma once
#include "omkr.hpp"
#include "raker.hpp"

namespace omkl {
namespace OMKL_ISA {

struct RfomkrRound {
  static void predict(const Rfomkr::Problem &problem, const Rfomkr::State &state, Scratch &s, const double *x,
                      double *out) {
    *out = hear_all(problem.V, state, s, x);
  }

  static void run(const Rfomkr::Problem &problem, Rfomkr::State &state, Scratch &s, Chunk &chunk) {
    const auto &[F, schedule] = problem;
    for (; chunk.done < chunk.rows; ++chunk.done) {
      const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
      const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
      const int64_t t = state.t + 1;
      const double y_hat = hear_all(F, state, s, x);  // (6)
      if (!bounded(s.f, F.N)) return;
      chunk.out[chunk.done] = y_hat;

      const double eta = step_length(schedule, t, weight);
      for (long i = 0; i < F.N; ++i) {
        const double gap = s.f[i] - y;
        state.log_w[i] += weight * LOG_HEDGE * (gap * gap);
        move(F, i, state.theta, s.z + i * 2 * F.P, 1, -eta * gap);
      }
      state.t = t;
      chunk.heard += F.N;
    }
  }
};

}  // namespace OMKL_ISA
}  // namespace omkl
