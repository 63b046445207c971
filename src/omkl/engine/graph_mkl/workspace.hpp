// Working memory of a round, and what the experts predict in it.
#pragma once
#include "graph_mkl/problem.hpp"

namespace omkl::graph_mkl {

constexpr long AHEAD = 4;  // rows whose features are computed together

// Of the sparse inputs of a row, those that are not 0.
struct SparseRow {
  long n;
  double *place;  // [S]  as whole numbers
  double *value;  // [S]
};

// What has been computed for coming rows of a chunk, in ahead.hpp.
struct Ahead {
  double *xs;                        // [AHEAD][d padded]  scaled rows; row r stands in place r mod AHEAD
  double *z, *phi, *Pz;              // [kernels][AHEAD][stride]
  int64_t *first, *count,
      *changed;  // [kernels]  rows of the arrays above; whether P has changed since they were computed
  int64_t row[AHEAD];                // of the scaled rows
};

// What one set of experts predicts in a round.
struct Evaluations {
  double *z_sparse, *phi_sparse;  // [S]  for the values of a SparseRow
  double *z, *phi, *Pz;  // [maps + 1][widest]
  uint8_t *has_Pz;      // [maps + 1]  whether P z is there already
  double *leverage;     // [E]
  double *mean;         // [E][K]
  double *weight;       // [E]  in the mixture
  double *score;        // [E]  log-likelihoods
  double *differences;  // [stride_stack], for labels [stride_stack][K]  from the mixture
  double *near, *whole;  // [M][WINDOW] and [M]  weights of the rows in the memory and their sums; kept if it leads
  bool leads, follows;   // several.hpp: others use z, phi, P z, leverages and `near`; or these are those of a leader
  Ahead ahead;
};

// Working memory, cut from Scratch::extra. Without any, `size` is how much that must be.
struct Workspace {
  long widest, size = 0;
  Evaluations sets[2];
  SparseRow sparse, first_sparse;  // of the row, and of one of the first rows
  double *x, *xs, *xs_linear;   // [d padded]  the row, and scaled for the kernels and for the linear expert
  double *wave;                 // [2][P]
  double *Pz, *keep, *take;     // [widest]
  double *target, *probability, *margin, *move, *log_mixed;  // [K]
  double *mark;                 // [E], as bytes
  double *square;               // [WINDOW]
  double *phi_stack, *z_stack;  // [E padded]
  double *forecast, *losses;    // [large][K] and [large + 1], of the large experts
  int64_t *leaves;              // [trees]  of the row, where in the trees' values
  double *prediction;               // [outputs]
  Workspace *kept;                  // as it was when a row was predicted
  long evaluated;                   // experts
  bool finite;                      // what they predict
  double nearest, mean, deviation;  // least of `square`; of the mixture
  double mixed_deviation, noise;    // of the mixture; the part of it that is the same for every row
  double share;                     // of the rows that their weights count for, before the round
  const double *coming;             // the row and those after it, which will be learned; null: it is predicted alone
  long row, left;                   // its number; rows from it on

  OMKL_ALWAYS_INLINE Workspace(const Problem &p, double *memory) {
    auto cut = [&](long n) __attribute__((always_inline)) {
      double *here = memory ? memory + size : nullptr;
      size += padded(n);
      return here;
    };
    auto count = [&](long n) __attribute__((always_inline)) { return reinterpret_cast<int64_t *>(cut(n)); };
    widest = p.stride > p.stride_linear ? p.stride : p.stride_linear;
    if (p.stride_stack > widest) widest = p.stride_stack;
    sparse = {0, cut(p.S), cut(p.S)}, first_sparse = {0, cut(p.S), cut(p.S)};
    x = cut(p.V.d), xs = cut(p.V.d), xs_linear = cut(p.V.d);
    wave = cut(2 * p.V.P);
    for (Evaluations &s : sets) {
      s.z = cut((p.maps + 1) * widest), s.phi = cut((p.maps + 1) * widest), s.Pz = cut((p.maps + 1) * widest);
      s.has_Pz = reinterpret_cast<uint8_t *>(cut(p.maps + 1));
      s.leverage = cut(p.E), s.weight = cut(p.E), s.score = cut(p.E);
      s.mean = cut(p.E * p.K);
      s.differences = cut(p.stride_stack * p.K);
      s.z_sparse = cut(p.S), s.phi_sparse = cut(p.S);
      s.near = cut(p.M * WINDOW), s.whole = cut(p.M);
      s.leads = s.follows = false;
      const long rows = p.V.N * AHEAD * p.stride;
      s.ahead = {
          cut(AHEAD * padded(p.V.d)), cut(rows), cut(rows), cut(rows), count(p.V.N), count(p.V.N), count(p.V.N), {}};
    }
    Pz = cut(widest), keep = cut(widest), take = cut(widest);
    target = cut(p.K), probability = cut(p.K), margin = cut(p.K), move = cut(p.K), log_mixed = cut(p.K);
    mark = cut(p.E);
    square = cut(WINDOW);
    phi_stack = cut(p.stride_stack), z_stack = cut(p.stride_stack);
    forecast = cut(p.large * p.K), losses = cut(p.large + 1);
    leaves = count(p.trees);
    prediction = cut(p.classify ? p.K : 2);
    kept = reinterpret_cast<Workspace *>(cut(sizeof(Workspace) / sizeof(double)));
  }
};

}  // namespace omkl::graph_mkl
