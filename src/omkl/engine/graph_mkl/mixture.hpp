// As algorithms/graph_mkl/mixture.py: experts weighted by the evidence for them, and residual stacking.
#pragma once
#include "graph_mkl/experts.hpp"
#include "graph_mkl/selection.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// Calls f(set, evaluations, e, counted) for every expert of both sets that is evaluated.
template <class AnyState, class F>
OMKL_INLINE void each_expert(const Problem &p, AnyState &s, Workspace &w, F f) {
  for (long g = 0; g < 2; ++g)
    each_evaluated(p, s.sets[g], s.large, g == s.incumbent, w.share,
                   [&](long e, bool counted) { f(s.sets[g], w.sets[g], e, counted); });
}

// The mixture

static void mixture_weights(const Problem &p, const State &s, Workspace &w) {
  double top = -INFINITY, total = 0;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &, long e, bool counted) {
    if (counted) top = greater(top, set.evidence[e]);
  });
  for (Evaluations &out : w.sets)
    for (long e = 0; e < p.E; ++e) out.weight[e] = 0;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &out, long e, bool counted) {
    if (counted) total += out.weight[e] = exp(set.evidence[e] - top);  // (G25)
  });
  each_expert(p, s, w, [&](const ExpertSet &, Evaluations &out, long e, bool counted) {
    if (counted) out.weight[e] /= total;  // (G25)
  });
}

// Mean and standard deviation, or the probabilities of the labels, of the mixture.
static void mix(const Problem &p, const State &s, Workspace &w, double *prediction) {
  for (long k = 0; k < outputs(p); ++k) prediction[k] = 0;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &out, long e, bool counted) {
    if (!counted) return;
    if (p.classify) {
      label_probabilities(out.mean + e * p.K, variance(p, set, e, out.leverage[e]), p.K, w.probability);
      for (long k = 0; k < p.K; ++k) prediction[k] += out.weight[e] * w.probability[k];  // (G26)
    } else {
      prediction[0] += out.weight[e] * out.mean[e];  // (G26)
    }
  });
  if (p.classify) return;
  double spread = 0, noise = 0;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &out, long e, bool counted) {
    if (!counted) return;
    const double gap = out.mean[e] - prediction[0];
    const double v = variance(p, set, e, out.leverage[e]);
    spread += out.weight[e] * (v + gap * gap);           // (G26)
    noise += out.weight[e] * v / (1 + out.leverage[e]);  // (G40)
  });
  prediction[1] = w.mixed_deviation = sqrt(spread);
  w.noise = sqrt(noise);
}

static double log_likelihood(const Problem &p, Workspace &w, const double *mean, double v, double y) {
  if (p.classify) {
    label_probabilities(mean, v, p.K, w.probability);
    return log(greater(w.probability[static_cast<long>(y)], MIN_PROBABILITY));  // (G27)
  }
  constexpr double power = (STUDENT_DEGREES + 1) / 2.0;
  const double gap = y - mean[0];
  return -0.5 * log(v) - power * log1p(lesser(gap * gap / (STUDENT_DEGREES * v), TOO_FAR * TOO_FAR));  // (G27)
}

// Evidence for an expert after a gain at a row of this relative weight.
OMKL_INLINE double evidence_moved(const Problem &p, double evidence, double gain, double relative) {
  if (relative == 1) return (1 - p.discount) * (evidence + gain);  // (G28)
  const double kept = pow(1 - p.discount, relative);               // (G28)
  return kept * evidence + (p.discount > 0 ? (1 - p.discount) * (1 - kept) / p.discount : relative) * gain;  // (G28)
}

// Scores of the experts; false where the evidence for one would not be finite.
static bool score(const Problem &p, const State &s, Workspace &w, double y, double relative) {
  double top = -INFINITY, joint = 0;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &out, long e, bool) {
    out.score[e] = log_likelihood(p, w, out.mean + e * p.K, variance(p, set, e, out.leverage[e]), y);
    if (out.weight[e] > 0) top = greater(top, out.score[e]);
  });
  each_expert(p, s, w, [&](const ExpertSet &, Evaluations &out, long e, bool) {
    if (out.weight[e] > 0) joint += out.weight[e] * exp(out.score[e] - top);
  });
  joint = top + log(joint);  // (G28)
  bool usable = true;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &out, long e, bool) {
    out.score[e] -= joint;  // (G28)
    usable &= is_finite(evidence_moved(p, set.evidence[e], out.score[e], relative));
  });
  return usable;
}

static void update_evidence(const Problem &p, State &s, Workspace &w, double relative) {
  each_expert(p, s, w, [&](ExpertSet &set, Evaluations &out, long e, bool) {
    set.evidence[e] = evidence_moved(p, set.evidence[e], out.score[e], relative);
  });
}

// Residual stacking

