// C++ counterpart of algorithms/least_squares.py: recursive least squares by the Cholesky factor R of the covariance, P
// = R' R. R is lower triangular, its rows padded to whole registers.
#pragma once
#include "lanes.hpp"

namespace omkl {
namespace OMKL_ISA {

OMKL_INLINE double dot(const double *a, const double *b, long stride) {
  vec total = {};
  for (long j = 0; j < stride; j += W) total += load(a + j) * load(b + j);
  return sum(total);
}

OMKL_INLINE void add(double *a, double c, const double *b, long stride) {
  for (long j = 0; j < stride; j += W) store(a + j, load(a + j) + c * load(b + j));
}

// phi = R z, R lower triangular; G rows at a time.
template <long G>
OMKL_INLINE void rows_times(const double *R, long i, long stride, const double *z, double *phi) {
  vec a[G] = {};
  for (long j = 0; j < i + G; j += W) {
    const vec v = load(z + j);
    for (long r = 0; r < G; ++r) a[r] += load(R + (i + r) * stride + j) * v;
  }
  for (long r = 0; r < G; ++r) phi[i + r] = sum(a[r]);
}

OMKL_INLINE void factor_times(const double *R, long n, long stride, const double *z, double *phi) {
  long i = 0;
  for (; i + 8 <= n; i += 8) rows_times<8>(R, i, stride, z, phi);
  for (; i + 4 <= n; i += 4) rows_times<4>(R, i, stride, z, phi);
  for (; i < n; ++i) rows_times<1>(R, i, stride, z, phi);
  for (; i < stride; ++i) phi[i] = 0;
}

// The same for M vectors, which follow each other.
template <long M>
OMKL_INLINE void factor_times_many(const double *R, long n, long stride, const double *z, double *phi) {
  constexpr long G = W == 8 ? 4 : 2;
  for (long i = 0; i < n; i += G) {
    const long rows = n - i < G ? n - i : G;
    vec a[M][G] = {};
    for (long j = 0; j < i + rows; j += W) {
      vec r[G];
#pragma GCC unroll 4
      for (long g = 0; g < G; ++g) r[g] = load(R + (g < rows ? i + g : i) * stride + j);
#pragma GCC unroll 4
      for (long m = 0; m < M; ++m) {
        const vec v = load(z + m * stride + j);
#pragma GCC unroll 4
        for (long g = 0; g < G; ++g) a[m][g] += r[g] * v;
      }
    }
    for (long m = 0; m < M; ++m)
      for (long g = 0; g < rows; ++g) phi[m * stride + i + g] = sum(a[m][g]);
  }
  for (long m = 0; m < M; ++m)
    for (long i = n; i < stride; ++i) phi[m * stride + i] = 0;
}

// The same, and the update below, where R is diagonal.
OMKL_INLINE void diagonal_times(const double *R, long stride, const double *z, double *phi) {
  for (long j = 0; j < stride; j += W) store(phi + j, load(R + j) * load(z + j));
}

OMKL_INLINE void diagonal_update(double *R, long stride, const double *phi, double q, double counts, double *Pz) {
  diagonal_times(R, stride, phi, Pz);
  if (!(counts > 0)) return;
  const double all = 1 + counts * q;
  for (long j = 0; j < stride; ++j) {
    const double others = q - phi[j] * phi[j];
    R[j] *= sqrt((1 + counts * (others > 0 ? others : 0)) / all);  // (G19)
  }
}

// Rows i, ..., end - 1 of the update below, in G registers of columns; b is the part of Pz of the rows before.
template <long G, bool COUNTS>
OMKL_INLINE void factor_rows(double *R, long i, long end, long stride, const double *phi, const double *scale,
                             const double *subtract, vec *b) {
  for (; i < end; ++i) {
    double *row = R + i * stride;
    // read once: after a store the compiler would read them again
    const double kept = COUNTS ? scale[i] : 1, taken = COUNTS ? subtract[i] : 0, f = phi[i];
    for (long g = 0; g < G; ++g) {
      const vec r = load(row + g * W);
      if (COUNTS) store(row + g * W, kept * r - taken * b[g]);
      b[g] += f * r;
    }
  }
}

// R = downdate(sqrt(counts) phi) R and Pz = R' phi, G registers of columns at a time, each from its first row with an
// entry in R down; R stays as it is where the row does not count.
template <long G, bool COUNTS>
OMKL_INLINE void factor_columns(double *R, long first, long n, long stride, const double *phi, const double *scale,
                                const double *subtract, double *Pz) {
  vec b[G] = {};
  R += first;
  const auto until = [n, first](long g) { return first + g * W < n ? first + g * W : n; };  // the padding has no rows
  long i = first;
  if constexpr (G == 4) {
    factor_rows<1, COUNTS>(R, i, until(1), stride, phi, scale, subtract, b);
    factor_rows<2, COUNTS>(R, until(1), until(2), stride, phi, scale, subtract, b);
    factor_rows<3, COUNTS>(R, until(2), until(3), stride, phi, scale, subtract, b);
    i = until(3);
  }
  factor_rows<G, COUNTS>(R, i, n, stride, phi, scale, subtract, b);
  for (long g = 0; g < G; ++g) store(Pz + first + g * W, b[g]);
}

template <bool COUNTS>
OMKL_INLINE void all_columns(double *R, long n, long stride, const double *phi, const double *scale,
                             const double *subtract, double *Pz) {
  long j = 0;
  for (; j + 4 * W <= stride; j += 4 * W) factor_columns<4, COUNTS>(R, j, n, stride, phi, scale, subtract, Pz);
  for (; j < stride; j += W) factor_columns<1, COUNTS>(R, j, n, stride, phi, scale, subtract, Pz);
}

// Pz = R' phi for M vectors, which follow each other.
template <long M>
OMKL_INLINE void all_columns_many(const double *R, long n, long stride, const double *phi, double *Pz) {
  constexpr long G = W == 8 ? 4 : 2;
  for (long first = 0; first < stride; first += G * W) {
    const long some = (stride - first) / W < G ? (stride - first) / W : G;
    vec b[M][G] = {};
    for (long i = first; i < n; ++i) {
      vec r[G];
#pragma GCC unroll 4
      for (long g = 0; g < G; ++g) r[g] = load(R + i * stride + first + (g < some ? g : 0) * W);
#pragma GCC unroll 4
      for (long m = 0; m < M; ++m)
#pragma GCC unroll 4
        for (long g = 0; g < G; ++g) b[m][g] += phi[m * stride + i] * r[g];
    }
    for (long m = 0; m < M; ++m)
      for (long g = 0; g < some; ++g) store(Pz + m * stride + first + g * W, b[m][g]);
  }
}

// `start` is 1, and more where other features, of which R is not the factor, have a part in the row's leverage.
OMKL_INLINE void factor_update(double *R, long n, long stride, const double *phi, double counts, double start,
                               double *scale, double *subtract, double *Pz) {
  if (!(counts > 0)) {
    all_columns<false>(R, n, stride, phi, scale, subtract, Pz);
    return;
  }
  double before = start;
  for (long i = 0; i < n; ++i) {
    scale[i] = before;
    subtract[i] = before += counts * phi[i] * phi[i];
  }
  for (long i = n; i < stride; ++i) scale[i] = subtract[i] = 1;
  for (long i = 0; i < stride; ++i) {  // a loop of its own, so that whole registers are divided
    const double less = scale[i], more = subtract[i];
    scale[i] = sqrt(less / more);
    subtract[i] = counts * phi[i] / sqrt(less * more);
  }
  all_columns<true>(R, n, stride, phi, scale, subtract, Pz);
}

}  // namespace OMKL_ISA
}  // namespace omkl
