// As algorithms/graph_mkl/wide.py: the state of the wide least squares.
#pragma once
#include "graph_mkl/archive.hpp"

namespace omkl::graph_mkl {

constexpr long WIDE_EXPERTS = static_cast<long>(sizeof WIDE_RIDGES / sizeof *WIDE_RIDGES);

// Blocks of as many sines and cosines; blocks on and above the diagonal.
OMKL_ALWAYS_INLINE int64_t panels_of(int64_t frequencies) { return 2 * frequencies / WIDE_BLOCK; }
OMKL_ALWAYS_INLINE int64_t pairs_of(int64_t panels) { return panels * (panels + 1) / 2; }

struct Wide {
  enum Stage : int64_t { IDLE, GATHER, UPDATE, FACTOR, FORWARD, BACKWARD };
  double *G;        // [pairs][b][b], b = WIDE_BLOCK
  double *B;        // [panels][K][b]
  double *total;    // [panels][b]
  double *targets;  // [K]
  double weight;
  double *Z, *U;             // [panels][b][b], [pairs][b][b]
  double *solution, *theta;  // [panels][ridges][K][b]
  double *mean;              // [K]
  int64_t features, active, rows, taken, solved, stage, ridge, panel, step, grow;
  int64_t panels;      // for which there is room
  int64_t lengths[6];  // of the other arrays, which must have as much
  bool follows = false;  // several.hpp: G and U are those of another state, which has changed them

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    const long b = WIDE_BLOCK;
    visitor.rows_array("G", G, lengths[0], {b, b});
    visitor.rows_array("B", B, lengths[1], {p.K, b});
    visitor.rows_array("total", total, panels, {b});
    visitor.array("targets", targets, {p.K});
    visitor.number("weight", weight);
    visitor.rows_array("Z", Z, lengths[2], {b, b});
    visitor.rows_array("U", U, lengths[3], {b, b});
    visitor.rows_array("solution", solution, lengths[4], {WIDE_EXPERTS, p.K, b});
    visitor.rows_array("theta", theta, lengths[5], {WIDE_EXPERTS, p.K, b});
    visitor.array("mean", mean, {p.K});
    visitor.number("features", features);
    visitor.number("active", active);
    visitor.number("rows", rows);
    visitor.number("taken", taken);
    visitor.number("solved", solved);
    visitor.number("stage", stage);
    visitor.number("ridge", ridge);
    visitor.number("panel", panel);
    visitor.number("step", step);
    visitor.number("grow", grow);
  }

  // Frequencies that there should be for the rows that have come.
  int64_t wanted(const Problem &p, const Archive &archive) const {
    int64_t D = features;
    if (D == 0 && p.V_wide.D >= WIDE_LEAST && archive.rows >= FIRST_ROWS) D = WIDE_LEAST;
    while (D > 0 && 2 * D <= p.V_wide.D && grow == 1 && archive.rows >= WIDE_GROWTH * 2 * D) D *= 2;  // (G91)
    return D;
  }
  bool has_room(const Problem &p, const Archive &archive) const { return panels_of(wanted(p, archive)) <= panels; }

  bool fits(const Problem &p, int64_t D) const {
    return D == 0 || (D >= WIDE_LEAST && D <= p.V_wide.D && (D & (D - 1)) == 0 && panels_of(D) <= panels);
  }
  bool valid(const Problem &p, const Archive &archive) const {
    const int64_t counts[] = {features, active, rows, taken, solved, stage, ridge, panel, step, grow};
    for (const int64_t n : counts)
      if (n < 0 || n >= LARGEST_COUNT) return false;
    const int64_t pairs = pairs_of(panels), least[] = {pairs, panels, panels, pairs, panels, panels};
    for (int i = 0; i < 6; ++i)
      if (lengths[i] < least[i]) return false;
    if (!fits(p, features) || !fits(p, active) || stage > BACKWARD || ridge >= WIDE_EXPERTS) return false;
    if (stage != IDLE && (panel >= panels_of(features) || archive.capacity == 0)) return false;
    if (taken > archive.rows) return false;
    switch (stage) {
      case GATHER:
        return step <= WIDE_BLOCK - WIDE_PASS && step % WIDE_PASS == 0;
      case FACTOR:
        return step <= panel;
      case FORWARD:
      case BACKWARD:
        return step < p.K && step % WIDE_OUTPUTS == 0;
      default:
        return step == 0;
    }
  }
};

OMKL_ALWAYS_INLINE bool ready(const Wide &wide) { return wide.active > 0; }

}  // namespace omkl::graph_mkl
