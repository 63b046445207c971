// C++ counterpart of algorithms/omkl_gf.py: M draws with replacement; the distinct kernels among them are evaluated.
#pragma once
#include "problem.hpp"

namespace omkl::omkl_gf {

struct Problem {
  Frequencies V;
  Descent descent;
  Schedule schedule;
  long M;
  int64_t freeze_after;  // negative: never
  bool weighted;

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    descent = from.descent();
    schedule = from.schedule();
    M = from.whole("M");
    from.require(M >= 1, "there must be a draw in every round");
    freeze_after = from.optional_whole("freeze_after");
    weighted = from.flag("weighted");
  }
};

struct State {
  double *theta, *log_w;
  uint8_t *chosen;
  double *q;
  int64_t t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.V.N, 2, p.V.D});
    visitor.array("log_w", log_w, {p.V.N});
    visitor.array("chosen", chosen, {p.V.N});
    visitor.array("q", q, {p.V.N});
    visitor.number("t", t);
  }
  bool valid(const Problem &p) const {
    for (long i = 0; i < p.V.N; ++i)
      if (chosen[i]) return true;
    return false;
  }
};

inline long uniforms(const Problem &p) { return p.M; }

}  // namespace omkl::omkl_gf

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::omkl_gf::OMKL_ISA {
using namespace omkl::OMKL_ISA;

inline void choose(const Problem &problem, State &state, Scratch &s, int64_t t, const double *uniforms) {
  const long N = problem.V.N;
  const double xi = xi_at(problem.schedule, t);
  normalised(state.log_w, N, s.p);
  for (long i = 0; i < N; ++i) s.p[i] = (1 - xi) * s.p[i] + xi / static_cast<double>(N);
  for (long i = 0; i < N; ++i) state.q[i] = s.p[i];
  // q = 1 - (1 - p)^M, without the subtraction that would cancel
  for (long m = 1; m < problem.M; ++m)
    for (long i = 0; i < N; ++i) state.q[i] += s.p[i] * (1 - state.q[i]);
  for (long i = 0; i < N; ++i) state.chosen[i] = 0;
  for (long m = 0; m < problem.M; ++m) state.chosen[draw(s.p, N, uniforms[m])] = 1;
}

// Evaluates the chosen kernels; returns how many they are.
inline long evaluate_chosen(const Problem &problem, const State &state, Scratch &s, const double *x, double &y_hat) {
  long n = 0;
  for (long i = 0; i < problem.V.N; ++i)
    if (state.chosen[i]) s.evaluated[n++] = static_cast<int>(i);
  y_hat = predict_some(problem.V, state.theta, state.log_w, s, n, x);  // (6)
  return n;
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  evaluate_chosen(problem, state, s, x, *out);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[F, descent, schedule, M, freeze_after, weighted] = problem;
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const int64_t t = state.t + 1;
    const double eta = eta_at(schedule, t);
    const long n = evaluate_chosen(problem, state, s, x, chunk.out[chunk.done]);
    if (!bounded(s.f, n)) return;

    bool usable = is_finite(y);
    for (long j = 0; j < n; ++j) {
      const long i = s.evaluated[j];
      const double h = importance(descent, state.q[i], eta, weight);
      const double g = s.work[j] = weighted ? h : importance(descent, 1, eta, weight);
      usable &= weigh(descent, state.log_w[i], s.f[j], s.norm[j], y, eta, h, g, s.next[j]);
    }
    if (!usable) return;
    for (long j = 0; j < n; ++j) {
      const long i = s.evaluated[j];
      state.log_w[i] = s.next[j];
      learn(F, descent, i, state.theta, s.z + j * 2 * F.P, s.f[j], s.norm[j], y, eta, s.work[j]);
    }
    state.t = t;
    if (freeze_after < 0 || t < freeze_after) choose(problem, state, s, t + 1, chunk.uniforms + chunk.done * M);
    chunk.evaluated += n;
  }
}

}  // namespace omkl::omkl_gf::OMKL_ISA
#endif
