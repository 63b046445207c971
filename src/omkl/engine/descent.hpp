// C++ counterpart of algorithms/schedule.py and algorithms/descent.py: rates, and the step of one kernel's theta.
#pragma once
#include "losses.hpp"

namespace omkl {
namespace OMKL_ISA {

constexpr double TOO_FAR = 1e100;
constexpr double LEAST = 1e-15;

OMKL_INLINE double eta_at(const Schedule &schedule, int64_t t) {
  return schedule.anytime ? schedule.eta / sqrt(static_cast<double>(t)) : schedule.eta;
}

OMKL_INLINE double xi_at(const Schedule &schedule, int64_t t) {
  return schedule.anytime ? lesser(1, schedule.xi / sqrt(static_cast<double>(t))) : schedule.xi;
}

OMKL_INLINE double importance(const Descent &descent, double q, double eta, double weight) {
  const double floor = descent.stabiliser == Stabiliser::floor ? 2 * eta * weight : 0;
  return weight / greater(greater(q, floor), LEAST);
}

// theta = shrink theta + along z is the step of length k = eta / q; |z| = 1 gives the new norm
// without another pass.
OMKL_INLINE void descend(const Descent &descent, double f, double norm, double y, double k, double &shrink,
                         double &along) {
  const auto &[loss, lam, stabiliser, radius, resting_margin] = descent;
  if (stabiliser == Stabiliser::aware) {
    aware_step(loss, lam, resting_margin, f, y, k, shrink, along);
    return;
  }
  shrink = 1 - 2 * lam * k;
  along = -k * loss_derivative(loss, f, y);  // (17)
  if (stabiliser == Stabiliser::project) {
    const double after = sqrt(greater(0, shrink * shrink * norm + 2 * shrink * along * f + along * along));
    const double ratio = lesser(1, radius / greater(after, radius));
    shrink *= ratio;
    along *= ratio;
  }
}

// Whether `descend` leaves theta finite, where |theta|^2 and the weight of the kernel are; "aware" always does.
OMKL_INLINE bool stays_finite(const Descent &descent, double f, double norm, double y, double k) {
  if (descent.stabiliser == Stabiliser::aware) return true;
  const double shrink = 1 - 2 * descent.lam * k, along = k * loss_derivative(descent.loss, f, y);
  return is_finite(shrink * shrink * norm + along * along);
}

OMKL_INLINE bool bounded(const double *f, long n) {
  for (long i = 0; i < n; ++i)
    if (!(fabs(f[i]) < TOO_FAR)) return false;
  return true;
}

}  // namespace OMKL_ISA
}  // namespace omkl
