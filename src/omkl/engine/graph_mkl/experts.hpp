// As algorithms/graph_mkl/experts.py: how each expert predicts, and how it learns from one row.
#pragma once
#include "graph_mkl/ahead.hpp"
#include "graph_mkl/memory.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// As before the first row.
static void reset_coefficients(const Problem &p, Coefficients &c) {
  for (long i = 0; i <= p.maps; ++i) {
    const double start = 1 / sqrt(p.ridges[i]);
    const Expert first(p, c, first_on(p, i));
    const long rows = first.diagonal ? 1 : first.n;
    for (long j = 0; j < rows * first.stride; ++j) first.R[j] = 0;
    for (long j = 0; j < first.n; ++j) first.R[first.diagonal ? j : j * first.stride + j] = start;  // (G9)
    for (long j = 0; j < learners_on(p, i) * p.K * first.stride; ++j) first.theta[j] = 0;
  }
  for (long k = 0; k < p.S; ++k) c.R_sparse[k] = 1 / sqrt(SPARSE_RIDGE);  // (G60)
  for (long k = 0; k < p.K * p.S; ++k) c.theta_sparse[k] = 0;
}

// Predictions

// z and phi of the sparse inputs of a row; returns their part of the leverage.
static double evaluate_sparse(const ExpertSet &set, const SparseRow &row, Evaluations &out) {
  double leverage = 0;
  for (long j = 0; j < row.n; ++j) {
    const long k = place_of(row, j);
    out.z_sparse[j] = clipped(row.value[j] * set.scaling.sparse[k], CLIP_LINEAR);  // (G58)
    out.phi_sparse[j] = set.coefficients.R_sparse[k] * out.z_sparse[j];
    leverage += out.phi_sparse[j] * out.phi_sparse[j];
  }
  return leverage;
}

// Output k of the sparse inputs' part of the linear expert.
OMKL_INLINE double sparse_product(const Problem &p, const Coefficients &c, const SparseRow &row, const double *z,
                                  long k) {
  double total = 0;
  for (long j = 0; j < row.n; ++j) total += c.theta_sparse[k * p.S + place_of(row, j)] * z[j];
  return total;
}

constexpr uint8_t HAS_FEATURES = 1, HAS_DISTANCES = 2;

// z, phi, mean and leverage of one expert. `ready` flags what has been computed for its map before.
static void evaluate(const Problem &p, const ExpertSet &set, Workspace &w, Evaluations &out, long e, uint8_t *ready) {
  double *mean = out.mean + e * p.K;
  if (e >= p.first_large) {
    for (long k = 0; k < p.K; ++k) mean[k] = w.forecast[(e - p.first_large) * p.K + k];
    out.leverage[e] = 0;
    return;
  }
  if (e >= p.first_memory) {
    const long m = e - p.first_memory;
    double *near = out.near + (out.leads || out.follows ? m * WINDOW : 0);
    if (!out.follows) {
      if (!(ready[p.maps] & HAS_DISTANCES)) {
        squared_distances(p, set.window, set.age, w);
        ready[p.maps] |= HAS_DISTANCES;
      }
      out.whole[m] = weigh_memory(set.window, set.age, w, p.widths[m], near, out.leverage[e]);
    }
    predict_from_memory(p, set.window, set.age, near, out.whole[m], mean);
    return;
  }
  const Expert x(p, set.coefficients, e);
  double *z = out.z + x.i * w.widest, *phi = out.phi + x.i * w.widest;
  const bool own = !out.follows, taken = own && x.b == 0 && take_ahead(p, set.scaling, x, w, out);
  if (own && !taken && !(ready[x.i] & HAS_FEATURES)) features_of(p, x.i, w, z);
  ready[x.i] |= HAS_FEATURES;
  double leverage = 0;
  if (own && x.b == 0) {
    if (!taken) compute_phi(x, z, phi);
    leverage = dot(phi, phi, x.stride);  // (G9)
  }
  const bool has_sparse = e == p.on_kernels && w.sparse.n > 0;
  if (has_sparse) leverage += evaluate_sparse(set, w.sparse, out);
  if (own && x.b == 0) {  // where P will not change, P z is computed while its factor is in the cache
    out.has_Pz[x.i] = w.coming && !x.diagonal && leverage <= p.min_leverage;
    if (out.has_Pz[x.i] && !taken)
      all_columns<false>(x.R, x.n, x.stride, phi, nullptr, nullptr, out.Pz + x.i * w.widest);
  }
  if (own) out.leverage[e] = leverage;
  for (long k = 0; k < p.K; ++k) {
    double product = dot(x.theta + k * x.stride, z, x.stride);
    if (has_sparse) product += sparse_product(p, set.coefficients, w.sparse, out.z_sparse, k);
    mean[k] = set.scaling.shift[k] + unit_of(set.scaling) * product;  // (G7)
  }
  if (!p.classify && e == p.on_kernels) *mean = within_range(set.window, set.age, *mean);
}

