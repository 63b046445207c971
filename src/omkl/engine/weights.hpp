// As rounds/weights.py: weights kept as logarithms, and chances made of them.
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

// sum_j w_j f_j / sum_j w_j over the kernels heard; `work` is padded and aligned.
OMKL_INLINE double combined(const double *log_w, const int *heard, long n, const double *f, double *work) {
  double top = log_w[heard[0]];
  for (long j = 1; j < n; ++j) top = greater(top, log_w[heard[j]]);
  for (long j = 0; j < n; ++j) work[j] = log_w[heard[j]] - top;
  for (long j = n; j < padded(n); ++j) work[j] = -INFINITY;
  for (long j = 0; j < padded(n); j += W) store(work + j, exp_below_zero(load(work + j)));
  double total = 0, mixed = 0;
  for (long j = 0; j < n; ++j) {
    total += work[j];
    mixed += work[j] * f[j];
  }
  return mixed / total;
}

OMKL_INLINE long draw(const double *p, long N, double r) {
  double below = 0;
  for (long i = 0; i < N; ++i) {
    below += p[i];
    if (below > r) return i;
  }
  return N - 1;
}

OMKL_INLINE long heaviest(const double *log_u, long N) {
  long best = 0;
  for (long i = 1; i < N; ++i)
    if (log_u[i] > log_u[best]) best = i;
  return best;
}

}  // namespace OMKL_ISA
}  // namespace omkl
