// As algorithms/graph_mkl/state.py: what one round changes.
#pragma once
#include "graph_mkl/large_state.hpp"
#include "graph_mkl/workspace.hpp"

namespace omkl::graph_mkl {

constexpr long TRACKED = static_cast<long>(sizeof LEVELS / sizeof *LEVELS);

struct Coefficients {
  double *R;             // [maps][n][stride], lower triangular, P = R' R
  double *theta;         // [maps][B][K][stride]
  double *R_linear;      // [rows_linear][stride_linear]
  double *theta_linear;  // [K][stride_linear]
  double *R_sparse;      // [S]
  double *theta_sparse;  // [K][S]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.triangles("R", R, {p.maps, p.n, p.n});
    visitor.padded_array("theta", theta, {p.maps, p.B, p.K, p.n});
    if (p.rows_linear == p.n_linear)
      visitor.triangles("R_linear", R_linear, {p.n_linear, p.n_linear});
    else
      visitor.padded_array("R_linear", R_linear, {p.rows_linear, p.n_linear});
    visitor.padded_array("theta_linear", theta_linear, {p.K, p.n_linear});
    visitor.array("R_sparse", R_sparse, {1, p.S});
    visitor.array("theta_sparse", theta_sparse, {p.K, p.S});
  }
};

struct Noise {
  double *level;    // [E]
  int64_t *rounds;  // [E]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.array("level", level, {p.E});
    visitor.array("rounds", rounds, {p.E});
  }
};

// The errors of every expert in the last row that was not a copy, for its copies.
struct Judged {
  double *gain;    // [E]  log-likelihood relative to the mixture; 0: none
  double *signal;  // [E]  about the noise; below 0 for numbers, or 0 for labels: none
  double *step;    // [E + 1]  features of the step that the stacking of labels took, and its target; 0 for numbers

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.array("gain", gain, {p.E});
    visitor.array("signal", signal, {p.E});
    visitor.array("step", step, {p.E + 1});
  }
};

struct Stack {
  double *R;      // [E][stride_stack]
  double *theta;  // [stride_stack]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.triangles("R", R, {p.E, p.E});
    visitor.padded_array("theta", theta, {p.E});
  }
};

struct Selection {
  int64_t *rank;  // [first_large]
  int64_t explorer;

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.array("rank", rank, {p.first_large});
    visitor.number("explorer", explorer);
  }
};

struct Scaling {
  double *mean, *scale;  // [d]
  double *shift;         // [K]
  double unit;
  double *sparse;  // [S]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.array("mean", mean, {p.V.d});
    visitor.array("scale", scale, {p.V.d});
    visitor.array("shift", shift, {p.K});
    visitor.number("unit", unit);
    visitor.array("sparse", sparse, {p.S});
  }
};

struct FirstRows {
  double *X;       // [FIRST_ROWS][d]
  double *Y;       // [FIRST_ROWS][K]
  double *weight;  // [FIRST_ROWS]
  double *sparse;  // [FIRST_ROWS][S]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.used_rows("X", X, {FIRST_ROWS, p.V.d});
    visitor.used_rows("Y", Y, {FIRST_ROWS, p.K});
    visitor.used_rows("weight", weight, {FIRST_ROWS});
    visitor.used_rows("sparse", sparse, {FIRST_ROWS, p.S});
  }
};

struct Window {
  double *X;       // [d][WINDOW]
  double *Y;       // [K][WINDOW]
  double *weight;  // [WINDOW]
  int64_t *key, *met, *returned;  // [WINDOW]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.used_columns("X", X, {p.V.d, WINDOW});
    visitor.used_columns("Y", Y, {p.K, WINDOW});
    visitor.used_rows("weight", weight, {WINDOW});
    visitor.used_rows("key", key, {WINDOW});
    visitor.used_rows("met", met, {WINDOW});
    visitor.used_rows("returned", returned, {WINDOW});
  }
};

struct Block {
  int64_t *rows;          // [1 + d]: the target, then the inputs
  double *mean, *square;  // [1 + d]

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.array("rows", rows, {1 + p.V.d});
    visitor.array("mean", mean, {1 + p.V.d});
    visitor.array("square", square, {1 + p.V.d});
  }
};