static double variance(const Problem &p, const ExpertSet &set, long e, double leverage) {
  const double unit = unit_of(set.scaling);
  if (p.classify && leverage > LABEL_LEVERAGE) leverage = LABEL_LEVERAGE;  // (G13)
  return (set.noise.level[e] * (1 + leverage) + MIN_VARIANCE) * unit * unit;  // (G13)
}

static void label_probabilities(const double *mean, double v, long K, double *out) {
  for (long k = 0; k < K; ++k) out[k] = mean[k] / v;
  normalised(out, K, out);  // (G14)
}

// Learning

// How many times a row of this leverage counts for P.
OMKL_INLINE double counts(const Problem &p, double leverage, double weight) {
  const double left =
      p.min_leverage > 0 ? 1 / p.min_leverage - 1 / greater(leverage, MIN_LEVERAGE_DIVISOR) : weight;  // (G17)
  return lesser(weight, left);
}

// The sparse inputs of a row, as the linear expert has them; none for other experts.
struct Sparse {
  const SparseRow *row;
  const double *z, *phi;
  double leverage;  // their part of it
};

OMKL_INLINE double product(const Problem &p, const ExpertSet &set, const Expert &x, const double *z,
                           const Sparse &sparse, long k) {
  const double dense = dot(x.theta + k * x.stride, z, x.stride);
  return sparse.row ? dense + sparse_product(p, set.coefficients, *sparse.row, sparse.z, k) : dense;
}

// theta + step P z, of output k; P before the row.
OMKL_INLINE void move_theta(const Problem &p, ExpertSet &set, const double *Pz, const Expert &x, const Sparse &sparse,
                            long k, double step) {
  add(x.theta + k * x.stride, step, Pz, x.stride);
  if (!sparse.row) return;
  for (long j = 0; j < sparse.row->n; ++j) {
    const long at = place_of(*sparse.row, j);
    set.coefficients.theta_sparse[k * p.S + at] += step * (set.coefficients.R_sparse[at] * sparse.phi[j]);
  }
}

static void update_sparse_factor(ExpertSet &set, const Sparse &sparse, double leverage, double counted) {
  if (!sparse.row || !(counted > 0)) return;
  for (long j = 0; j < sparse.row->n; ++j) {
    const double others = leverage - sparse.phi[j] * sparse.phi[j];
    set.coefficients.R_sparse[place_of(*sparse.row, j)] *=
        sqrt((1 + counted * (others > 0 ? others : 0)) / (1 + counted * leverage));  // (G19)
  }
}

// One row of recursive least squares for P, for which it counts so many times; returns P z with P before the row, which
// is `Pz` where that is computed already.
static const double *update_factor(Workspace &w, const Expert &x, const double *phi, const double *Pz,
                                   const Sparse &sparse, double leverage, double counted) {
  if (Pz && !(counted > 0)) return Pz;
  if (x.diagonal)
    diagonal_update(x.R, x.stride, phi, leverage, counted, w.Pz);
  else
    factor_update(x.R, x.n, x.stride, phi, counted, 1 + counted * sparse.leverage, w.keep, w.take, w.Pz);  // (G18)
  return w.Pz;
}

// How a row is learned: as often as its weight says; as a copy of one that has been learned with the weight `before`;
// or, where it is shown again, without any change of P. `led`: P has been changed for the leader of the set.
struct Counting {
  double weight, before;
  bool again, led = false;
};

// Logistic regression by Newton steps, each of them least squares in which a row counts by the curvature of the loss; a
// row of a larger weight takes several. P z only changes its length on the way.
static bool newton_steps(const Problem &p, ExpertSet &set, Workspace &w, const Expert &x, const double *z,
                         const double *phi, const double *known_Pz, const Sparse &sparse, double leverage,
                         const double *target, const Counting &row) {
  const double *shift = set.scaling.shift;
  const double steps = row.weight > 1 ? lesser(ceil(row.weight), NEWTON_STEPS) : 1, each = row.weight / steps;
  double scale = 1, all_counts = 0;  // of P z, and how many times the row counts for P
  for (long k = 0; k < p.K; ++k) w.margin[k] = shift[k] + product(p, set, x, z, sparse, k), w.move[k] = 0;
  for (double i = 0; i < steps; ++i) {
    label_probabilities(w.margin, 1, p.K, w.probability);  // (G21)
    double most = 0;
    for (long k = 0; k < p.K; ++k) most = greater(most, w.probability[k]);
    const double curvature = greater(most * (1 - most), MIN_CURVATURE), q = scale * leverage;  // (G21)
    for (long k = 0; k < p.K; ++k) {
      const double gap = target[k] + shift[k] - w.probability[k];
      const double moved = each * scale * gap / (1 + curvature * each * q);  // (G21)
      w.move[k] += moved, w.margin[k] += moved * leverage;
    }
    const double counted = row.again ? 0 : counts(p, q, curvature * each);
    if (counted > 0) all_counts += counted, scale /= 1 + counted * q;
  }
  const double *Pz = update_factor(w, x, phi, known_Pz, sparse, leverage, all_counts);
  for (long k = 0; k < p.K; ++k) move_theta(p, set, Pz, x, sparse, k, w.move[k]);
  update_sparse_factor(set, sparse, leverage, all_counts);
  return all_counts > 0;
}

