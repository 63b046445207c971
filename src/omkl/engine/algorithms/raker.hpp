// C++ counterpart of algorithms/raker.py: every kernel in every round.
#pragma once
#include "problem.hpp"

namespace omkl::raker {

struct Problem {
  Frequencies V;
  Descent descent;
  Schedule schedule;

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    descent = from.descent();
    schedule = from.schedule();
  }
};

struct State {
  double *theta, *log_w;
  int64_t t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.V.N, 2, p.V.D});
    visitor.array("log_w", log_w, {p.V.N});
    visitor.number("t", t);
  }
};

}  // namespace omkl::raker

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::raker::OMKL_ISA {
using namespace omkl::OMKL_ISA;

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  *out = predict_all(problem.V, state.theta, state.log_w, s, x);  // (6)
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[F, descent, schedule] = problem;
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const int64_t t = state.t + 1;
    const double eta = eta_at(schedule, t);
    const double y_hat = predict_all(F, state.theta, state.log_w, s, x);  // (6)
    if (!bounded(s.f, F.N)) return;
    chunk.out[chunk.done] = y_hat;

    const double h = importance(descent, 1, eta, weight);
    bool usable = is_finite(y);
    for (long i = 0; i < F.N; ++i) usable &= weigh(descent, state.log_w[i], s.f[i], s.norm[i], y, eta, h, h, s.next[i]);
    if (!usable) return;
    for (long i = 0; i < F.N; ++i) {
      state.log_w[i] = s.next[i];
      learn(F, descent, i, state.theta, s.z + i * 2 * F.P, s.f[i], s.norm[i], y, eta, h);
    }
    state.t = t;
    chunk.evaluated += F.N;
  }
}

}  // namespace omkl::raker::OMKL_ISA
#endif
