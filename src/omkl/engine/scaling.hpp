// Running mean and spread of every column (Welford), and rows standardised by them.
//
// A row is standardised by the statistics that include it: the first row becomes 0, no value can
// leave [-sqrt(n), sqrt(n)], and asking (keep = false) and telling (keep = true) see the same row.
#pragma once
#include <cmath>
#include <cstdint>

namespace omkl {

constexpr double HUGE_INPUT = 1e150;  // its square is still finite
constexpr double NO_SPREAD = 1e-12;   // relative to the mean: rounding noise, a constant column

struct Columns {
  long d;
  double *count, *mean, *square;  // [d] each; square: sum of squared deviations
};

inline double clamped(double x) { return x > HUGE_INPUT ? HUGE_INPUT : x < -HUGE_INPUT ? -HUGE_INPUT : x; }

inline double deviation(double count, double mean, double square) {
  const double sd = count > 0 ? std::sqrt(square / count) : 0;
  return sd > NO_SPREAD * std::fabs(mean) && sd > 1 / HUGE_INPUT ? sd : 0;
}

// out[k] = (x[k] - mean) / (sd sqrt(d)). NaN stands for a value that is not there: out is 0, nothing is counted.
inline void standardise(Columns &c, const double *x, double *out, bool keep) {
  const double root = 1 / std::sqrt(static_cast<double>(c.d));
  for (long k = 0; k < c.d; ++k) {
    const bool there = !(x[k] != x[k]);
    const double value = there ? clamped(x[k]) : c.mean[k];
    const double count = c.count[k] + 1, gap = value - c.mean[k];
    const double mean = c.mean[k] + gap / count, square = c.square[k] + gap * (value - mean);
    const double sd = deviation(count, mean, square);
    out[k] = there && sd > 0 ? (value - mean) / sd * root : 0;
    if (keep && there) c.count[k] = count, c.mean[k] = mean, c.square[k] = square;
  }
}

// The same for a target: `shift` and `scale` map a prediction made before y is known back to y's units.
inline double standardise_target(double *stats, double y, double &shift, double &scale) {
  double &count = stats[0], &mean = stats[1], &square = stats[2];
  shift = mean, scale = deviation(count, mean, square);
  const double value = clamped(y), gap = value - mean;
  count += 1;
  mean += gap / count;
  square += gap * (value - mean);
  const double sd = deviation(count, mean, square);
  return sd > 0 ? (value - mean) / sd : 0;
}

}  // namespace omkl