// The part of the gap that a gradient expert of step length a closes at a row of this weight.
OMKL_INLINE double gradient_step(double a, double weight) {
  return weight <= 1 ? weight * a : 1 - pow(1 - a, weight);  // (G15)
}

// The coefficients of one expert after a row; returns whether P changed. `known_Pz`: where P z is computed already, or
// null.
static bool update(const Problem &p, ExpertSet &set, Workspace &w, long e, const double *z, const double *phi,
                   const double *known_Pz, const Sparse &sparse, double leverage, const double *target,
                   const Counting &row) {
  const Expert x(p, set.coefficients, e);
  if (x.b > 0) {
    const double step = gradient_step(p.steps[x.b - 1], row.weight);
    for (long k = 0; k < p.K; ++k) {
      double *theta = x.theta + k * x.stride;
      add(theta, step * (target[k] - dot(theta, z, x.stride)), z, x.stride);  // (G15)
    }
    return false;
  }
  if (p.classify && e >= p.on_kernels)
    return newton_steps(p, set, w, x, z, phi, known_Pz, sparse, leverage, target, row);
  const double counted = row.again ? 0 : counts(p, leverage, row.weight);
  const double all = row.weight + row.before * (1 - greater(counted, 0) / row.weight);  // (G16)
  const double *Pz = update_factor(w, x, phi, known_Pz, sparse, leverage, row.led ? 0 : counted);
  for (long k = 0; k < p.K; ++k) {
    const double gap = target[k] - product(p, set, x, z, sparse, k);
    move_theta(p, set, Pz, x, sparse, k, row.weight * gap / (1 + all * leverage));  // (G16)
  }
  update_sparse_factor(set, sparse, leverage, counted);
  return counted > 0;
}

// What a target says about the noise of an expert: its squared error, or the slope of the log-likelihood in the
// logarithm of the temperature.
static double noise_signal(const Problem &p, const ExpertSet &set, const Evaluations &out, Workspace &w, long e,
                           double y) {
  const double *mean = out.mean + e * p.K;
  if (!p.classify) {
    const double gap = clipped((y - mean[0]) / set.scaling.unit, TOO_FAR);
    return gap * gap / (1 + out.leverage[e]);  // (G23)
  }
  const double v = variance(p, set, e, out.leverage[e]);
  label_probabilities(mean, v, p.K, w.probability);
  double expected = 0;
  for (long k = 0; k < p.K; ++k) expected += w.probability[k] * mean[k];
  return clipped((mean[static_cast<long>(y)] - expected) / v, MAX_SLOPE);  // (G24)
}

OMKL_INLINE double no_signal(const Problem &p) { return p.classify ? 0 : -1; }

// The noise moves by the signal; what is left of it is for copies of the row.
static void move_noise(const Problem &p, ExpertSet &set, long e, double relative) {
  double &level = set.noise.level[e], &signal = set.judged.signal[e];
  const double r = NOISE_ROUNDS[p.classify ? 1 : 0];
  const double a = greater(1 - p.memory, r / (static_cast<double>(set.noise.rounds[e]) + r));  // (G22)
  const double share = relative == 1 ? a : 1 - pow(1 - a, relative);                          // (G22)
  if (!p.classify) {
    if (signal >= 0) level = (1 - share) * level + share * signal;  // (G23)
    return;
  }
  const double after = level * exp(-share * signal);  // (G24)
  level = after < MIN_TEMPERATURE ? MIN_TEMPERATURE : after > MAX_TEMPERATURE ? MAX_TEMPERATURE : after;
  signal *= 1 - share;
}

static void update_noise(const Problem &p, ExpertSet &set, const Evaluations &out, Workspace &w, long e, double y,
                         double relative) {
  set.noise.rounds[e] += 1;
  set.judged.signal[e] = noise_signal(p, set, out, w, e, y);
  move_noise(p, set, e, relative);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
