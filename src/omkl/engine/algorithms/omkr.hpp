// C++ counterpart of algorithms/omkr.py: exact kernels on all support points, taken in blocks that share distances.
#pragma once
#include "problem.hpp"

namespace omkl::omkr {

enum class Family { gaussian, laplacian, matern12, matern32, matern52, cauchy };

constexpr long BLOCK = 512;  // support points taken at a time

struct Problem {
  long N, d;
  const Family *family;  // [N]
  const double *rate;    // [N]  Gaussian 1 / (2 l^2), Matern sqrt(2 nu) / l, others 1 / l
  Schedule schedule;
  int64_t budget;  // negative: none
  bool any_l2, any_l1;

  template <class Reader>
  void read(Reader &from) {
    const auto families = from.codes("families");
    static_assert(sizeof(Family) == sizeof(*families.data));
    family = reinterpret_cast<const Family *>(families.data);
    const auto rates = from.vector("rates");
    rate = rates.data;
    N = families.size;
    d = from.whole("d");
    from.require(N >= 1 && d >= 1 && rates.size == N, "the problem needs features, and a rate for each kernel");
    for (long i = 0; i < N; ++i)
      from.require(families.data[i] >= 0 && families.data[i] <= static_cast<int>(Family::cauchy), "no such kernel");
    schedule = from.schedule();
    budget = from.optional_whole("budget");
    any_l2 = any_l1 = false;
    for (long i = 0; i < N; ++i) {
      any_l2 =
          any_l2 || (family[i] != Family::gaussian && family[i] != Family::laplacian && family[i] != Family::cauchy);
      any_l1 = any_l1 || family[i] == Family::laplacian;
    }
  }
};

struct State {
  double *S;      // [d][capacity]
  double *alpha;  // [N][capacity]
  double *log_w;
  int64_t capacity, n, t;

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.growing_array("S", S, {p.d}, capacity);
    visitor.growing_array("alpha", alpha, {p.N}, capacity);
    visitor.array("log_w", log_w, {p.N});
    visitor.number("n", n);
    visitor.number("t", t);
  }
  bool valid(const Problem &) const { return n >= 0 && n <= capacity; }
};

