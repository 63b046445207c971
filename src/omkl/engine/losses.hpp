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

constexpr double LONGEST = 1e100;
constexpr double NEGLIGIBLE = 1e-20;
constexpr double SATURATED = 40;

static double logistic_rise(double m, double k) {
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

OMKL_INLINE vec velocity(vec m, double ridge) {
  const vec e = exp_below_zero(-magnitude(m));
  return (m > 0 ? e : splat(1)) / (1 + e) - ridge * m;
}
OMKL_INLINE double velocity(double m, double ridge) { return velocity(splat(m), ridge)[0]; }

OMKL_INLINE double travel_time(double m, double way, double ridge) {
  alignas(64) static constexpr double nodes[8] = {0.01985507175123188, 0.10166676129318664, 0.2372337950418355,
                                                  0.4082826787521751,  0.5917173212478249,  0.7627662049581645,
                                                  0.8983332387068134,  0.9801449282487681};
  alignas(64) static constexpr double weights[8] = {0.05061426814518813, 0.11119051722668724, 0.15685332293894363,
                                                    0.18134189168918100, 0.18134189168918100, 0.15685332293894363,
                                                    0.11119051722668724, 0.05061426814518813};
  vec time = {};
  for (long i = 0; i < 8; i += W) time += load(weights + i) / velocity(m + way * load(nodes + i), ridge);
  return way * sum(time);
}

OMKL_INLINE double travelled(double m, double k, double ridge) {
  const double v = velocity(m, ridge);
  const double v2 = velocity(m + k / 2 * v, ridge);
  const double v3 = velocity(m + k / 2 * v2, ridge);
  double way = k / 6 * (v + 2 * v2 + 2 * v3 + velocity(m + k * v3, ridge));
  for (int i = 0; i < 4; ++i) {
    const double change = (k - travel_time(m, way, ridge)) * velocity(m + way, ridge);
    way += change;
    if (fabs(change) <= 1e-8 * fabs(way)) break;
  }
  return way;
}

static double rise_with_ridge(double m, double k, double ridge, double gone, double rest) {
  const double start = m;
  if (gone == -1) return rest;
  if (m > rest + SATURATED) {
    k -= log(m / (rest + SATURATED)) / ridge;
    if (k <= 0) return 0;
    m = rest + SATURATED;
  } else if (m < -SATURATED) {
    k -= log1p(ridge * (-SATURATED - m) / (1 + ridge * SATURATED)) / ridge;
    if (k <= 0) return -gone / ridge;
    m = -SATURATED;
  }
  while (true) {
    const double way = greater(-1, lesser(1, (rest - m) / 4));
    if (m + way == m) return greater(0, rest - start - gone * start);
    if (k * fabs(velocity(m, ridge)) > fabs(way)) {
      const double time = travel_time(m, way, ridge);
      if (time < k) {
        m += way;
        k -= time;
        continue;
      }
    }
    return greater(0, m - start + travelled(m, k, ridge) - gone * start);
  }
}

// theta = shrink theta + along z
OMKL_INLINE void aware_step(Loss loss, double lam, double resting_margin, double f, double y, double k, double &shrink,
                            double &along) {
  k = lesser(k, LONGEST);
  const double ridge = lesser(2 * lam, LONGEST), gone = expm1(-ridge * k);
  shrink = 1 + gone;
  if (loss == Loss::squared) {
    const double rest = y / (1 + ridge / 2);
    along = shrink * expm1(-2 * k) * (f - rest) - gone * rest;
    return;
  }
  const double m = y * f;
  const bool negligible = ridge * k < NEGLIGIBLE;
  if (loss == Loss::logistic)
    along = y * (negligible ? logistic_rise(m, k) : rise_with_ridge(m, k, ridge, gone, resting_margin));
  else if (m > 1)
    along = y * greater(0, 1 - shrink * m) / greater(1, ridge);
  else
    along = y * lesser(negligible ? k : -gone / ridge, 1 - shrink * m);
}

}  // namespace OMKL_ISA
}  // namespace omkl
