// C++ counterpart of algorithms/krls_t.py: kernel recursive least squares with a budget, which forgets.
#pragma once
#include "algorithms/nogd.hpp"

namespace omkl::krls_t {

struct Problem {
  nogd::Kernel kernel;
  long budget;
  double noise, forgetting;

  template <class Reader>
  void read(Reader &from) {
    kernel.read(from);
    budget = from.whole("budget");
    from.require(budget >= 1, "the budget must be at least 1");
    noise = from.number("noise");
    forgetting = from.number("forgetting");
  }
};

struct State {
  double *S, *mu, *Sigma, *Q;
  int64_t n, t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("S", S, {p.kernel.d, p.budget});
    visitor.array("mu", mu, {p.budget});
    visitor.padded_array("Sigma", Sigma, {p.budget, p.budget});
    visitor.padded_array("Q", Q, {p.budget, p.budget});
    visitor.number("n", n);
    visitor.number("t", t);
  }
  bool valid(const Problem &p) const { return n >= 0 && n <= p.budget; }
};

inline long kernels(const Problem &) { return 1; }
inline long inputs(const Problem &p) { return p.kernel.d; }
inline long features(const Problem &) { return 0; }
inline long scratch(const Problem &p) {
  const long more = padded(p.budget + 1);
  return 3 * padded(p.budget) + 3 * more + 2 * (p.budget + 1) * more + p.kernel.d;
}

}  // namespace omkl::krls_t

#ifdef OMKL_ISA
#include "least_squares.hpp"
#include "weights.hpp"

namespace omkl::krls_t::OMKL_ISA {
using namespace omkl::OMKL_ISA;
using nogd::OMKL_ISA::kernel_values;

constexpr double LEAST_NOVELTY = 1e-3, LEAST_NOISE = 1e-8;

struct Work {
  double *k, *Sq, *column;  // [B padded]
  double *q, *mu, *p;       // [B + 1 padded]
  double *Sigma, *Q;        // [B + 1][B + 1 padded]: with the new row
  double *x;                // [d]

  Work(const Problem &problem, Scratch &s) {
    const long stride = padded(problem.budget), more = padded(problem.budget + 1);
    k = s.extra;
    Sq = k + stride;
    column = Sq + stride;
    q = column + stride;
    mu = q + more;
    p = mu + more;
    Sigma = p + more;
    Q = Sigma + (problem.budget + 1) * more;
    x = Q + (problem.budget + 1) * more;
  }
};

// k(x) and q, and the prediction.
inline double project(const Problem &problem, const State &state, const Work &work, const double *x) {
  const long stride = padded(problem.budget);
  kernel_values(problem.kernel, state.S, state.n, stride, x, work.k);
  for (long i = 0; i < stride; ++i) work.q[i] = i < state.n ? dot(state.Q + i * stride, work.k, stride) : 0;  // (K2)
  return sqrt(problem.forgetting) * weighted_sum(work.q, state.mu, state.n);  // (K1) (K2)
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  *out = project(problem, state, Work(problem, s), x);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[kernel, B, noise, forgetting] = problem;
  const Work work(problem, s);
  const long stride = padded(B), more = padded(B + 1);
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * kernel.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const long n = state.n;
    const double f = project(problem, state, work, x);
    if (!bounded(&f, 1)) return;
    chunk.out[chunk.done] = f;
    chunk.evaluated += 1;
    if (weight == 0) {
      state.t += 1;
      continue;
    }

    for (long i = 0; i < n; ++i) {
      if (forgetting < 1) {
        for (long k = 0; k < kernel.d; ++k) work.x[k] = state.S[k * stride + i];
        kernel_values(kernel, state.S, n, stride, work.x, work.column);
      }
      for (long j = 0; j < n; ++j)
        work.Sigma[i * more + j] = forgetting * state.Sigma[i * stride + j] +
                                   (forgetting < 1 ? (1 - forgetting) * work.column[j] : 0);  // (K1)
      work.mu[i] = sqrt(forgetting) * state.mu[i];  // (K1)
      work.Sq[i] = weighted_sum(work.Sigma + i * more, work.q, n);
    }
    const double g = greater(1 - weighted_sum(work.q, work.k, n), 0);  // (K3)
    const double of_function = greater(g + weighted_sum(work.q, work.Sq, n), 0);  // (K3)
    const double s2 = greater(noise / weight, LEAST_NOISE) + of_function;         // (K3)
    work.mu[n] = f;
    for (long i = 0; i <= n; ++i) work.p[i] = i < n ? work.Sq[i] : of_function;
    bool usable = is_finite(y);
    for (long i = 0; i <= n; ++i) {
      work.mu[i] += work.p[i] * (y - f) / s2;  // (K5)
      usable &= is_finite(work.mu[i]);
    }
    if (!usable) {
      chunk.evaluated -= 1;
      return;
    }
    for (long i = 0; i < n; ++i) work.Sigma[i * more + n] = work.Sigma[n * more + i] = work.Sq[i];
    work.Sigma[n * more + n] = of_function;
    for (long i = 0; i <= n; ++i)
      for (long j = 0; j <= n; ++j) work.Sigma[i * more + j] -= work.p[i] * work.p[j] / s2;  // (K6)

    long removed = n;  // (K7)
    if (!(g < LEAST_NOVELTY)) {
      work.q[n] = -1;
      for (long i = 0; i <= n; ++i)
        for (long j = 0; j <= n; ++j)
          work.Q[i * more + j] = (i < n && j < n ? state.Q[i * stride + j] : 0) + work.q[i] * work.q[j] / g;  // (K4)
      removed = n + 1;  // none
      if (n == B) {
        double least = 0;
        for (long i = 0; i <= n; ++i) {
          const double matters = fabs(weighted_sum(work.Q + i * more, work.mu, n + 1) / work.Q[i * more + i]);  // (K7)
          if (i == 0 || matters < least) least = matters, removed = i;  // one of them, even if Q is no number
        }
        for (long i = 0; i <= n; ++i) work.p[i] = work.Q[i * more + removed];
        const double pivot = work.p[removed];
        for (long i = 0; i <= n; ++i)
          for (long j = 0; j <= n; ++j) work.Q[i * more + j] -= work.p[i] * work.p[j] / pivot;  // (K8)
      }
      for (long k = 0; k < kernel.d; ++k) {
        double *row = state.S + k * stride;
        for (long i = removed; i < n; ++i) row[i] = i + 1 < n ? row[i + 1] : x[k];
        if (removed > n) row[n] = x[k];
      }
    }
    state.n = removed > n ? n + 1 : n;
    for (long i = 0; i < state.n; ++i) {
      const long from = i + (i >= removed);
      state.mu[i] = work.mu[from];
      for (long j = 0; j < state.n; ++j) {
        const long column = j + (j >= removed);
        state.Sigma[i * stride + j] = work.Sigma[from * more + column];
        if (!(g < LEAST_NOVELTY)) state.Q[i * stride + j] = work.Q[from * more + column];
      }
    }
    state.t += 1;
  }
}

}  // namespace omkl::krls_t::OMKL_ISA
#endif
