// As features.py, fused with the two inner products that a round needs.
#pragma once
#include "descent.hpp"

namespace omkl {
namespace OMKL_ISA {

// B registers of phases at once, so that the additions of one do not wait for each other.
template <long B>
OMKL_INLINE void phases(const double *V, long d, long P, const double *x, double *out) {
  vec a[B];
  for (long b = 0; b < B; ++b) a[b] = x[0] * load(V + b * W);
  for (long k = 1; k < d; ++k)
    for (long b = 0; b < B; ++b) a[b] += x[k] * load(V + k * P + b * W);
  for (long b = 0; b < B; ++b) store(out + b * W, a[b]);
}

// z of kernel i (sines in z[0..P), cosines in z[P..2P), not divided by sqrt(D)), f = theta z and
// |theta|^2.
OMKL_INLINE void listen(const Frequencies &F, long i, const double *theta, const double *x, double *z, double &f,
                        double &norm) {
  const auto [N, d, D, P, all, root] = F;
  const double *V = all + i * d * P;
  theta += i * 2 * P;
  long b = 0;
  for (; b + 4 * W <= P; b += 4 * W) phases<4>(V + b, d, P, x, z + b);
  for (; b < P; b += W) phases<1>(V + b, d, P, x, z + b);

  vec far = {}, dot = {}, square = {};
  for (b = 0; b < P; b += W) {
    const vec phase = load(z + b);
    vec s, c;
    sincos(phase, s, c);
    far = larger(magnitude(phase), far);
    store(z + b, s);
    store(z + P + b, c);
    const vec ts = load(theta + b), tc = load(theta + P + b);
    dot += s * ts + c * tc;
    square += ts * ts + tc * tc;
  }
  if (!(max(far) <= FAR)) {
    // beyond the polynomial's reach
    for (b = 0; b < P; b += W) phases<1>(V + b, d, P, x, z + b);
    dot = vec{};
    for (long j = 0; j < D; ++j) {
      const double phase = z[j];
      z[j] = sin(phase);
      z[P + j] = cos(phase);
      dot[0] += z[j] * theta[j] + z[P + j] * theta[P + j];
    }
  }
  for (long j = D; j < P; ++j) z[P + j] = 0;  // theta's padding stays zero
  f = root * sum(dot);  // (4)
  norm = sum(square);
}

// theta_i = keep theta_i + along z, z divided by sqrt(D) on the way.
OMKL_INLINE void move(const Frequencies &F, long i, double *theta, const double *z, double keep, double along) {
  theta += i * 2 * F.P;
  along *= F.root;
  for (long b = 0; b < 2 * F.P; b += W) store(theta + b, keep * load(theta + b) + along * load(z + b));
}

// One kernel learns from one sample that it heard with probability q.
OMKL_INLINE void learn(const Frequencies &F, const Descent &descent, long i, double *theta, double *log_w,
                       const double *z, double f, double norm, double y, double eta, double h, double g) {
  const double loss = loss_value(descent.loss, f, y) + descent.lam * norm;  // (5)
  log_w[i] -= eta * h * loss;  // (14) (18a)
  double keep, along;
  descend(descent, f, norm, y, eta * g, keep, along);
  move(F, i, theta, z, keep, along);
}

}  // namespace OMKL_ISA
}  // namespace omkl
