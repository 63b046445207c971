// As algorithms/graph_mkl/change.py: when the error rises a challenger starts, and after a trial the better set stays.
#pragma once
#include "../losses.hpp"
#include "graph_mkl/state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

enum class Verdict { none, start, keep, replace };

static void update_trend(Trend &trend, double error, int64_t age, double unit) {
  auto &[fast, slow, n] = trend;
  if (age <= TREND_AFTER) return;
  const double cap = ERROR_CAP * greater(slow, MIN_VARIANCE * (unit * unit));  // (G35)
  const double capped = n > CAP_AFTER ? lesser(error, cap) : error;            // (G35)
  n += 1;
  const double latest = 1 / static_cast<double>(n);
  slow += greater(1.0 / SLOW_ROUNDS, latest) * (capped - slow);  // (G36)
  fast += greater(1.0 / FAST_ROUNDS, latest) * (capped - fast);  // (G36)
}

// Errors of a constant target, whose unit is not known, are rounding, and so are those of no variance.
OMKL_INLINE bool alarm(const Trend &trend, double unit) {
  const double usual = greater(trend.slow, MIN_VARIANCE * (unit * unit));                   // (G37)
  return unit > 0 && trend.rounds > ALARM_AFTER && trend.fast > ALARM_RATIO * usual;  // (G37)
}

static void update_trial(Trial &trial, double incumbent, double challenger) {
  trial.incumbent = TRIAL_MEMORY * trial.incumbent + incumbent;     // (G38)
  trial.challenger = TRIAL_MEMORY * trial.challenger + challenger;  // (G38)
}

static Verdict verdict(const Problem &p, const Trend &trend, const Trial &trial, int64_t challenger_age, double unit,
                       bool misfit) {
  if (challenger_age < 0) return p.trial && (misfit || alarm(trend, unit)) ? Verdict::start : Verdict::none;
  if (challenger_age < p.trial) return Verdict::none;
  return trial.challenger > trial.incumbent ? Verdict::replace : Verdict::keep;  // (G39)
}

}  // namespace omkl::graph_mkl::OMKL_ISA
