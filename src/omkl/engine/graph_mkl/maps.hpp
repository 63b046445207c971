// As algorithms/graph_mkl/experts.py: features of the parametric experts, and where their coefficients are.
#pragma once
#include "../features.hpp"
#include "../least_squares.hpp"
#include "graph_mkl/scaling.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// Where expert e, which is no memory expert, has its coefficients; i is its map, b its learner there.
struct Expert {
  long i, b, n, stride;
  bool diagonal;  // R is
  double *theta, *R;

  OMKL_ALWAYS_INLINE Expert(const Problem &p, const Coefficients &c, long e) {
    i = e < p.on_kernels ? e / p.B : e == p.on_kernels ? p.maps : p.V.N;
    b = e < p.on_kernels ? e % p.B : 0;
    const bool linear = i == p.maps;
    diagonal = linear && p.rows_linear == 1;
    n = linear ? p.n_linear : p.n;
    stride = linear ? p.stride_linear : p.stride;
    theta = linear ? c.theta_linear : c.theta + (i * p.B + b) * p.K * stride;
    R = linear ? c.R_linear : c.R + i * n * stride;
  }
};

// The first expert on a map, and how many there are.
OMKL_INLINE long first_on(const Problem &p, long i) {
  return i < p.V.N ? i * p.B : i == p.maps ? p.on_kernels : p.on_kernels + 1;
}
OMKL_INLINE long learners_on(const Problem &p, long i) { return i < p.V.N ? p.B : 1; }

// phi = R z
OMKL_INLINE void compute_phi(const Expert &x, const double *z, double *phi) {
  if (x.diagonal)
    diagonal_times(x.R, x.stride, z, phi);  // (G9)
  else
    factor_times(x.R, x.n, x.stride, z, phi);  // (G9)
}

static void with_squares(const Problem &p, const double *xs, double *z) {
  const long places = (p.n - 1) / 2, some = p.V.d < places ? p.V.d : places;
  const double root = sqrt(static_cast<double>(p.V.d));
  for (long k = 0; k < p.stride; ++k) z[k] = 0;
  z[0] = 1;
  for (long k = 0; k < some; ++k) {
    z[1 + k] = xs[k];
    z[1 + places + k] = (root * (xs[k] * xs[k]) - 1 / root) / SQUARE_SCALE;  // (G6)
  }
}

// z of kernel i, for a scaled row; `wave` is memory for its sines and cosines.
static void kernel_features(const Problem &p, long i, const double *xs, double *wave, double *z) {
  const Frequencies &F = p.V;
  const double *V = F.V + i * F.d * F.P;
  if (phases_in_range(F, xs)) {
    const int *block = F.used_start + i * (F.P / LANES);
    for (long b = 0; b < F.P; b += W) {
      vec phase = {}, sine, cosine;
      for (int j = block[b / LANES]; j < block[b / LANES + 1]; ++j)
        phase += xs[F.used[j]] * load(V + F.used[j] * F.P + b);
      sincos(phase, sine, cosine);
      store(wave + b, F.root * sine);
      store(wave + F.P + b, F.root * cosine);
    }
  } else {
    for (long j = 0; j < F.D; ++j) {
      double phase = xs[0] * V[j];
      for (long k = 1; k < F.d; ++k) phase += xs[k] * V[k * F.P + j];
      wave[j] = F.root * sin(phase);
      wave[F.P + j] = F.root * cos(phase);
    }
  }
  for (long j = 0; j < F.D; ++j) z[j] = wave[j], z[F.D + j] = wave[F.P + j];
  for (long j = 2 * F.D; j < p.stride; ++j) z[j] = 0;
}

// z of map i, from the scaled row in the workspace.
static void features_of(const Problem &p, long i, const Workspace &w, double *z) {
  if (i < p.V.N) return kernel_features(p, i, w.xs, w.wave, z);
  if (i < p.maps) return with_squares(p, w.xs, z);
  z[0] = 1;
  for (long k = 0; k < p.V.d; ++k) z[k + 1] = w.xs_linear[k];  // (G5)
  for (long k = p.V.d + 1; k < p.stride_linear; ++k) z[k] = 0;
}

}  // namespace omkl::graph_mkl::OMKL_ISA
