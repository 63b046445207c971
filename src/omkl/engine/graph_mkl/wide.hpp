// As algorithms/graph_mkl/wide.py: two ridges on one map of many random features, solved anew as the rows grow.
#pragma once
#include "../blocks.hpp"
#include "../features.hpp"
#include "graph_mkl/scaling.hpp"
#include "graph_mkl/wide_state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

static_assert(WIDE_BLOCK == BLOCK && WIDE_LEAST % BLOCK == 0);

// Sine and cosine features with the first D frequencies, divided by sqrt(D), of the row whose scaled input k is
// input(k).
template <class Input>
OMKL_INLINE void wide_features(const Frequencies &F, int64_t D, Input input, double *z) {
  constexpr long FEW = 64;  // inputs at a time
  const double root = 1 / sqrt(static_cast<double>(D));
  double x[FEW], most = 0;
  for (int64_t b = 0; b < D; ++b) z[b] = 0;
  for (long first = 0; first < F.d; first += FEW) {
    const long n = F.d - first < FEW ? F.d - first : FEW;
    for (long k = 0; k < n; ++k) {
      x[k] = input(first + k);
      most += fabs(x[k]) * F.largest[first + k];
    }
    for (int64_t b = 0; b < D; b += 4 * W) {
      vec a[4];
#pragma GCC unroll 4
      for (long v = 0; v < 4; ++v) a[v] = load_any(z + b + v * W);
      for (long k = 0; k < n; ++k)
#pragma GCC unroll 4
        for (long v = 0; v < 4; ++v) a[v] += x[k] * load(F.V + (first + k) * F.P + b + v * W);
#pragma GCC unroll 4
      for (long v = 0; v < 4; ++v) store_any(z + b + v * W, a[v]);
    }
  }
  const bool in_range = most <= LARGEST_PHASE;
  for (int64_t b = 0; b < D; b += W) {
    const vec a = load_any(z + b);
    vec s, c;
    sincos(a, s, c);
    if (!in_range)
      for (long l = 0; l < W; ++l) s[l] = sin(a[l]), c[l] = cos(a[l]);
    store_any(z + b, root * s), store_any(z + D + b, root * c);  // (G83)
  }
}

// [ridges][K] into `out`, for inputs that have been scaled.
static void predict(const Problem &p, const Wide &wide, const double *xs, const Scaling &scaling, double *out) {
  double z[2 * MAX_WIDE];
  wide_features(p.V_wide, wide.active, [&](long k) __attribute__((always_inline)) { return xs[k]; }, z);
  const long rows = WIDE_EXPERTS * p.K;
  const int64_t P = panels_of(wide.active);
  for (long i = 0; i < rows; ++i) {
    const double total = strided_dot(wide.theta + i * BLOCK, rows * BLOCK, z, BLOCK, P);
    out[i] = scaling.shift[i % p.K] + unit_of(scaling) * (wide.mean[i % p.K] + total);  // (G90)
  }
}

static void restart(const Problem &, Wide &wide) {
  wide.features = wide.active = wide.rows = wide.taken = wide.solved = 0;
  wide.stage = Wide::IDLE, wide.ridge = wide.panel = wide.step = wide.grow = 0;
}

// The first block of row i of a matrix, the one on the diagonal, where there are P rows.
OMKL_INLINE double *row_of(double *matrix, int64_t P, int64_t i) {
  return matrix + (i * P - i * (i - 1) / 2) * BLOCK_AREA;
}

static void begin(const Problem &p, Wide &wide, const Archive &archive) {
  const int64_t D = wide.wanted(p, archive);
  if (D > wide.features && panels_of(D) <= wide.panels) wide.features = D, wide.rows = wide.taken = wide.solved = 0;
  if (wide.features == 0 || archive.capacity == 0) return;
  if (archive.rows - wide.taken > WIDE_BLOCK) {  // without the last row, whose weight copies may still change
    const int64_t oldest = archive.rows + WIDE_BLOCK - archive.capacity;  // that stays for long enough to be added
    if (oldest > wide.taken) wide.taken = oldest;
    wide.stage = Wide::GATHER, wide.step = 0;
    return;
  }
  const double due = WIDE_REFIT * static_cast<double>(wide.solved);
  if (wide.rows >= FIRST_ROWS && static_cast<double>(wide.rows) >= due)  // (G86)
    wide.stage = Wide::FACTOR, wide.ridge = wide.panel = wide.step = 0, wide.solved = wide.rows;
}

