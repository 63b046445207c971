// As algorithms/graph_mkl/intervals.py: the scale of the errors, and half widths that hold their coverage.
#pragma once
#include "../losses.hpp"
#include "graph_mkl/state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// How much larger the errors of a row are than those of a row that the experts know and agree about.
OMKL_INLINE double spread(const Workspace &w) { return w.noise > 0 ? w.mixed_deviation / w.noise : 1; }

// Between the scale so far and that of the rows which are evidence for another one, by the evidence for it.
static double current_scale(const Calibration &c) {
  if (c.evidence[0] == 0 && c.evidence[1] == 0) return c.scale;
  double weight[2];
  for (long k = 0; k < 2; ++k) weight[k] = 1 - CHANGE_ODDS[k] / (CHANGE_ODDS[k] + expm1(c.evidence[k]));  // (G43)
  const long which = weight[1] > weight[0] ? 1 : 0;
  const double rows = c.since[which] + CHANGE_PRIOR_ROWS;
  const double ratio = (SCALE_OF_MEAN * c.total[which] / c.scale + CHANGE_PRIOR_ROWS) / rows;  // (G43)
  return c.scale * pow(ratio, weight[which]);  // (G43)
}

OMKL_INLINE double reported(const Calibration &c, const Workspace &w) {
  return c.rows ? current_scale(c) * spread(w) : w.mixed_deviation;  // (G40)
}

// The error that a normal distribution has as often as these have x; at most that of the last level.
static double as_normal(const double *half_widths, double x) {
  if (!(x < half_widths[TRACKED - 1])) return START_HALF_WIDTHS[TRACKED - 1];
  long l = 0;
  while (l < TRACKED - 1 && half_widths[l] <= x) ++l;
  const double low = l ? half_widths[l - 1] : 0, start = l ? START_HALF_WIDTHS[l - 1] : 0;
  return start + (START_HALF_WIDTHS[l] - start) / (half_widths[l] - low) * (x - low);  // (G41)
}

// A target outside an interval widens it and one inside narrows it, in the ratio that holds the coverage.
static void track(double *half_widths, double x, double rows) {
  const double gain = lesser(greater(GAIN_ROWS / rows, MIN_HALF_WIDTH_GAIN), MAX_HALF_WIDTH_GAIN);  // (G44)
  const double widened = exp(gain);
  double below = 0;
  for (long l = 0; l < TRACKED; ++l) {
    const double start = START_HALF_WIDTHS[l];
    const double moved = half_widths[l] * (x > half_widths[l] ? widened : 1) * exp(-gain * (1 - LEVELS[l]));  // (G44)
    const double within = lesser(greater(moved, start / HALF_WIDTH_RANGE), start * HALF_WIDTH_RANGE);
    half_widths[l] = below = greater(below, within);  // (G44)
  }
}

// After a row whose prediction was wrong by `error`.
static void update_calibration(Calibration &c, const Workspace &w, double error) {
  if (c.rows == 0) c.scale = greater(w.noise, MIN_SCALE), c.rows = RESTART_ROWS;
  const double gap = fabs(error) / spread(w);
  if (gap == 0 && c.scale <= MIN_SCALE) return;
  const double x = gap / current_scale(c), z = as_normal(c.half_widths, gap / c.scale);
  const double ratios[2] = {SCALE_RATIO, 1 / SCALE_RATIO};
  for (long k = 0; k < 2; ++k) {
    const double gained = -log(ratios[k]) + z * z / 2 * (1 - 1 / (ratios[k] * ratios[k]));
    c.evidence[k] = greater(c.evidence[k] + gained, 0);  // (G42)
    c.since[k] = c.evidence[k] > 0 ? c.since[k] + 1 : 0;
    c.total[k] = c.evidence[k] > 0 ? c.total[k] + gap : 0;
  }
  track(c.half_widths, x, static_cast<double>(c.rows));
  c.rows = c.rows < SCALE_ROWS ? c.rows + 1 : SCALE_ROWS;
  c.scale += (SCALE_OF_MEAN * gap - c.scale) * GAIN_ROWS / static_cast<double>(c.rows);  // (G45)
  const long which = c.evidence[1] > c.evidence[0] ? 1 : 0;
  if (c.evidence[which] > log(RESTART_ODDS * static_cast<double>(c.rows))) {
    c.scale = SCALE_OF_MEAN * c.total[which] / c.since[which];  // (G46)
    c.rows = static_cast<int64_t>(lesser(greater(c.since[which], RESTART_ROWS), SCALE_ROWS));  // (G46)
    for (long k = 0; k < 2; ++k) c.evidence[k] = c.since[k] = c.total[k] = 0;
  }
  c.scale = greater(c.scale, MIN_SCALE);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
