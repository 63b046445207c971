// C++ counterpart of algorithms/doebe.py: Bayesian linear regression on features, averaged or stacked.
#pragma once
#include "problem.hpp"

namespace omkl::doebe {

enum class Mixing { averaging, stacking };
constexpr double most_weight = 1e6, least_noise = 1e-8, rounding = 1e-15;
constexpr int most_steps = 100;

struct Problem {
  Frequencies V;
  Mixing mixing;
  double noise, walk;
  Loss loss;
  long E;  // experts

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    mixing = from.one_of("mixing", {"averaging", "stacking"});
    noise = from.number("noise");
    walk = from.number("walk");
    loss = from.one_of("loss", {"squared", "logistic"});
    E = walk > 0 ? 2 * V.N : V.N;
  }
};

struct State {
  double *theta, *P, *log_w;
  double log_score;
  int64_t t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.E, 2, p.V.D});
    visitor.padded_array("P", P, {p.E, 2 * p.V.D, 2 * p.V.D});
    visitor.array("log_w", log_w, {p.E});
    visitor.number("log_score", log_score);
    visitor.number("t", t);
  }
};

// z of a kernel, and P z, m, v, log p and weights of every expert.
inline long scratch(const Problem &p) { return (p.V.N + p.E) * padded(2 * p.V.D) + 4 * padded(p.E); }

}  // namespace omkl::doebe

#ifdef OMKL_ISA
#include "least_squares.hpp"
#include "weights.hpp"

namespace omkl::doebe::OMKL_ISA {
using namespace omkl::OMKL_ISA;

struct Work {
  long n, stride;           // of a covariance
  double *z, *Pz;           // [N][stride], [E][stride]
  double *m, *v, *log_p, *w;  // [E padded]