// How far the experts are from the mixture, and the mixture's mean corrected by the stacking on the incumbent's.
static double stacked(const Problem &p, const State &s, Workspace &w, double mean, double deviation) {
  w.mean = mean, w.deviation = deviation > 0 ? deviation : INFINITY;
  for (Evaluations &out : w.sets)
    for (long e = 0; e < p.stride_stack; ++e) out.differences[e] = 0;
  each_expert(p, s, w, [&](const ExpertSet &, Evaluations &out, long e, bool counted) {
    if (counted) out.differences[e] = clipped((out.mean[e] - mean) / w.deviation, STACK_CLIP);  // (G29)
  });
  const double *z = w.sets[s.incumbent].differences;
  return mean + deviation * clipped(dot(s.sets[s.incumbent].stack.theta, z, p.stride_stack), STACK_CLIP);  // (G30)
}

// One row of least squares on the features z with the target `gap` beyond what is predicted now.
static void move_stack(const Problem &p, Stack &stack, Workspace &w, const double *z, double gap, double weight) {
  factor_times(stack.R, p.E, p.stride_stack, z, w.phi_stack);
  const double leverage = dot(w.phi_stack, w.phi_stack, p.stride_stack);
  factor_update(stack.R, p.E, p.stride_stack, w.phi_stack, counts(p, leverage, weight), 1, w.keep, w.take,
                w.Pz);  // (G18)
  add(stack.theta, weight * gap / (1 + weight * leverage), w.Pz, p.stride_stack);
}

static void update_stack(const Problem &p, Stack &stack, Workspace &w, const double *z, double y, double weight) {
  const double target = clipped((y - w.mean) / w.deviation, STACK_CLIP);  // (G31)
  move_stack(p, stack, w, z, target - dot(stack.theta, z, p.stride_stack), weight);
}

// Stacking of labels

// The logarithms of the mixture's probabilities and the stacking of the differences from them, in w.probability.
static void stacked_labels(const Problem &p, const Stack &stack, Workspace &w, const double *Z) {
  for (long k = 0; k < p.K; ++k) w.probability[k] = w.log_mixed[k];
  for (long e = 0; e < p.E; ++e)
    for (long k = 0; k < p.K; ++k) w.probability[k] += stack.theta[e] * Z[e * p.K + k];
  normalised(w.probability, p.K, w.probability);  // (G62)
}

// How far the experts are from the mixture, and the mixture's probabilities corrected by the stacking on the
// incumbent's.
static void stack_labels(const Problem &p, const State &s, Workspace &w, double *prediction) {
  for (long k = 0; k < p.K; ++k) w.log_mixed[k] = log(greater(prediction[k], MIN_PROBABILITY));
  for (Evaluations &out : w.sets)
    for (long j = 0; j < p.stride_stack * p.K; ++j) out.differences[j] = 0;
  each_expert(p, s, w, [&](const ExpertSet &set, Evaluations &out, long e, bool counted) {
    if (!counted) return;
    label_probabilities(out.mean + e * p.K, variance(p, set, e, out.leverage[e]), p.K, w.probability);
    for (long k = 0; k < p.K; ++k) {
      const double gap = log(greater(w.probability[k], MIN_PROBABILITY)) - w.log_mixed[k];  // (G61)
      out.differences[e * p.K + k] = clipped(gap, LABEL_STACK_CLIP);                        // (G61)
    }
  });
  stacked_labels(p, s.sets[s.incumbent].stack, w, w.sets[s.incumbent].differences);
  for (long k = 0; k < p.K; ++k) prediction[k] = w.probability[k];
}

// After a row of this relative weight, or a copy of it, with the features of the step in `step`.
static void move_label_stack(const Problem &p, Stack &stack, Workspace &w, const double *step, double relative) {
  bool any = false;
  for (long e = 0; e < p.stride_stack; ++e) w.z_stack[e] = 0;
  for (long e = 0; e < p.E; ++e) w.z_stack[e] = step[e], any |= step[e] != 0;
  if (any) move_stack(p, stack, w, w.z_stack, step[p.E] - dot(stack.theta, w.z_stack, p.stride_stack), relative);
}

static void update_label_stack(const Problem &p, ExpertSet &set, Workspace &w, const double *Z, double y,
                               double relative) {
  stacked_labels(p, set.stack, w, Z);
  for (long e = 0; e < p.E; ++e) {
    double expected = 0;
    for (long k = 0; k < p.K; ++k) expected += Z[e * p.K + k] * w.probability[k];
    set.judged.step[e] = Z[e * p.K + static_cast<long>(y)] - expected;  // (G63)
  }
  double &target = set.judged.step[p.E];
  target = 1;
  for (long e = 0; e < p.E; ++e) target += set.stack.theta[e] * set.judged.step[e];
  move_label_stack(p, set.stack, w, set.judged.step, relative);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
