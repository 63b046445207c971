// C++ counterpart of features.py, fused with the two inner products that a round needs.
#pragma once
#include "descent.hpp"

namespace omkl {
namespace OMKL_ISA {

// B registers of phases at once, so that the additions of one do not wait for each other.
template <long B>
OMKL_INLINE void phases(const double *V, long d, long P, const double *x, vec *a) {
#pragma GCC unroll 8
  for (long b = 0; b < B; ++b) a[b] = x[0] * load(V + b * W);
  for (long k = 1; k < d; ++k) {
#pragma GCC unroll 8
    for (long b = 0; b < B; ++b) a[b] += x[k] * load(V + k * P + b * W);
  }
}

// Whether all phases of x are within the range of the polynomials for sine and cosine.
OMKL_INLINE bool phases_in_range(const Frequencies &F, const double *x) {
  double most = 0;
  for (long k = 0; k < F.d; ++k) most += fabs(x[k]) * F.largest[k];
  return most <= LARGEST_PHASE;
}

// Phases of the kernel that others are proportional to.
OMKL_INLINE void reference_phases(const Frequencies &F, const double *x, double *out) {
  const double *V = F.V + F.reference * F.d * F.P;
  for (long b = 0; b < F.P; b += W) {
    vec a;
    phases<1>(V + b, F.d, F.P, x, &a);
    store(out + b, a);
  }
}

// Sums over one kernel's features: theta z and |theta|^2.
struct Sums {
  vec dot, square;
};

// z, theta z and |theta|^2 on B registers of D. Phases stay in registers, only z is stored. Where there are many
// inputs, the frequencies of the `next` kernel are prefetched, because the hardware does not do it then. Where the
// phases are known, V holds them and x is the factor to multiply them by.
enum class Phases { few, many, known };
template <long B, Phases PHASES>
OMKL_INLINE void evaluate_block(const double *V, long d, long P, const double *theta, const double *x, double *z,
                                Sums &sums, const double *next) {
  vec a[B];
  if (PHASES == Phases::known) {
#pragma GCC unroll 8
    for (long b = 0; b < B; ++b) a[b] = x[0] * load(V + b * W);
  } else {
    phases<B>(V, d, P, x, a);
  }
#pragma GCC unroll 8
  for (long b = 0; b < B; ++b) {
    vec s, c;
    sincos(a[b], s, c);
    if (PHASES == Phases::many)
      for (long k = 0; k < d * W; k += LANES) __builtin_prefetch(next + b * d * W + k);
    store(z + b * W, s);
    store(z + P + b * W, c);
    const vec ts = load(theta + b * W), tc = load(theta + P + b * W);
    sums.dot += s * ts + c * tc;
    sums.square += ts * ts + tc * tc;
  }
}

// The same with the sine and cosine of the C library, which are exact for phases of any size.
static void evaluate_large_phases(const Frequencies &F, const double *V, const double *theta, const double *x,
                                  double *z, Sums &sums) {
  const long P = F.P;
  for (long j = 0; j < P; ++j) {
    double phase = x[0] * V[j];
    for (long k = 1; k < F.d; ++k) phase += x[k] * V[k * P + j];
    z[j] = sin(phase);
    z[P + j] = cos(phase);
    sums.dot[0] += z[j] * theta[j] + z[P + j] * theta[P + j];
    sums.square[0] += theta[j] * theta[j] + theta[P + j] * theta[P + j];
  }
}

template <Phases PHASES>
OMKL_INLINE void evaluate_blocks(const double *V, long d, long P, const double *theta, const double *x, double *z,
                                 Sums &sums, const double *next) {
  long b = 0;
  for (; b + 7 * W <= P; b += 7 * W) evaluate_block<7, PHASES>(V + b, d, P, theta + b, x, z + b, sums, next + b * d);
  for (; b + 2 * W <= P; b += 2 * W) evaluate_block<2, PHASES>(V + b, d, P, theta + b, x, z + b, sums, next + b * d);
  for (; b < P; b += W) evaluate_block<1, PHASES>(V + b, d, P, theta + b, x, z + b, sums, next + b * d);
}

// z of kernel i (sines in z[0..P), cosines in z[P..2P), not divided by sqrt(D)), f = theta z and |theta|^2;
// `in_range` is the result of phases_in_range, `next` the kernel to be evaluated after this one, `phase` the phases
// of the reference kernel.
static void evaluate(const Frequencies &F, bool in_range, const double *phase, long i, long next, const double *theta,
                     const double *x, double *z, double &f, double &norm) {
  const long d = F.d, D = F.D, P = F.P;
  const double *V = F.V + i * d * P;
  theta += i * 2 * P;
  Sums sums = {};
  if (!in_range)
    evaluate_large_phases(F, V, theta, x, z, sums);
  else if (F.ratio[i] != 0)
    evaluate_blocks<Phases::known>(phase, d, P, theta, F.ratio + i, z, sums, phase);
  else if (d < 8)
    evaluate_blocks<Phases::few>(V, d, P, theta, x, z, sums, V);
  else
    evaluate_blocks<Phases::many>(V, d, P, theta, x, z, sums, F.V + next * d * P);
  // a cosine in the padding is 1, and would move theta's padding, which must stay zero
  for (long b = P - LANES; b < P; b += W) store(z + P + b, LANE + b < D ? load(z + P + b) : vec{});
  f = F.root * sum(sums.dot);  // (4)
  norm = sum(sums.square);
}

// theta_i = shrink theta_i + along z, z divided by sqrt(D) on the way.
OMKL_INLINE void move_theta(const Frequencies &F, long i, double *theta, const double *z, double shrink, double along) {
  theta += i * 2 * F.P;
  along *= F.root;
  for (long b = 0; b < 2 * F.P; b += W) store(theta + b, shrink * load(theta + b) + along * load(z + b));
}

// The logarithm of a kernel's weight after one sample, into `after`; h is the importance for the weight, g that for
// theta. False where weight or theta would not be finite: then nothing of the round may be learned.
OMKL_INLINE bool weigh(const Descent &descent, double before, double f, double norm, double y, double eta, double h,
                       double g, double &after) {
  const double loss = loss_value(descent.loss, f, y) + descent.lam * norm;  // (5)
  after = before - eta * h * loss;  // (14) (18a)
  const bool weighable = is_finite(after), movable = stays_finite(descent, f, norm, y, eta * g);
  return weighable & movable;  // both without a branch
}

// One kernel learns from one sample that `weigh` found usable.
OMKL_INLINE void learn(const Frequencies &F, const Descent &descent, long i, double *theta, const double *z, double f,
                       double norm, double y, double eta, double g) {
  double shrink, along;
  descend(descent, f, norm, y, eta * g, shrink, along);
  move_theta(F, i, theta, z, shrink, along);
}

}  // namespace OMKL_ISA
}  // namespace omkl