  Work(const Problem &p, Scratch &s) {
    n = 2 * p.V.D;
    stride = padded(n);
    z = s.extra;
    Pz = z + p.V.N * stride;
    m = Pz + p.E * stride;
    v = m + padded(p.E);
    log_p = v + padded(p.E);
    w = log_p + padded(p.E);
  }
};

// The logarithm of sum_e exp(a_e + c b_e).
inline double log_sum(const double *a, const double *b, double c, long n) {
  double top = a[0] + c * b[0], total = 0;
  for (long e = 1; e < n; ++e) top = greater(top, a[e] + c * b[e]);
  for (long e = 0; e < n; ++e) total += exp(a[e] + c * b[e] - top);
  return top + log(total);
}

// The log odds of a label whose own are distributed as expert e predicts.
inline double moderated(const Work &work, long e) {
  constexpr double pi_8 = 0x1.921fb54442d18p-2;
  return work.m[e] / sqrt(1 + pi_8 * work.v[e]);  // (B7)
}

// What the mixture predicts, the mean of numbers or the log odds of labels; z, P z, m and v on the way.
inline double distributions(const Problem &problem, const State &state, Scratch &s, const Work &work, const double *x) {
  const Frequencies &F = problem.V;
  const bool in_range = phases_in_range(F, x);
  if (in_range && F.reference >= 0) reference_phases(F, x, s.phase);
  for (long i = 0; i < F.N; ++i) {
    evaluate(F, in_range, s.phase, i, i + 1 < F.N ? i + 1 : i, state.theta, x, s.z, s.f[0], s.norm[0]);
    double *z = work.z + i * work.stride;
    for (long j = 0; j < F.D; ++j) {
      z[j] = F.root * s.z[j];
      z[F.D + j] = F.root * s.z[F.P + j];
    }
    for (long j = work.n; j < work.stride; ++j) z[j] = 0;
    for (long e = i; e < problem.E; e += F.N) {
      const double *P = state.P + e * work.n * work.stride;
      double *Pz = work.Pz + e * work.stride;
      for (long j = 0; j < work.stride; ++j) Pz[j] = j < work.n ? dot(P + j * work.stride, z, work.stride) : 0;
      if (e >= F.N) add(Pz, problem.walk, z, work.stride);  // (B1)
      work.m[e] = F.root * dot(state.theta + e * 2 * F.P, s.z, 2 * F.P);  // (B2)
      work.v[e] = greater(dot(z, Pz, work.stride), 0);  // (B2)
    }
  }
  if (problem.loss == Loss::squared) {
    normalised(state.log_w, problem.E, work.w);
    return weighted_sum(work.w, work.m, problem.E);  // (B3)
  }
  double sides[2];
  for (int side = 0; side < 2; ++side) {
    for (long e = 0; e < problem.E; ++e) work.log_p[e] = -loss_value(Loss::logistic, moderated(work, e), 1 - 2 * side);
    sides[side] = log_sum(state.log_w, work.log_p, 1, problem.E);
  }
  return sides[0] - sides[1];  // (B3)
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  *out = distributions(problem, state, s, Work(problem, s), x);
}

// sigma(-a) and sigma(a) sigma(-a) at the margin a = start + variance sigma(-a).
inline void balance(double start, double variance, double &slope, double &information) {
  double a = start, low = start, high = start + variance;
  for (int step = 0; step < most_steps; ++step) {
    const double e = exp(-fabs(a));
    slope = (a > 0 ? e : 1) / (1 + e);
    information = e / ((1 + e) * (1 + e));
    const double gap = a - start - variance * slope;
    (gap < 0 ? low : high) = a;
    double after = a - gap / (1 + variance * information);
    if (!(low < after && after < high)) after = (low + high) / 2;
    if (fabs(after - a) <= rounding * (1 + fabs(a))) return;
    a = after;
  }
}

// By how much P z theta moves, and what P z z' P is divided by.
inline void learned(const Problem &problem, double m, double v, double y, double weight, double &gain,
                    double &divisor) {
  if (problem.loss == Loss::squared) {
    divisor = greater(problem.noise / weight, least_noise) + v;
    gain = (y - m) / divisor;  // (B4)
    return;
  }
  double slope = 0, information = 0;
  balance(y * m, weight * v, slope, information);
  const double known = weight * information;
  divisor = (known > 0 ? 1 / known : INFINITY) + v;
  gain = weight * y * slope;  // (B8)
}

inline double rate_at(long experts, int64_t t) {
  const double E = static_cast<double>(experts);
  return sqrt(log(E) / (2 * E * static_cast<double>(t)));
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const Frequencies &F = problem.V;
  const Work work(problem, s);
  const long E = problem.E;
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? lesser(chunk.weight[chunk.done], most_weight) : 1;
    const int64_t t = state.t + 1;
    const double prediction = distributions(problem, state, s, work, x);
    if (!bounded(work.m, E)) return;
    chunk.out[chunk.done] = prediction;
    if (weight == 0) {
      state.t = t;
      chunk.evaluated += F.N;
      continue;
    }

    for (long e = 0; e < E; ++e) {
      if (problem.loss == Loss::logistic) {
        work.log_p[e] = -loss_value(Loss::logistic, moderated(work, e), y);
        continue;
      }
      const double s2 = greater(problem.noise, least_noise) + work.v[e], gap = y - work.m[e];
      work.log_p[e] = -0.5 * (0x1.d67f1c864beb4p+0 + log(s2) + gap * gap / s2);  // log(2 pi)
    }
    const double all = log_sum(state.log_w, state.log_w, 0, E);
    const double log_density = log_sum(state.log_w, work.log_p, 1, E) - all;  // (B3)
    if (problem.mixing == Mixing::averaging) {
      for (long e = 0; e < E; ++e) work.w[e] = state.log_w[e] + weight * (work.log_p[e] - log_density);  // (B5)
    } else if (E > 1) {
      const double tempered = log_sum(state.log_w, work.log_p, weight, E) - all;
      const double rate = rate_at(E, t), ratio = rate_at(E, t + 1) / rate;
      for (long e = 0; e < E; ++e) {
        const double log_w = state.log_w[e];
        const double w = exp(log_w) * (1 - rate) + rate * exp(log_w + weight * work.log_p[e] - tempered);
        work.w[e] = log(w * ratio + (1 - ratio) / static_cast<double>(E));  // (B6)
      }
    } else {
      work.w[0] = state.log_w[0];
    }
    bool usable = is_finite(y) && is_finite(log_density);
    for (long e = 0; e < E; ++e) usable &= is_finite(work.w[e]);
    if (!usable) return;
    const double shift = log_sum(work.w, work.w, 0, E);
    for (long e = 0; e < E; ++e) {
      state.log_w[e] = work.w[e] - shift;
      double *P = state.P + e * work.n * work.stride, *theta = state.theta + e * 2 * F.P;
      const double *Pz = work.Pz + e * work.stride;
      double gain, divisor;
      learned(problem, work.m[e], work.v[e], y, weight, gain, divisor);
      for (long j = 0; j < F.D; ++j) {
        theta[j] += gain * Pz[j];  // (B4) (B8)
        theta[F.P + j] += gain * Pz[F.D + j];
      }
      for (long j = 0; j < work.n; ++j) {
        add(P + j * work.stride, -Pz[j] / divisor, Pz, work.stride);  // (B4) (B8)
        if (e >= F.N) P[j * work.stride + j] += problem.walk;  // (B1)
      }
    }
    state.log_score += weight * log_density;
    state.t = t;
    chunk.evaluated += F.N;
  }
}

}  // namespace omkl::doebe::OMKL_ISA
#endif
