// C++ counterpart of algorithms/rfomkr.py: OMKR's step and weights on random features.
#pragma once
#include "algorithms/omkr.hpp"
#include "problem.hpp"

namespace omkl::rfomkr {

struct Problem {
  Frequencies V;
  Schedule schedule;

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
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

}  // namespace omkl::rfomkr

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::rfomkr::OMKL_ISA {
using namespace omkl::OMKL_ISA;
using omkr::OMKL_ISA::LOG_HEDGE;
using omkr::OMKL_ISA::step_length;

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  *out = predict_all(problem.V, state.theta, state.log_w, s, x);  // (6)
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[F, schedule] = problem;
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const int64_t t = state.t + 1;
    const double y_hat = predict_all(F, state.theta, state.log_w, s, x);  // (6)
    if (!bounded(s.f, F.N)) return;
    chunk.out[chunk.done] = y_hat;

    const double eta = step_length(schedule, t, weight);
    bool usable = true;
    for (long i = 0; i < F.N; ++i) {
      const double gap = s.f[i] - y;
      s.next[i] = state.log_w[i] + weight * LOG_HEDGE * (gap * gap);
      usable &= is_finite(s.next[i]);
    }
    if (!usable) return;
    for (long i = 0; i < F.N; ++i) {
      const double gap = s.f[i] - y;
      state.log_w[i] = s.next[i];
      move_theta(F, i, state.theta, s.z + i * 2 * F.P, 1, -eta * gap);
    }
    state.t = t;
    chunk.evaluated += F.N;
  }
}

}  // namespace omkl::rfomkr::OMKL_ISA
#endif
