// Square blocks of numbers, each contiguous, of which larger matrices consist: one product of blocks does nearly all
// of the arithmetic of a Cholesky factorisation, with its operands in the first level cache.
#pragma once
#include "lanes.hpp"

namespace omkl {
namespace OMKL_ISA {

constexpr long BLOCK = 64, BLOCK_AREA = BLOCK * BLOCK;
constexpr long TILE_ROWS = W == 8 ? 8 : 4, TILE_VECTORS = 2;  // sums of products that fit into registers

// Arrays of Python need not start on a register.
typedef double unaligned __attribute__((vector_size(OMKL_WIDTH * 8), aligned(8)));
OMKL_INLINE vec load_any(const double *a) { return *reinterpret_cast<const unaligned *>(a); }
OMKL_INLINE void store_any(double *a, vec v) { *reinterpret_cast<unaligned *>(a) = v; }

// C[i][j] = C[i][j] + sign sum_r A[r][i] B[r][j], without the first C where `add` is false, for R rows i and
// TILE_VECTORS registers of j. Rows of B and C are those of a block; A has strides.
template <long R>
OMKL_INLINE void product_tile(double *C, const double *A, long by_row, long by_column, const double *B, long inner,
                              bool add, double sign) {
  vec sums[R][TILE_VECTORS] = {};
  for (long r = 0; r < inner; ++r) {
    vec b[TILE_VECTORS];
#pragma GCC unroll 2
    for (long v = 0; v < TILE_VECTORS; ++v) b[v] = load_any(B + r * BLOCK + v * W);
#pragma GCC unroll 8
    for (long i = 0; i < R; ++i) {
      const vec a = splat(A[r * by_row + i * by_column]);
#pragma GCC unroll 2
      for (long v = 0; v < TILE_VECTORS; ++v) sums[i][v] += a * b[v];
    }
  }
#pragma GCC unroll 8
  for (long i = 0; i < R; ++i)
#pragma GCC unroll 2
    for (long v = 0; v < TILE_VECTORS; ++v) {
      double *c = C + i * BLOCK + v * W;
      store_any(c, add ? load_any(c) + sign * sums[i][v] : sign * sums[i][v]);
    }
}

// The same for TILE_ROWS rows, or R at the end, and all columns of a block.
template <long R = TILE_ROWS>
OMKL_INLINE void product_rows(double *C, const double *A, long by_row, long by_column, const double *B, long inner,
                              bool add, double sign) {
  for (long j = 0; j < BLOCK; j += TILE_VECTORS * W)
    product_tile<R>(C + j, A, by_row, by_column, B + j, inner, add, sign);
}

// C = C + sign A' B for blocks, without the first C where `add` is false.
static void add_product(double *C, const double *A, const double *B, bool add, double sign) {
  for (long i = 0; i < BLOCK; i += TILE_ROWS) product_rows(C + i * BLOCK, A + i, BLOCK, 1, B, BLOCK, add, sign);
}

// C -= A B for n rows of A and C.
static void subtract_rows(double *C, const double *A, const double *B, long n) {
  long i = 0;
  for (; i + TILE_ROWS <= n; i += TILE_ROWS) product_rows(C + i * BLOCK, A + i * BLOCK, 1, BLOCK, B, BLOCK, true, -1);
  for (; i < n; ++i) product_rows<1>(C + i * BLOCK, A + i * BLOCK, 1, BLOCK, B, BLOCK, true, -1);
}

// a[j] -= c b[j] for the columns of a block from `first` on; those before it in its register are changed too.
OMKL_INLINE void subtract_row(double *a, double c, const double *b, long first) {
  for (long j = first / W * W; j < BLOCK; j += W) store_any(a + j, load_any(a + j) - c * load_any(b + j));
}

// Sum of the products of n rows of a and b, which are that far apart; four sums that need not wait for each other.
OMKL_INLINE double strided_dot(const double *a, long a_apart, const double *b, long b_apart, long n) {
  vec sums[4] = {};
  for (long q = 0; q < n; ++q)
#pragma GCC unroll 4
    for (long j = 0; j < BLOCK; j += 4 * W)
#pragma GCC unroll 4
      for (long v = 0; v < 4; ++v)
        sums[v] += load_any(a + q * a_apart + j + v * W) * load_any(b + q * b_apart + j + v * W);
  return sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

// The block A becomes the upper triangular U with U' U = A; what is below the diagonal of A is not read.
static void factor_block(double *A) {
  for (long r = 0; r < BLOCK; ++r) {
    double *row = A + r * BLOCK;
    const double pivot = sqrt(row[r]);  // NaN where A is not positive definite, and so will be all that follows
    for (long j = 0; j < r; ++j) row[j] = 0;
    for (long j = r; j < BLOCK; ++j) row[j] /= pivot;
    for (long i = r + 1; i < BLOCK; ++i) subtract_row(A + i * BLOCK, row[i], row, i);
  }
}

// B = U'^-1 B
static void divide_block(const double *U, double *B) {
  for (long first = 0; first < BLOCK; first += TILE_ROWS) {
    double *rows = B + first * BLOCK;
    product_rows(rows, U + first, BLOCK, 1, B, first, true, -1);
    for (long i = 0; i < TILE_ROWS; ++i) {
      const double *factor = U + (first + i) * BLOCK + first;
      for (long j = 0; j < BLOCK; ++j) rows[i * BLOCK + j] /= factor[i];
      for (long l = i + 1; l < TILE_ROWS; ++l) subtract_row(rows + l * BLOCK, factor[l], rows + i * BLOCK, 0);
    }
  }
}

// v = U'^-1 v for one vector, U with zeros below its diagonal.
static void divide_vector(const double *U, double *v) {
  for (long r = 0; r < BLOCK; ++r) {
    const double value = v[r] / U[r * BLOCK + r];
    subtract_row(v, value, U + r * BLOCK, r);
    v[r] = value;
  }
}

}  // namespace OMKL_ISA
}  // namespace omkl