struct ExpertSet {
  Coefficients coefficients;
  Noise noise;
  double *evidence;  // [E]
  Judged judged;
  Stack stack;
  Selection selection;
  Scaling scaling;
  FirstRows first;
  Window window;
  Block block;
  int64_t age;  // -1: the set is not there

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.number("age", age);
    visitor.part("scaling", scaling, p);
    visitor.begin_set(age);
    visitor.part("coefficients", coefficients, p);
    visitor.part("noise", noise, p);
    visitor.array("evidence", evidence, {p.E});
    visitor.part("judged", judged, p);
    visitor.part("stack", stack, p);
    visitor.part("selection", selection, p);
    visitor.part("first", first, p);
    visitor.part("window", window, p);
    visitor.part("block", block, p);
    visitor.end_set();
  }
  bool valid(const Problem &p) const {
    for (long e = 0; e < p.first_large; ++e)
      if (selection.rank[e] < 0 || selection.rank[e] >= p.first_large) return false;
    return selection.explorer >= 0 && selection.explorer < p.first_large && age >= -1 && age < LARGEST_COUNT;
  }
};

struct Trend {
  double fast, slow;
  int64_t rounds;

  template <class Visitor>
  void visit(const Problem &, Visitor &visitor) {
    visitor.number("fast", fast);
    visitor.number("slow", slow);
    visitor.number("rounds", rounds);
  }
};

struct Trial {
  double incumbent, challenger;

  template <class Visitor>
  void visit(const Problem &, Visitor &visitor) {
    visitor.number("incumbent", incumbent);
    visitor.number("challenger", challenger);
  }
};

// Of the intervals. Pairs are for a larger and for a smaller scale of the errors.
struct Calibration {
  double *half_widths;             // [TRACKED]
  double *evidence, *since, *total;  // [2]
  double scale;
  int64_t rows;  // 0: none yet

  template <class Visitor>
  void visit(const Problem &, Visitor &visitor) {
    visitor.array("half_widths", half_widths, {TRACKED});
    visitor.array("evidence", evidence, {2});
    visitor.array("since", since, {2});
    visitor.array("total", total, {2});
    visitor.number("scale", scale);
    visitor.number("rows", rows);
  }
};

// Means over the weights of rows, and over their squares.
struct Weights {
  double mean, square;

  template <class Visitor>
  void visit(const Problem &, Visitor &visitor) {
    visitor.number("mean", mean);
    visitor.number("square", square);
  }
};

struct State {
  ExpertSet sets[2];
  int64_t incumbent;
  Trend trend;
  Trial trial;
  Calibration calibration;
  double repeats;
  Weights weights;
  Large large;  // of the incumbent
  int64_t t;

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.part("sets.0", sets[0], p);
    visitor.part("sets.1", sets[1], p);
    visitor.number("incumbent", incumbent);
    visitor.part("trend", trend, p);
    visitor.part("trial", trial, p);
    visitor.part("calibration", calibration, p);
    visitor.number("repeats", repeats);
    visitor.part("weights", weights, p);
    visitor.part("large", large, p);
    visitor.number("t", t);
  }
  bool valid(const Problem &p) const {
    return (incumbent == 0 || incumbent == 1) && sets[incumbent].age >= 0 && sets[0].valid(p) && sets[1].valid(p) &&
           large.valid(p);
  }
  bool has_room(const Problem &p) const { return large.has_room(p); }
  // Large experts have arrays that grow.
  static bool can_be_packed(const Problem &p) { return p.large == 0; }
};

inline long uniforms(const Problem &) { return 2; }
OMKL_ALWAYS_INLINE long outputs(const Problem &p) { return p.classify ? p.K : 2; }
OMKL_ALWAYS_INLINE long extras(const Problem &p) { return p.classify ? 0 : TRACKED; }
OMKL_ALWAYS_INLINE void write_extra(const Problem &p, const State &s, double *out) {
  for (long l = 0; l < extras(p); ++l) out[l] = s.calibration.half_widths[l];
}
inline long inputs(const Problem &p) { return p.V.d + p.S; }
inline long scratch(const Problem &p) { return Workspace(p, nullptr).size; }
inline bool shares(const Problem &p) { return !p.classify && p.active >= p.first_large; }
inline bool missing(const Problem &) { return true; }
inline long labels(const Problem &p) { return p.classify ? p.K : 0; }

}  // namespace omkl::graph_mkl
