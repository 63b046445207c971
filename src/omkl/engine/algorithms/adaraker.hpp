// C++ counterpart of algorithms/adaraker.py: Rakers on a hierarchy of intervals, which share their features.
#pragma once
#include "problem.hpp"

namespace omkl::adaraker {

struct Problem {
  Frequencies V;
  Descent descent;
  Schedule schedule;
  long levels;
  int64_t shortest;
  double rate;
  bool warm;

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    descent = from.descent();
    schedule = from.schedule();
    levels = from.whole("levels");
    shortest = from.whole("shortest");
    from.require(levels >= 1 && levels <= 40 && shortest >= 1 && shortest <= (int64_t{1} << 20),
                 "there must be from 1 to 40 levels, and a round in every interval");
    rate = from.number("rate");
    warm = from.flag("warm");
  }
};

struct State {
  double *theta, *log_w, *log_h;
  int64_t n, t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.levels, p.V.N, 2, p.V.D});
    visitor.padded_array("log_w", log_w, {p.levels, p.V.N});
    visitor.array("log_h", log_h, {p.levels});
    visitor.number("n", n);
    visitor.number("t", t);
  }
};

// f, |theta|^2 and the next logarithms of weights of every kernel at every level, the levels' predictions, and what is
// computed of their weights.
inline long scratch(const Problem &p) { return 3 * p.levels * padded(p.V.N) + 3 * padded(p.levels); }

}  // namespace omkl::adaraker

#ifdef OMKL_ISA
#include "least_squares.hpp"
#include "weights.hpp"

namespace omkl::adaraker::OMKL_ISA {
using namespace omkl::OMKL_ISA;

struct Work {
  double *f, *norm, *next;  // [L][N padded]
  double *level, *shares, *next_h;  // [L padded]

  Work(const Problem &p, Scratch &s) {
    const long size = p.levels * padded(p.V.N);
    f = s.extra;
    norm = f + size;
    next = norm + size;
    level = next + size;
    shares = level + padded(p.levels);
    next_h = shares + padded(p.levels);
  }
};

inline double eta_of(const Problem &problem, long j, int64_t t) {
  if (j == problem.levels - 1) return eta_at(problem.schedule, t);
  return lesser(0.5, problem.rate / sqrt(static_cast<double>(problem.shortest << j)));  // (A2)
}

inline double predict_levels(const Problem &problem, const State &state, Scratch &s, const Work &work,
                             const double *x) {
  const Frequencies &F = problem.V;
  const long N = F.N, Np = padded(N), size = 2 * F.P;
  const bool in_range = phases_in_range(F, x);
  if (in_range && F.reference >= 0) reference_phases(F, x, s.phase);
  for (long i = 0; i < N; ++i) {
    double *z = s.z + i * size;
    evaluate(F, in_range, s.phase, i, i + 1 < N ? i + 1 : i, state.theta, x, z, work.f[i], work.norm[i]);
    for (long j = 1; j < problem.levels; ++j) {
      const double *theta = state.theta + (j * N + i) * size;
      work.f[j * Np + i] = F.root * dot(theta, z, size);
      work.norm[j * Np + i] = dot(theta, theta, size);
    }
  }
  for (long i = 0; i < N; ++i) s.evaluated[i] = static_cast<int>(i);
  for (long j = 0; j < problem.levels; ++j) {
    const double all = relative_weights(state.log_w + j * Np, s.evaluated, N, s.work);
    work.level[j] = weighted_sum(s.work, work.f + j * Np, N) / all;  // (6)
  }
  normalised(state.log_h, problem.levels, work.shares);
  return weighted_sum(work.shares, work.level, problem.levels);  // (A1)
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  *out = predict_levels(problem, state, s, Work(problem, s), x);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const Frequencies &F = problem.V;
  const Descent &descent = problem.descent;
  const Work work(problem, s);
  const long N = F.N, Np = padded(N), L = problem.levels;
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const int64_t t = state.t + 1;
    const double y_hat = predict_levels(problem, state, s, work, x);
    for (long j = 0; j < L; ++j)
      if (!bounded(work.f + j * Np, N)) return;
    chunk.out[chunk.done] = y_hat;

    const double loss = loss_value(descent.loss, y_hat, y);
    bool usable = is_finite(y);
    for (long j = 0; j < L; ++j) {
      const double eta = eta_of(problem, j, t), h = importance(descent, 1, eta, weight);
      for (long i = 0; i < N; ++i)
        usable &= weigh(descent, state.log_w[j * Np + i], work.f[j * Np + i], work.norm[j * Np + i], y, eta, h, h,
                        work.next[j * Np + i]);
      work.next_h[j] = state.log_h[j] - eta * weight * (loss_value(descent.loss, work.level[j], y) - loss);  // (A3)
      usable &= is_finite(work.next_h[j]);
    }
    if (!usable) return;
    state.n += weight > 0;
    for (long j = 0; j < L; ++j) {
      const double eta = eta_of(problem, j, t), h = importance(descent, 1, eta, weight);
      double *theta = state.theta + j * N * 2 * F.P;
      state.log_h[j] = work.next_h[j];
      for (long i = 0; i < N; ++i) {
        state.log_w[j * Np + i] = work.next[j * Np + i];
        learn(F, descent, i, theta, s.z + i * 2 * F.P, work.f[j * Np + i], work.norm[j * Np + i], y, eta, h);
      }
    }
    for (long j = 0; weight > 0 && j < L - 1; ++j) {
      if (state.n % (problem.shortest << j)) continue;
      state.log_h[j] = log(eta_of(problem, j, t));  // (A4)
      if (problem.warm) continue;
      double *theta = state.theta + j * N * 2 * F.P;
      for (long k = 0; k < N * 2 * F.P; ++k) theta[k] = 0;  // (A4)
      for (long i = 0; i < N; ++i) state.log_w[j * Np + i] = 0;
    }
    state.t = t;
    chunk.evaluated += N;
  }
}

}  // namespace omkl::adaraker::OMKL_ISA
#endif
