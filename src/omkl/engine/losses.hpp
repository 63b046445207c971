// C++ counterpart of losses.py: value, derivative, importance-weight-aware step.
#pragma once
#include "lanes.hpp"
#include "problem.hpp"

namespace omkl {
namespace OMKL_ISA {

OMKL_INLINE double lesser(double a, double b) { return a < b ? a : b; }
OMKL_INLINE double greater(double a, double b) { return a > b ? a : b; }

OMKL_INLINE bool is_finite(double a) { return fabs(a) <= 0x1.fffffffffffffp1023; }

OMKL_INLINE double loss_value(Loss loss, double f, double y) {
  if (loss == Loss::squared) return (f - y) * (f - y);
  if (loss == Loss::logistic) return greater(-y * f, 0) + log1p(exp(-fabs(f)));
  return greater(0, 1 - y * f);
}

OMKL_INLINE double loss_derivative(Loss loss, double f, double y) {
  if (loss == Loss::squared) return 2 * (f - y);
  if (loss == Loss::logistic) {
    const double e = exp(-fabs(f));
    return -y * (y * f > 0 ? e : 1) / (1 + e);
  }
  return y * f < 1 ? -y : 0;
}

static double logistic_rise(double m, double k) {
  k = lesser(k, 1e100);
  const double e = exp(-fabs(m));
  double s = lesser(k, m > -30 ? log1p(k * exp(-m)) : k > 0 ? -m + log(e + k) : 0);
  while (true) {
    double lower;
    if (m > 0) {
      lower = s - (e * (s - k) + expm1(s)) / (e + exp(s));
    } else {
      const double rise = m > -30 ? e * expm1(s) : exp(m + s) - e;
      lower = s - (s - k + rise) / (1 + e + rise);
    }
    if (!(lower < s)) return s;
    s = lower;
  }
}

OMKL_INLINE double aware_step(Loss loss, double f, double y, double k) {
  if (loss == Loss::squared) return (f - y) * -expm1(-2 * k);
  if (loss == Loss::logistic) return -y * logistic_rise(y * f, k);
  return -y * lesser(k, greater(0, 1 - y * f));
}

}  // namespace OMKL_ISA
}  // namespace omkl
