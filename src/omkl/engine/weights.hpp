// C++ counterpart of algorithms/weights.py: weights kept as logarithms, and probabilities made of them.
#pragma once
#include "features.hpp"

namespace omkl {
namespace OMKL_ISA {

// w / sum(w) of N logarithms into `out`, which is padded and aligned.
OMKL_INLINE void normalised(const double *log_w, long N, double *out) {
  double top = log_w[0];
  for (long i = 1; i < N; ++i) top = greater(top, log_w[i]);
  for (long i = 0; i < N; ++i) out[i] = log_w[i] - top;
  for (long i = N; i < padded(N); ++i) out[i] = -INFINITY;
  vec total = {};
  for (long i = 0; i < padded(N); i += W) {
    const vec w = exp_below_zero(load(out + i));
    store(out + i, w);
    total += w;
  }
  const double scale = 1 / sum(total);
  for (long i = 0; i < padded(N); i += W) store(out + i, scale * load(out + i));
}

// Weights u of the nodes, of which one decreases in a round, so that only its exponential is computed again.
//
// u_i = exp(log_u_i - ref), and ref depends on the largest logarithm alone, so that results do not depend on where a
// chunk of rows begins.
struct NodeWeights {
  static constexpr double STEP = 32, SMALL = 1e-13;  // a largest u near exp(-STEP) = 1.3e-14 needs a new ref
  const double *log_u;
  double *u;  // [N padded]
  long N;
  double ref;

  void recompute() {
    double top = log_u[0];
    for (long i = 1; i < N; ++i) top = greater(top, log_u[i]);
    ref = STEP * ceil(top / STEP);
    for (long i = 0; i < N; ++i) u[i] = log_u[i] - ref;
    for (long i = N; i < padded(N); ++i) u[i] = -INFINITY;
    for (long i = 0; i < padded(N); i += W) store(u + i, exp_below_zero(load(u + i)));
  }

  void decreased(long i) {
    const vec e = exp_below_zero(splat(log_u[i] - ref));
    double *block = u + i / W * W;  // a whole register, since whole registers are read next
    store(block, LANE == i % W ? e : load(block));
    if (e[0] > SMALL) return;
    vec most = {};
    for (long j = 0; j < padded(N); j += W) most = larger(most, load(u + j));
    if (!(max(most) > SMALL)) recompute();
  }

  // p = scale u / sum(u) + add cover, all padded.
  void mix(double scale, double add, const double *cover, double *p) const {
    vec all = {};
    for (long i = 0; i < padded(N); i += W) all += load(u + i);
    scale /= sum(all);
    for (long i = 0; i < padded(N); i += W) store(p + i, scale * load(u + i) + add * load(cover + i));
  }
};

// w_j of the n kernels evaluated, the largest 1, into `w`, which is padded and aligned; returns their sum.
OMKL_INLINE double relative_weights(const double *log_w, const int *evaluated, long n, double *w) {
  double top = log_w[evaluated[0]];
  for (long j = 1; j < n; ++j) top = greater(top, log_w[evaluated[j]]);
  for (long j = 0; j < n; ++j) w[j] = log_w[evaluated[j]] - top;
  for (long j = n; j < padded(n); ++j) w[j] = -INFINITY;
  vec all = {};
  for (long j = 0; j < padded(n); j += W) {
    const vec e = exp_below_zero(load(w + j));
    store(w + j, e);
    all += e;
  }
  return sum(all);
}

// sum_j w_j f_j over the kernels evaluated.
OMKL_INLINE double weighted_sum(const double *w, const double *f, long n) {
  double mixed = 0;
  for (long j = 0; j < n; ++j) mixed += w[j] * f[j];
  return mixed;
}

// z_i, f_i and |theta_i|^2 of the n kernels in s.evaluated; returns their weighted mean.
OMKL_INLINE double predict_some(const Frequencies &F, const double *theta, const double *log_w, Scratch &s, long n,
                                const double *x) {
  const double all = relative_weights(log_w, s.evaluated, n, s.work);  // first, because it depends on nothing below
  const bool in_range = phases_in_range(F, x);
  if (in_range && F.reference >= 0) reference_phases(F, x, s.phase);
  for (long j = 0; j < n; ++j)
    evaluate(F, in_range, s.phase, s.evaluated[j], s.evaluated[j + 1 < n ? j + 1 : j], theta, x, s.z + j * 2 * F.P,
             s.f[j], s.norm[j]);
  return weighted_sum(s.work, s.f, n) / all;
}

// The same for all kernels.
OMKL_INLINE double predict_all(const Frequencies &F, const double *theta, const double *log_w, Scratch &s,
                               const double *x) {
  for (long i = 0; i < F.N; ++i) s.evaluated[i] = static_cast<int>(i);
  return predict_some(F, theta, log_w, s, F.N, x);
}

// The first i with p_0 + ... + p_i > uniform; p is padded with zeros.
OMKL_INLINE long draw(const double *p, long N, double uniform) {
  vec below = {};
  veci passed = {};
  for (long i = 0; i < padded(N); i += W) {
    const vec sums = running_sum(load(p + i));
    passed -= below + sums <= uniform;
    below += permuted(sums, veci{} + (W - 1));
  }
  const long i = total(passed);
  return i < N ? i : N - 1;
}

OMKL_INLINE long argmax(const double *a, long N) {
  long best = 0;
  for (long i = 1; i < N; ++i)
    if (a[i] > a[best]) best = i;
  return best;
}

}  // namespace OMKL_ISA
}  // namespace omkl
