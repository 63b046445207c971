// C++ counterpart of algorithms/nogd.py: gradient descent on features of one kernel that the first rows span.
#pragma once
#include "algorithms/omkr.hpp"

namespace omkl::nogd {

// One exact kernel, as omkr.hpp has them.
struct Kernel {
  long d;
  omkr::Family family;
  double rate;

  template <class Reader>
  void read(Reader &from) {
    const auto families = from.codes("families");
    const auto rates = from.vector("rates");
    d = from.whole("d");
    from.require(families.size == 1 && rates.size == 1 && d >= 1, "the problem needs features, and one kernel");
    from.require(families.data[0] >= 0 && families.data[0] <= static_cast<int>(omkr::Family::cauchy), "no such kernel");
    family = static_cast<omkr::Family>(families.data[0]);
    rate = rates.data[0];
  }
};

struct Problem {
  Kernel kernel;
  Descent descent;
  Schedule schedule;
  long budget, rank;

  template <class Reader>
  void read(Reader &from) {
    kernel.read(from);
    descent = from.descent();
    schedule = from.schedule();
    budget = from.whole("budget");
    rank = from.whole("rank");
    from.require(rank >= 1 && rank <= budget, "the rank must be at least 1, and at most the budget");
  }
};

struct State {
  double *S, *beta, *inverse;
  int64_t n, t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("S", S, {p.kernel.d, p.budget});
    visitor.array("beta", beta, {p.budget});
    visitor.padded_array("inverse", inverse, {p.budget, p.budget});
    visitor.number("n", n);
    visitor.number("t", t);
  }
  bool valid(const Problem &p) const { return n >= 0 && n <= p.budget; }
};

inline long kernels(const Problem &) { return 1; }
inline long inputs(const Problem &p) { return p.kernel.d; }
inline long features(const Problem &) { return 0; }
inline long scratch(const Problem &p) { return (3 + 2 * p.budget) * padded(p.budget) + p.kernel.d; }

}  // namespace omkl::nogd

#ifdef OMKL_ISA
#include "least_squares.hpp"
#include "weights.hpp"

namespace omkl::nogd::OMKL_ISA {
using namespace omkl::OMKL_ISA;

constexpr double LEAST_EIGENVALUE = 1e-4, TIED = 1e-9;

// kappa of x and the first n columns of S, and zeros up to `stride`.
static void kernel_values(const Kernel &kernel, const double *S, long n, long stride, const double *x, double *out) {
  for (long j = 0; j < stride; j += W) {
    if (j >= n) {
      store(out + j, vec{});
      continue;
    }
    vec square = {}, absolute = {}, product = splat(1);
    for (long k = 0; k < kernel.d; ++k) {
      const vec gap = load(S + k * stride + j) - x[k];
      square += gap * gap;
      absolute += magnitude(gap);
      product *= 1 + kernel.rate * kernel.rate * gap * gap;
    }
    vec root = {};
    for (long l = 0; l < W; ++l) root[l] = sqrt(square[l]);
    const vec value = kernel.family == omkr::Family::cauchy
                          ? 1 / product
                          : omkr::OMKL_ISA::kernel_value(kernel.family, kernel.rate, square, root, absolute);
    store(out + j, LANE + j < n ? value : vec{});
  }
}

// Jacobi's method: A becomes diagonal, and the columns of V its eigenvectors.
static void diagonalise(double *A, double *V, long n, long stride) {
  for (long i = 0; i < n; ++i)
    for (long j = 0; j < n; ++j) V[i * stride + j] = i == j;
  for (int sweep = 0; sweep < 60; ++sweep) {
    bool moved = false;
    for (long p = 0; p < n; ++p)
      for (long q = p + 1; q < n; ++q) {
        const double a = A[p * stride + q], b = A[p * stride + p], c = A[q * stride + q];
        if (fabs(a) <= 1e-17 * (fabs(b) + fabs(c))) continue;
        moved = true;
        const double tau = (c - b) / (2 * a);
        const double t = (tau >= 0 ? 1 : -1) / (fabs(tau) + sqrt(1 + tau * tau));
        const double cosine = 1 / sqrt(1 + t * t), sine = t * cosine;
        for (long k = 0; k < n; ++k) {
          double &left = A[k * stride + p], &right = A[k * stride + q];
          const double l = left, r = right;
          left = cosine * l - sine * r;
          right = sine * l + cosine * r;
        }
        for (long k = 0; k < n; ++k) {
          double &left = A[p * stride + k], &right = A[q * stride + k];
          const double l = left, r = right;
          left = cosine * l - sine * r;
          right = sine * l + cosine * r;
          double &v = V[k * stride + p], &w = V[k * stride + q];
          const double x = v, y = w;
          v = cosine * x - sine * y;
          w = sine * x + cosine * y;
        }
        A[p * stride + q] = A[q * stride + p] = 0;
      }
    if (!moved) return;
  }
}

struct Work {
  double *k, *along, *moved;  // [B padded]
  double *A, *V;              // [B][B padded]
  double *x;                  // [d]