inline long kernels(const Problem &p) { return p.N; }
inline long inputs(const Problem &p) { return p.d; }
inline long features(const Problem &) { return 0; }
inline long scratch(const Problem &) { return 3 * BLOCK; }

}  // namespace omkl::omkr

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::omkr::OMKL_ISA {
using namespace omkl::OMKL_ISA;

constexpr double LOG_HEDGE = -0x1.62e42fefa39efp-1;  // log 0.5
constexpr double FAR = 1e3;

OMKL_INLINE double step_length(const Schedule &schedule, int64_t t, double weight) {
  return lesser(1, weight * eta_at(schedule, t));
}

// kappa_i at one register of support points.
OMKL_INLINE vec kernel_value(Family family, double rate, vec l2, vec l2_root, vec l1) {
  switch (family) {
    case Family::gaussian:
      return exp_below_zero(-rate * l2);
    case Family::laplacian:
      return exp_below_zero(-rate * l1);
    case Family::matern12:
      return exp_below_zero(-rate * l2_root);
    case Family::matern32: {
      const vec r = smaller(rate * l2_root, splat(FAR));
      return (1 + r) * exp_below_zero(-r);
    }
    default: {
      const vec r = smaller(rate * l2_root, splat(FAR));
      return (1 + r + r * r / 3) * exp_below_zero(-r);
    }
  }
}

template <Family family>
OMKL_INLINE double block_sum(double rate, const double *alpha, const double *distance, long n) {
  vec total = {};
  for (long j = 0; j < n; j += W)
    total += load(alpha + j) *
             kernel_value(family, rate, load(distance + j), load(distance + BLOCK + j), load(distance + 2 * BLOCK + j));
  return sum(total);
}

OMKL_INLINE double cauchy_sum(const Problem &problem, const State &state, double rate, const double *x,
                              const double *alpha, long start, long n) {
  vec total = {};
  for (long j = 0; j < n; j += W) {
    vec product = splat(1);
    for (long k = 0; k < problem.d; ++k) {
      const vec gap = rate * (load(state.S + k * state.capacity + start + j) - x[k]);
      product *= 1 + gap * gap;
    }
    total += load(alpha + j) / product;
  }
  return sum(total);
}

// f_i of all kernels and their combination. Capacity is whole registers, and alpha is zero behind the last support
// point.
inline double predict_all(const Problem &problem, const State &state, Scratch &s, const double *x) {
  for (long i = 0; i < problem.N; ++i) {
    s.evaluated[i] = static_cast<int>(i);
    s.f[i] = 0;
  }
  for (long start = 0; start < state.n; start += BLOCK) {
    const long n = padded(state.n - start < BLOCK ? state.n - start : BLOCK);
    double *l2 = s.extra, *l2_root = l2 + BLOCK, *l1 = l2 + 2 * BLOCK;
    for (long j = 0; j < n; j += W) {
      vec square = {}, absolute = {};
      for (long k = 0; k < problem.d; ++k) {
        const vec gap = load(state.S + k * state.capacity + start + j) - x[k];
        square += gap * gap;
        if (problem.any_l1) absolute += magnitude(gap);
      }
      store(l2 + j, square);
      if (problem.any_l1) store(l1 + j, absolute);
      if (problem.any_l2)
        for (long l = 0; l < W; ++l) l2_root[j + l] = sqrt(l2[j + l]);
    }
    for (long i = 0; i < problem.N; ++i) {
      const double *alpha = state.alpha + i * state.capacity + start;
      const double rate = problem.rate[i];
      double part = 0;
      switch (problem.family[i]) {
        case Family::gaussian:
          part = block_sum<Family::gaussian>(rate, alpha, l2, n);
          break;
        case Family::laplacian:
          part = block_sum<Family::laplacian>(rate, alpha, l2, n);
          break;
        case Family::matern12:
          part = block_sum<Family::matern12>(rate, alpha, l2, n);
          break;
        case Family::matern32:
          part = block_sum<Family::matern32>(rate, alpha, l2, n);
          break;
        case Family::matern52:
          part = block_sum<Family::matern52>(rate, alpha, l2, n);
          break;
        case Family::cauchy:
          part = cauchy_sum(problem, state, rate, x, alpha, start, n);
      }
      s.f[i] += part;
    }
  }
  const double all = relative_weights(state.log_w, s.evaluated, problem.N, s.work);
  return weighted_sum(s.work, s.f, problem.N) / all;  // (6)
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  *out = predict_all(problem, state, s, x);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * problem.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const int64_t t = state.t + 1;
    const double y_hat = predict_all(problem, state, s, x);  // (6)
    if (!bounded(s.f, problem.N)) return;
    chunk.out[chunk.done] = y_hat;

    const bool within_budget = problem.budget < 0 || state.n < problem.budget;
    if (within_budget && state.n >= state.capacity) return;  // whoever calls makes room first
    const double eta = step_length(problem.schedule, t, weight);
    bool usable = true;
    for (long i = 0; i < problem.N; ++i) {
      const double gap = s.f[i] - y;
      s.next[i] = state.log_w[i] + weight * LOG_HEDGE * (gap * gap);
      usable &= is_finite(s.next[i]);
    }
    if (!usable) return;
    for (long i = 0; i < problem.N; ++i) {
      const double gap = s.f[i] - y;
      state.log_w[i] = s.next[i];
      if (within_budget) state.alpha[i * state.capacity + state.n] = -eta * gap;
    }
    if (within_budget) {
      for (long k = 0; k < problem.d; ++k) state.S[k * state.capacity + state.n] = x[k];
      ++state.n;
    }
    state.t = t;
    chunk.evaluated += problem.N;
  }
}

}  // namespace omkl::omkr::OMKL_ISA
#endif
