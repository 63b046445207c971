// Running mean and spread of every column (Welford), and rows standardised by them.
//
// A row is standardised by the statistics that include it: the first row becomes 0, no value can
// leave [-sqrt(n), sqrt(n)], and predicting and learning see the same row.
#pragma once
#include <cmath>
#include <cstdint>

namespace omkl {

constexpr double HUGE_INPUT = 1e150;  // its square is still finite
constexpr double NO_SPREAD = 1e-12;   // relative to the mean: rounding noise, a constant column

// [3][d]: count, mean, and sum of squared deviations of every column; for a target d = 1.
struct Columns {
  long d;
  double *stats;

  double &count(long k) const { return stats[k]; }
  double &mean(long k) const { return stats[d + k]; }
  double &square(long k) const { return stats[2 * d + k]; }
};

inline double clamped(double x) { return x > HUGE_INPUT ? HUGE_INPUT : x < -HUGE_INPUT ? -HUGE_INPUT : x; }

inline double deviation(double count, double mean, double square) {
  const double sd = count > 0 ? std::sqrt(square / count) : 0;
  return sd > NO_SPREAD * std::fabs(mean) && sd > 1 / HUGE_INPUT ? sd : 0;
}

// out[k] = (x[k] - mean) / (sd sqrt(d)). NaN is a missing value: out is 0 and the statistics stay. `now` becomes the
// statistics with the row; it may be `before` itself.
inline void standardise(const Columns &before, const Columns &now, const double *x, double *out) {
  const double root = 1 / std::sqrt(static_cast<double>(now.d));
  for (long k = 0; k < now.d; ++k) {
    const double old_count = before.count(k), old_mean = before.mean(k), old_square = before.square(k);
    const bool present = !(x[k] != x[k]);
    const double value = present ? clamped(x[k]) : old_mean;
    const double count = old_count + 1, gap = value - old_mean;
    const double mean = old_mean + gap / count, square = old_square + gap * (value - mean);
    const double sd = deviation(count, mean, square);
    out[k] = present && sd > 0 ? (value - mean) / sd * root : 0;
    now.count(k) = present ? count : old_count;
    now.mean(k) = present ? mean : old_mean;
    now.square(k) = present ? square : old_square;
  }
}

}  // namespace omkl