static void gather(const Problem &p, Wide &wide, const Archive &archive, const Scaling &scaling) {
  const int64_t P = panels_of(wide.features);
  const double unit = unit_of(scaling), root = 1 / sqrt(static_cast<double>(p.V.d));
  if (wide.rows == 0 && wide.step == 0) {
    for (int64_t i = 0; i < P * p.K * BLOCK; ++i) wide.B[i] = 0;
    for (int64_t i = 0; i < P * BLOCK; ++i) wide.total[i] = 0;
    for (long k = 0; k < p.K; ++k) wide.targets[k] = 0;
    wide.weight = 0;
  }
  for (long row = wide.step; row < wide.step + WIDE_PASS; ++row) {
    const int64_t place = (wide.taken + row) % archive.capacity;
    const double *x = archive.X + place * p.V.d, w = archive.weight[place], heavy = sqrt(w);
    double z[2 * MAX_WIDE];
    wide_features(
        p.V_wide, wide.features,
        [&](long k) __attribute__((always_inline)) { return scaled_input(scaling, k, x[k], root, CLIP); }, z);
    for (int64_t q = 0; q < P; ++q)
      for (long j = 0; j < BLOCK; ++j) {
        wide.Z[q * BLOCK_AREA + row * BLOCK + j] = heavy * z[q * BLOCK + j];
        wide.total[q * BLOCK + j] += w * z[q * BLOCK + j];  // (G85)
      }
    for (long k = 0; k < p.K; ++k) {
      const double y = w * ((target_value(p, archive.y[place], k) - scaling.shift[k]) / unit);  // (G85)
      wide.targets[k] += y;                                                                    // (G85)
      for (int64_t q = 0; q < P; ++q)
        for (long j = 0; j < BLOCK; ++j) wide.B[(q * p.K + k) * BLOCK + j] += y * z[q * BLOCK + j];  // (G85)
    }
    wide.weight += w;  // (G85)
  }
  wide.step += WIDE_PASS;
  if (wide.step >= WIDE_BLOCK) wide.stage = Wide::UPDATE, wide.panel = wide.step = 0;
}

static void update(Wide &wide) {
  const int64_t P = panels_of(wide.features), i = wide.panel;
  double *G = row_of(wide.G, P, i);
  const double *Z = wide.Z + i * BLOCK_AREA;
  for (int64_t q = 0; q < P - i && !wide.follows; ++q)
    add_product(G + q * BLOCK_AREA, Z, Z + q * BLOCK_AREA, wide.rows != 0, 1);  // (G84)
  if (++wide.panel < P) return;
  wide.stage = Wide::IDLE, wide.panel = 0;
  wide.rows += WIDE_BLOCK, wide.taken += WIDE_BLOCK;
}

static void factor(Wide &wide) {
  const int64_t P = panels_of(wide.features), i = wide.panel, r = wide.step;
  double *U = row_of(wide.U, P, i);
  if (r == 0 && !wide.follows) {
    const double *G = row_of(wide.G, P, i);
    const double ridge = WIDE_RIDGES[wide.ridge] * wide.weight / static_cast<double>(wide.rows > 1 ? wide.rows : 1);
    for (int64_t j = 0; j < (P - i) * BLOCK_AREA; ++j) U[j] = G[j];
    for (long j = 0; j < BLOCK; ++j) U[j * BLOCK + j] += ridge;  // (G87)
  }
  if (r < i) {
    const double *A = row_of(wide.U, P, r) + (i - r) * BLOCK_AREA;
    for (int64_t q = 0; q < P - i && !wide.follows; ++q)
      add_product(U + q * BLOCK_AREA, A, A + q * BLOCK_AREA, true, -1);  // (G88)
    wide.step += 1;
    return;
  }
  if (!wide.follows) {
    factor_block(U);  // (G88)
    for (int64_t q = 1; q < P - i; ++q) divide_block(U, U + q * BLOCK_AREA);  // (G88)
  }
  wide.step = 0;
  if (++wide.panel == P) wide.stage = Wide::FORWARD, wide.panel = 0;
}

OMKL_INLINE long outputs_now(const Problem &p, const Wide &wide) {
  return p.K - wide.step < WIDE_OUTPUTS ? p.K - wide.step : WIDE_OUTPUTS;
}