  Work(const Problem &p, Scratch &s) {
    const long stride = padded(p.budget);
    k = s.extra;
    along = k + stride;
    moved = along + stride;
    A = moved + stride;
    V = A + p.budget * stride;
    x = V + p.budget * stride;
  }
};

// K+ of the rows stored, and the coefficients in `work.moved` projected on its span.
static void span_rows(const Problem &problem, State &state, const Work &work) {
  const long B = problem.budget, stride = padded(B);
  for (long i = 0; i < B; ++i) {
    for (long k = 0; k < problem.kernel.d; ++k) work.x[k] = state.S[k * stride + i];
    kernel_values(problem.kernel, state.S, B, stride, work.x, work.A + i * stride);
  }
  diagonalise(work.A, work.V, B, stride);
  double largest = 0;
  for (long i = 0; i < B; ++i) largest = greater(largest, work.A[i * stride + i]);
  for (long i = 0; i < B; ++i) {
    work.along[i] = work.moved[i];
    work.moved[i] = 0;
    for (long j = 0; j < B; ++j) state.inverse[i * stride + j] = 0;
  }
  for (long e = 0; e < B; ++e) {
    const double value = work.A[e * stride + e];
    long above = 0;
    for (long i = 0; i < B; ++i) above += (1 - TIED) * work.A[i * stride + i] > value;
    if (above >= problem.rank || !(value > LEAST_EIGENVALUE * largest)) continue;
    double part = 0;
    for (long i = 0; i < B; ++i) part += work.V[i * stride + e] * work.along[i];
    for (long i = 0; i < B; ++i) {
      const double v = work.V[i * stride + e];
      work.moved[i] += part * v;  // (N3)
      for (long j = 0; j < B; ++j) state.inverse[i * stride + j] += v * work.V[j * stride + e] / value;
    }
  }
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  const Work work(problem, s);
  kernel_values(problem.kernel, state.S, state.n, padded(problem.budget), x, work.k);
  *out = weighted_sum(state.beta, work.k, problem.budget);  // (N1) (N4)
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[kernel, descent, schedule, B, rank] = problem;
  const Work work(problem, s);
  const long stride = padded(B);
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * kernel.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const double eta = eta_at(schedule, state.t + 1);
    kernel_values(kernel, state.S, state.n, stride, x, work.k);
    const double f = weighted_sum(state.beta, work.k, B);  // (N1) (N4)
    if (!bounded(&f, 1)) return;
    chunk.out[chunk.done] = f;

    double shrink, step;
    descend(descent, f, 0, y, eta * importance(descent, 1, eta, weight), shrink, step);
    const bool full = state.n == B;
    for (long i = 0; i < B; ++i) {
      const double along = full ? dot(state.inverse + i * stride, work.k, stride) : i == state.n;
      work.moved[i] = shrink * state.beta[i] + step * along;  // (N2) (N5)
    }
    bool usable = is_finite(y);
    for (long i = 0; i < B; ++i) usable &= is_finite(work.moved[i]);
    if (!usable) return;
    if (!full && work.moved[state.n] != 0) {
      for (long k = 0; k < kernel.d; ++k) state.S[k * stride + state.n] = x[k];  // (N2)
      if (++state.n == B) span_rows(problem, state, work);
    }
    for (long i = 0; i < B; ++i) state.beta[i] = work.moved[i];
    state.t += 1;
    chunk.evaluated += 1;
  }
}

}  // namespace omkl::nogd::OMKL_ISA
#endif
