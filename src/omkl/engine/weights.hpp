// As algorithms/weights.py: weights kept as logarithms, and chances made of them.
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

// u / sum(u) of N logarithms of which one falls at a time: only its exponential is taken again.
//
// u_i = exp(log_u_i - ref) and ref depends on the largest logarithm alone, so that it makes no difference where a
// chunk of rows begins.
struct Shares {
  static constexpr double STEP = 32, FAINT = 1e-13;  // near exp(-STEP) = 1.3e-14 only `take` can tell
  const double *log_u;
  double *u;  // [N padded]
  long N;
  double ref;

  void take() {
    double top = log_u[0];
    for (long i = 1; i < N; ++i) top = greater(top, log_u[i]);
    ref = STEP * ceil(top / STEP);
    for (long i = 0; i < N; ++i) u[i] = log_u[i] - ref;
    for (long i = N; i < padded(N); ++i) u[i] = -INFINITY;
    for (long i = 0; i < padded(N); i += W) store(u + i, exp_below_zero(load(u + i)));
  }

  void fell(long i) {
    const vec e = exp_below_zero(splat(log_u[i] - ref));
    double *block = u + i / W * W;  // a whole register, since whole registers are read next
    store(block, LANE == i % W ? e : load(block));
    if (e[0] > FAINT) return;
    vec most = {};
    for (long j = 0; j < padded(N); j += W) most = larger(most, load(u + j));
    if (!(max(most) > FAINT)) take();
  }

  // p = keep u / sum(u) + extra, all padded.
  void mix(double keep, double add, const double *extra, double *p) const {
    vec all = {};
    for (long i = 0; i < padded(N); i += W) all += load(u + i);
    keep /= sum(all);
    for (long i = 0; i < padded(N); i += W) store(p + i, keep * load(u + i) + add * load(extra + i));
  }
};

// w_j of the n kernels heard, the largest 1, into `w`, which is padded and aligned; returns their sum.
OMKL_INLINE double weigh(const double *log_w, const int *heard, long n, double *w) {
  double top = log_w[heard[0]];
  for (long j = 1; j < n; ++j) top = greater(top, log_w[heard[j]]);
  for (long j = 0; j < n; ++j) w[j] = log_w[heard[j]] - top;
  for (long j = n; j < padded(n); ++j) w[j] = -INFINITY;
  vec all = {};
  for (long j = 0; j < padded(n); j += W) {
    const vec e = exp_below_zero(load(w + j));
    store(w + j, e);
    all += e;
  }
  return sum(all);
}

// sum_j w_j f_j over the kernels heard.
OMKL_INLINE double weighted(const double *w, const double *f, long n) {
  double mixed = 0;
  for (long j = 0; j < n; ++j) mixed += w[j] * f[j];
  return mixed;
}

// The kernels of s.heard answer; returns their combination.
OMKL_INLINE double answer(const Frequencies &F, const double *theta, const double *log_w, Scratch &s, long n,
                          const double *x) {
  const double all = weigh(log_w, s.heard, n, s.work);  // before listening: it waits for nothing
  const bool near = within_reach(F, x);
  if (near && F.model >= 0) model_phases(F, x, s.phase);
  for (long j = 0; j < n; ++j)
    listen(F, near, s.phase, s.heard[j], s.heard[j + 1 < n ? j + 1 : j], theta, x, s.z + j * 2 * F.P, s.f[j],
           s.norm[j]);
  return weighted(s.work, s.f, n) / all;
}

// The first i with p_0 + ... + p_i > r; p is padded with zeros.
OMKL_INLINE long draw(const double *p, long N, double r) {
  vec below = {};
  veci passed = {};
  for (long i = 0; i < padded(N); i += W) {
    const vec sums = running_sum(load(p + i));
    passed -= below + sums <= r;
    below += __builtin_shuffle(sums, veci{} + (W - 1));
  }
  const long i = total(passed);
  return i < N ? i : N - 1;
}

OMKL_INLINE long heaviest(const double *log_u, long N) {
  long best = 0;
  for (long i = 1; i < N; ++i)
    if (log_u[i] > log_u[best]) best = i;
  return best;
}

}  // namespace OMKL_ISA
}  // namespace omkl
