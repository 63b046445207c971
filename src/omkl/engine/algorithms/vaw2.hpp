// C++ counterpart of algorithms/vaw2.py: Vovk-Azoury-Warmuth forecasters, one for every kernel and one over them.
#pragma once
#include "problem.hpp"

namespace omkl::vaw2 {

struct Problem {
  Frequencies V;
  double ridge, mixing_ridge;

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    ridge = from.number("ridge");
    mixing_ridge = from.number("mixing_ridge");
  }
};

struct State {
  double *theta, *R, *c, *C;
  int64_t t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.V.N, 2, p.V.D});
    visitor.padded_array("R", R, {p.V.N, 2 * p.V.D, 2 * p.V.D});
    visitor.array("c", c, {p.V.N});
    visitor.padded_array("C", C, {p.V.N, p.V.N});
    visitor.number("t", t);
  }
};

// z and phi of every kernel; v, phi and what an update needs.
inline long scratch(const Problem &p) {
  return 2 * p.V.N * padded(2 * p.V.D) + 3 * padded(p.V.N) + 3 * padded(2 * p.V.D > p.V.N ? 2 * p.V.D : p.V.N);
}

}  // namespace omkl::vaw2

#ifdef OMKL_ISA
#include "least_squares.hpp"
#include "weights.hpp"

namespace omkl::vaw2::OMKL_ISA {
using namespace omkl::OMKL_ISA;

struct Work {
  long n, stride;         // of a kernel's factor
  double *z, *phi;        // [N][stride]
  double *v, *over, *q;   // [N padded]
  double *a, *b, *Pz;     // [the larger stride]

  Work(const Problem &p, Scratch &s) {
    n = 2 * p.V.D;
    stride = padded(n);
    const long N = padded(p.V.N), longer = stride > N ? stride : N;
    z = s.extra;
    phi = z + p.V.N * stride;
    v = phi + p.V.N * stride;
    over = v + N;
    q = over + N;
    a = q + N;
    b = a + longer;
    Pz = b + longer;
  }
};

struct Forecast {
  double f, q;
};

inline Forecast forecasts(const Problem &problem, const State &state, Scratch &s, const Work &work, const double *x) {
  const Frequencies &F = problem.V;
  const bool in_range = phases_in_range(F, x);
  if (in_range && F.reference >= 0) reference_phases(F, x, s.phase);
  for (long i = 0; i < F.N; ++i) {
    evaluate(F, in_range, s.phase, i, i + 1 < F.N ? i + 1 : i, state.theta, x, s.z, s.f[i], s.norm[i]);
    double *z = work.z + i * work.stride;
    for (long j = 0; j < F.D; ++j) {
      z[j] = F.root * s.z[j];
      z[F.D + j] = F.root * s.z[F.P + j];
    }
    for (long j = work.n; j < work.stride; ++j) z[j] = 0;
    double *phi = work.phi + i * work.stride;
    factor_times(state.R + i * work.n * work.stride, work.n, work.stride, z, phi);
    work.q[i] = dot(phi, phi, work.stride);
    work.v[i] = s.f[i] / (1 + work.q[i]);  // (V2)
  }
  for (long i = F.N; i < padded(F.N); ++i) work.v[i] = 0;
  factor_times(state.C, F.N, padded(F.N), work.v, work.over);
  return {weighted_sum(state.c, work.v, F.N), dot(work.over, work.over, padded(F.N))};
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  const Forecast over = forecasts(problem, state, s, Work(problem, s), x);
  *out = over.f / (1 + over.q);  // (V4)
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const Frequencies &F = problem.V;
  const Work work(problem, s);
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const Forecast over = forecasts(problem, state, s, work, x);
    if (!bounded(s.f, F.N) || !bounded(&over.f, 1)) return;
    chunk.out[chunk.done] = over.f / (1 + over.q);  // (V4)

    const auto learnable = [=](double f, double q) { return is_finite(weight * q) && is_finite(weight * (y - f) * q); };
    bool usable = is_finite(y) && learnable(over.f, over.q);
    for (long i = 0; i < F.N; ++i) usable &= learnable(s.f[i], work.q[i]);
    if (!usable) return;
    for (long i = 0; i < F.N; ++i) {
      factor_update(state.R + i * work.n * work.stride, work.n, work.stride, work.phi + i * work.stride, weight, 1,
                    work.a, work.b, work.Pz);  // (V1)
      const double gain = weight * (y - s.f[i]) / (1 + weight * work.q[i]);
      double *theta = state.theta + i * 2 * F.P;
      for (long j = 0; j < F.D; ++j) {
        theta[j] += gain * work.Pz[j];
        theta[F.P + j] += gain * work.Pz[F.D + j];
      }
    }
    factor_update(state.C, F.N, padded(F.N), work.over, weight, 1, work.a, work.b, work.Pz);  // (V3)
    const double gain = weight * (y - over.f) / (1 + weight * over.q);
    for (long i = 0; i < F.N; ++i) state.c[i] += gain * work.Pz[i];
    state.t += 1;
    chunk.evaluated += F.N;
  }
}

}  // namespace omkl::vaw2::OMKL_ISA
#endif
