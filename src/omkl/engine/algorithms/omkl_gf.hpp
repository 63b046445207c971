// C++ counterpart of algorithms/omkl_gf.py: M draws with replacement for each of J nodes; the distinct kernels of the
// node that is drawn are evaluated.
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
  long J;
  double least_q;

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    descent = from.descent();
    schedule = from.schedule();
    M = from.whole("M");
    from.require(M >= 1, "there must be a draw in every round");
    freeze_after = from.optional_whole("freeze_after");
    weighted = from.flag("weighted");
    J = from.whole("J");
    from.require(J >= 1, "there must be a selective node");
    least_q = from.number("least_q");
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

inline long uniforms(const Problem &p) { return p.J == 1 ? p.M : p.J * p.M + 1; }

// q and links of every node, and the probabilities of the nodes.
inline long scratch(const Problem &p) { return p.J == 1 ? 0 : 2 * p.J * padded(p.V.N) + padded(p.J) + padded(p.V.N); }

}  // namespace omkl::omkl_gf

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::omkl_gf::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// p of a node that explores by xi, from w in s.p, in which it stays; and q = 1 - (1 - p)^M of every kernel, without the
// subtraction that would cancel.
inline void node(const Problem &problem, Scratch &s, double xi, double *q) {
  const long N = problem.V.N;
  for (long i = 0; i < N; ++i) q[i] = s.p[i] = (1 - xi) * s.p[i] + xi / static_cast<double>(N);  // (F1)
  for (long m = 1; m < problem.M; ++m)
    for (long i = 0; i < N; ++i) q[i] += s.p[i] * (1 - q[i]);  // (F2)
}

// The subset of one of several nodes.
inline void choose_node(const Problem &problem, State &state, Scratch &s, double xi, const double *uniforms) {
  const long N = problem.V.N, Np = padded(N), M = problem.M, J = problem.J;
  double *q = s.extra, *linked = q + J * Np, *nodes = linked + J * Np, *w = nodes + padded(J);
  for (long i = 0; i < Np; ++i) w[i] = s.p[i];
  double all = 0, explored = 1;
  for (long j = 0; j < padded(J); ++j) nodes[j] = 0;
  for (long j = 0; j < J; ++j) {
    explored *= xi;
    for (long i = 0; i < Np; ++i) s.p[i] = w[i], linked[j * Np + i] = 0;
    node(problem, s, explored, q + j * Np);
    for (long m = 0; m < M; ++m) linked[j * Np + draw(s.p, N, uniforms[j * M + m])] = 1;
    for (long i = 0; i < N; ++i) nodes[j] += linked[j * Np + i] * w[i];
    all += nodes[j];
  }
  if (!(all > 0)) {  // every node drew kernels only whose weights are 0 to rounding
    all = static_cast<double>(J);
    for (long j = 0; j < J; ++j) nodes[j] = 1;
  }
  for (long j = 0; j < J; ++j) nodes[j] = (1 - xi) * nodes[j] / all + xi / static_cast<double>(J);  // (F3)
  const long drawn = draw(nodes, J, uniforms[J * M]);
  for (long i = 0; i < N; ++i) {
    state.chosen[i] = linked[drawn * Np + i] != 0;
    state.q[i] = 0;
    for (long j = 0; j < J; ++j) state.q[i] += nodes[j] * q[j * Np + i];  // (F4)
  }
}

inline void choose(const Problem &problem, State &state, Scratch &s, int64_t t, const double *uniforms) {
  const long N = problem.V.N;
  const double xi = xi_at(problem.schedule, t);
  normalised(state.log_w, N, s.p);
  if (problem.J > 1) return choose_node(problem, state, s, xi, uniforms);
  node(problem, s, xi, state.q);
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
  const auto &[F, descent, schedule, M, freeze_after, weighted, J, least_q] = problem;
  const long draws = uniforms(problem);
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
      const double h = importance(descent, greater(state.q[i], least_q), eta, weight);
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
    if (freeze_after < 0 || t < freeze_after) choose(problem, state, s, t + 1, chunk.uniforms + chunk.done * draws);
    chunk.evaluated += n;
  }
}

}  // namespace omkl::omkl_gf::OMKL_ISA
#endif
