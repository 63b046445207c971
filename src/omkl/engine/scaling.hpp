// Running mean and spread of every column (Welford), and rows standardised by them.
//
// A row is standardised by the statistics that include it: the first row becomes 0, no value can
// leave [-sqrt(n), sqrt(n)], and predicting and learning see the same row.
//
// Huge values, or first rows in other units, would spoil the statistics for as long as they count. A value far from the
// mean is therefore clipped, once there are some to judge by, unless the value before it was far too: then the scale
// has changed. And beside the statistics of all rows there are those of the latest block of rows. When it has
// BLOCK_VALUES rows and is a quarter of all, and its deviation is smaller by more than a factor of MISFIT, the
// statistics start again from the block, and in any case the next block begins. Blocks grow with the stream, so that
// trends, slow waves and random walks do not look spoiled. A column that has been constant to the end of a block counts
// as one value from there on: when it begins to vary, its past must not outweigh that for long.
#pragma once
#include <cmath>
#include <cstdint>

namespace omkl {

constexpr double HUGE_INPUT = 1e150;  // its square is still finite
constexpr double NO_SPREAD = 1e-12;  // relative to the mean: rounding noise, a constant column
constexpr double BLOCK_VALUES = 64;  // least number of values of a block
constexpr double BLOCK_DIVISOR = 4;  // and its least share of all values: one over it
constexpr double MISFIT = 50;  // how much smaller its deviation must be
constexpr double LIMIT = 30;  // deviations at which a value is clipped, after as many values as a block has

constexpr long STATISTICS = 7;

// [STATISTICS][d]: count, mean, and sum of squared deviations of every column, the same of its latest block, and
// whether its last value was far from the mean; for a target d = 1.
struct Columns {
  long d;
  double *stats;

  double &count(long k) const { return stats[k]; }
  double &mean(long k) const { return stats[d + k]; }
  double &square(long k) const { return stats[2 * d + k]; }
  double &block_count(long k) const { return stats[3 * d + k]; }
  double &block_mean(long k) const { return stats[4 * d + k]; }
  double &block_square(long k) const { return stats[5 * d + k]; }
  double &was_far(long k) const { return stats[6 * d + k]; }
};

inline double clamped(double x) { return x > HUGE_INPUT ? HUGE_INPUT : x < -HUGE_INPUT ? -HUGE_INPUT : x; }

inline double deviation(double count, double mean, double square) {
  const double sd = count > 0 ? std::sqrt(square / count) : 0;
  return sd > NO_SPREAD * std::fabs(mean) && sd > 1 / HUGE_INPUT ? sd : 0;
}

// Where a block is over: the statistics start again from it if those of all rows are spoiled, and the next one begins.
inline void end_blocks(const Columns &c) {
  for (long k = 0; k < c.d; ++k) {
    if (c.block_count(k) < BLOCK_VALUES || BLOCK_DIVISOR * c.block_count(k) < c.count(k)) continue;
    const double latest = deviation(c.block_count(k), c.block_mean(k), c.block_square(k));
    const double whole = deviation(c.count(k), c.mean(k), c.square(k));
    if (!(whole > 0)) c.count(k) = 1, c.square(k) = 0;
    if (latest > 0 && whole > MISFIT * latest) {
      c.count(k) = c.block_count(k);
      c.mean(k) = c.block_mean(k);
      c.square(k) = c.block_square(k);
    }
    c.block_count(k) = c.block_mean(k) = c.block_square(k) = 0;
  }
}

// Whether a value is too far from the mean of the others to be believed.
inline bool is_far(double value, double count, double mean, double square) {
  const double gap = value - mean;
  return count >= BLOCK_VALUES && gap * gap * count > LIMIT * LIMIT * square && deviation(count, mean, square) > 0;
}

inline double limited(double value, double count, double mean, double square) {
  const double most = LIMIT * deviation(count, mean, square);
  return value > mean ? mean + most : mean - most;
}

// out[k] = (x[k] - mean) / (sd sqrt(d)), with x[k] limited. NaN is a missing value: out is 0 and the statistics stay.
// `now` becomes the statistics with the row; it may be `before` itself.
inline void standardise(const Columns &before, const Columns &now, const double *x, double *out) {
  const double root = 1 / std::sqrt(static_cast<double>(now.d));
  bool over = false;
  for (long k = 0; k < now.d; ++k) {
    const double old_count = before.count(k), old_mean = before.mean(k), old_square = before.square(k);
    const double old_block_count = before.block_count(k), old_block_mean = before.block_mean(k),
                 old_block_square = before.block_square(k);
    const bool present = !(x[k] != x[k]);
    double value = present ? clamped(x[k]) : old_mean;
    const bool far = present && is_far(value, old_count, old_mean, old_square);
    if (far && before.was_far(k) == 0) value = limited(value, old_count, old_mean, old_square);
    now.was_far(k) = present ? (far ? 1 : 0) : before.was_far(k);
    out[k] = value;
    const double count = old_count + 1, gap = value - old_mean;
    const double mean = old_mean + gap / count, square = old_square + gap * (value - mean);
    const double block_count = old_block_count + 1, block_gap = value - old_block_mean;
    const double block_mean = old_block_mean + block_gap / block_count;
    now.count(k) = present ? count : old_count;
    now.mean(k) = present ? mean : old_mean;
    now.square(k) = present ? square : old_square;
    now.block_count(k) = present ? block_count : old_block_count;
    now.block_mean(k) = present ? block_mean : old_block_mean;
    now.block_square(k) = present ? old_block_square + block_gap * (value - block_mean) : old_block_square;
    over |= (block_count >= BLOCK_VALUES) & (BLOCK_DIVISOR * block_count >= count);
  }
  if (over) end_blocks(now);
  for (long k = 0; k < now.d; ++k) {
    const double sd = deviation(now.count(k), now.mean(k), now.square(k));
    out[k] = x[k] == x[k] && sd > 0 ? (out[k] - now.mean(k)) / sd * root : 0;
  }
}

}  // namespace omkl