static void forward(const Problem &p, Wide &wide) {
  const int64_t P = panels_of(wide.features), i = wide.panel, n = outputs_now(p, wide);
  const long apart = WIDE_EXPERTS * p.K * BLOCK;  // between panels of the solution
  double *v = wide.solution + (wide.ridge * p.K + wide.step) * BLOCK;
  if (i == 0)
    for (int64_t q = 0; q < P; ++q)
      for (long k = 0; k < n; ++k) {
        const double mean = wide.targets[wide.step + k] / wide.weight;
        const double *B = wide.B + (q * p.K + wide.step + k) * BLOCK, *total = wide.total + q * BLOCK;
        for (long j = 0; j < BLOCK; ++j) v[q * apart + k * BLOCK + j] = B[j] - mean * total[j];  // (G87)
      }
  const double *U = row_of(wide.U, P, i);
  double *mine = v + i * apart;
  for (long k = 0; k < n; ++k) divide_vector(U, mine + k * BLOCK);  // (G89)
  for (int64_t q = 1; q < P - i; ++q) subtract_rows(mine + q * apart, mine, U + q * BLOCK_AREA, n);  // (G89)
  if (++wide.panel == P) wide.stage = Wide::BACKWARD, wide.panel = P - 1;
}

// With the solution as the one that predicts, unless a number in it is not finite.
static void adopt(const Problem &p, Wide &wide) {
  const int64_t size = panels_of(wide.features) * WIDE_EXPERTS * p.K * BLOCK;
  bool finite = true;
  for (int64_t i = 0; i < size; ++i) finite &= fabs(wide.solution[i]) <= LARGEST_VALUE;
  for (long k = 0; k < p.K; ++k) finite &= fabs(wide.targets[k] / wide.weight) <= LARGEST_VALUE;
  if (!finite) return;
  for (int64_t i = 0; i < size; ++i) wide.theta[i] = wide.solution[i];
  for (long k = 0; k < p.K; ++k) wide.mean[k] = wide.targets[k] / wide.weight;  // (G87)
  wide.active = wide.features;
}

static void backward(const Problem &p, Wide &wide) {
  const int64_t P = panels_of(wide.features), i = wide.panel, n = outputs_now(p, wide);
  const long apart = WIDE_EXPERTS * p.K * BLOCK;
  double *mine = wide.solution + i * apart + (wide.ridge * p.K + wide.step) * BLOCK;
  const double *U = row_of(wide.U, P, i);
  for (long k = 0; k < n; ++k)
    for (long r = BLOCK; r-- > 0;) {
      double *one = mine + k * BLOCK;
      const double *next = U + BLOCK_AREA + r * BLOCK;
      double rest = one[r] - strided_dot(next, BLOCK_AREA, one + apart, apart, P - i - 1);
      for (long j = r + 1; j < BLOCK; ++j) rest -= U[r * BLOCK + j] * one[j];
      one[r] = rest / U[r * BLOCK + r];  // (G89)
    }
  if (i > 0) {
    wide.panel -= 1;
  } else if (wide.step + WIDE_OUTPUTS < p.K) {
    wide.stage = Wide::FORWARD, wide.step += WIDE_OUTPUTS;
  } else if (wide.ridge + 1 < WIDE_EXPERTS) {
    wide.stage = Wide::FACTOR, wide.ridge += 1, wide.step = 0;
  } else {
    adopt(p, wide);
    wide.stage = Wide::IDLE, wide.ridge = wide.step = 0;
  }
}

// A piece of the work; returns how much it was, 0 if there is none.
static __attribute__((noinline)) int64_t step(const Problem &p, Wide &wide, const Archive &archive,
                                              const Scaling &scaling) {
  if (wide.stage == Wide::IDLE) begin(p, wide, archive);
  const int64_t blocks = panels_of(wide.features) - wide.panel;
  int64_t work = blocks * BLOCK_AREA;
  switch (wide.stage) {
    case Wide::GATHER:
      work = WIDE_PASS * (p.V.d + WIDE_FEATURE_WORK) * wide.features;
      gather(p, wide, archive, scaling);
      return work;
    case Wide::UPDATE:
      update(wide);
      return work * BLOCK;
    case Wide::FACTOR:
      factor(wide);
      return work * BLOCK;
    case Wide::FORWARD:
      work *= outputs_now(p, wide);
      forward(p, wide);
      return work;
    case Wide::BACKWARD:
      work *= outputs_now(p, wide);
      backward(p, wide);
      return work;
    default:
      return 0;
  }
}

// After a row was appended to the archive: pieces of the work, if there is any.
static void advance(const Problem &p, Wide &wide, const Archive &archive, const Scaling &scaling) {
  for (int64_t work = 0; work < WIDE_WORK;) {
    const int64_t more = step(p, wide, archive, scaling);
    if (more == 0) return;
    work += more;
  }
}

}  // namespace omkl::graph_mkl::OMKL_ISA
