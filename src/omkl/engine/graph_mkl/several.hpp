// Several targets of the same rows. Random features, phi = R z, P z, R itself and distances in memory do not depend on
// the target where two incumbents have seen the same inputs with the same weights: the first state of a group, its
// leader, computes them for all. Results are the same as those of each state alone.
#pragma once
#include <cstring>

#include "graph_mkl/large.hpp"
#include "graph_mkl/learning.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// Rows of a chunk from which it is worth comparing and copying what is shared.
constexpr long SHARED_ROWS = 8, SHARED_WIDE_ROWS = 128;

// What is known about a row before it is learned.
struct Row {
  double y, weight, relative;
  bool known;  // the unit of the target
  Weights means;
  Recognised seen;

  bool is_new() const { return weight != 0 && seen.kind == Kind::new_row; }
};

// One state, with its target.
struct Target {
  State &state;
  Chunk &chunk;
  double *memory;  // of the workspace
  Workspace w;
  Row row = {};
  bool stopped = false;               // its next row cannot be learned, or not without more room
  double *G = nullptr, *U = nullptr;  // its own arrays, while those of the leader stand for them

  Target(const Problem &p, State &state_, Chunk &chunk_, double *memory_)
      : state(state_), chunk(chunk_), memory(memory_), w(p, memory_) {}
};

// All of them. No containers of the standard library, see archive.hpp.
struct Targets {
  const long n;
  Target **const all, **const group;  // those of the group at hand come first in the latter

  Targets(const Problem &p, State *const *states, Chunk *chunks, long n_, double *memory)
      : n(n_), all(new Target *[static_cast<size_t>(n_)]()), group(new Target *[static_cast<size_t>(n_)]()) {
    for (long k = 0; k < n; ++k) all[k] = new Target(p, *states[k], chunks[k], memory + k * padded(scratch(p)));
  }
  ~Targets() {
    for (long k = 0; k < n; ++k) delete all[k];
    delete[] all;
    delete[] group;
  }
  Targets(const Targets &) = delete;
  Targets &operator=(const Targets &) = delete;
};

OMKL_INLINE ExpertSet &incumbent_of(State &s) { return s.sets[s.incumbent]; }

OMKL_INLINE bool same(const double *a, const double *b, int64_t n) {
  return memcmp(a, b, static_cast<size_t>(n) * sizeof *a) == 0;
}
OMKL_INLINE void copy(double *to, const double *from, int64_t n) {
  memcpy(to, from, static_cast<size_t>(n) * sizeof *to);
}

// Numbers in R, and in R_linear.
OMKL_INLINE long size_of_R(const Problem &p) { return p.maps * p.n * p.stride; }
OMKL_INLINE long size_of_linear(const Problem &p) { return p.rows_linear * p.stride_linear; }
OMKL_INLINE int64_t size_of_wide(const Wide &wide) { return pairs_of(wide.panels) * BLOCK_AREA; }

// Whether all that does not depend on the target is the same in two incumbents, whose scaling is not estimated again.
static bool alike(const Problem &p, State &s, State &t) {
  const ExpertSet &a = incumbent_of(s), &b = incumbent_of(t);
  const Coefficients &c = a.coefficients, &d = b.coefficients;
  return s.incumbent == t.incumbent && a.age == b.age && a.age >= FIRST_ROWS &&
         same(a.scaling.mean, b.scaling.mean, p.V.d) && same(a.scaling.scale, b.scaling.scale, p.V.d) &&
         same(a.scaling.sparse, b.scaling.sparse, p.S) && same(a.window.weight, b.window.weight, WINDOW) &&
         same(a.window.X, b.window.X, p.V.d * WINDOW) && same(c.R_sparse, d.R_sparse, p.S) &&
         same(c.R_linear, d.R_linear, size_of_linear(p)) && same(c.R, d.R, size_of_R(p));
}

// The same for wide least squares: they are at the same place of the same work, and the rows to come are the same.
static bool alike(const Problem &p, const Archive &a, const Wide &v, const Archive &b, const Wide &w) {
  if (p.wide_experts == 0 || a.rows != b.rows || a.capacity != b.capacity || v.panels != w.panels) return false;
  if (v.features != w.features || v.rows != w.rows || v.taken != w.taken || v.solved != w.solved ||
      v.stage != w.stage || v.ridge != w.ridge || v.panel != w.panel || v.step != w.step || v.weight != w.weight)
    return false;
  const int64_t first = a.rows - v.taken < a.capacity ? v.taken : a.rows - a.capacity;
  for (int64_t row = first; row < a.rows; ++row) {
    const int64_t j = row % a.capacity;
    if (!same(a.X + j * p.V.d, b.X + j * p.V.d, p.V.d) || a.weight[j] != b.weight[j]) return false;
  }
  return same(v.Z, w.Z, v.panels * BLOCK_AREA) && same(v.G, w.G, size_of_wide(v)) && same(v.U, w.U, size_of_wide(v));
}

static void follow_wide(Target &t, const Target &leader) {
  Wide &wide = t.state.large.wide;
  t.G = wide.G, t.U = wide.U;
  wide.G = leader.state.large.wide.G, wide.U = leader.state.large.wide.U;
  wide.follows = true;
}

static void leave_wide(Target &t) {
  Wide &wide = t.state.large.wide;
  if (!wide.follows) return;
  copy(t.G, wide.G, size_of_wide(wide)), copy(t.U, wide.U, size_of_wide(wide));
  wide.G = t.G, wide.U = t.U;
  wide.follows = false;
}

// Of the targets that have learned the fewest rows, one and all that are like it; returns how many, 0 at the end.
static long take_group(const Problem &p, Targets &targets) {
  long size = 0;
  const auto goes_on = [](const Target &t) { return !t.stopped && t.chunk.done < t.chunk.rows; };
  for (long k = 0; k < targets.n; ++k) {
    Target &t = *targets.all[k];
    if (goes_on(t) && (size == 0 || t.chunk.done < targets.group[0]->chunk.done)) targets.group[0] = &t, size = 1;
  }
  if (size == 0) return 0;
  Target &first = *targets.group[0];
  for (long k = 0; k < targets.n; ++k) {
    Target &t = *targets.all[k];
    if (&t != &first && goes_on(t) && t.chunk.done == first.chunk.done &&
        first.chunk.rows - first.chunk.done >= SHARED_ROWS && alike(p, first.state, t.state))
      targets.group[size++] = &t;
  }
  return size;
}

// The first of n targets computes what the others use.
static void form_group(const Problem &p, Target *const *group, long n) {
  for (long k = 0; k < n; ++k) {
    group[k]->w = Workspace(p, group[k]->memory);
    for (Evaluations &out : group[k]->w.sets) forget_ahead(p, out.ahead);
  }
  Target &leader = *group[0];
  State &s = leader.state;
  Evaluations &out = leader.w.sets[s.incumbent];
  out.leads = true;
  for (long k = 1; k < n; ++k) {
    State &t = group[k]->state;
    Evaluations &own = group[k]->w.sets[t.incumbent];
    own.z = out.z, own.phi = out.phi, own.Pz = out.Pz, own.has_Pz = out.has_Pz;
    own.leverage = out.leverage, own.near = out.near, own.whole = out.whole;
    own.follows = true;
    const long left = leader.chunk.rows - leader.chunk.done;
    if (left >= SHARED_WIDE_ROWS && alike(p, s.large.archive, s.large.wide, t.large.archive, t.large.wide))
      follow_wide(*group[k], leader);
  }
}

// Every state has all its arrays again, and learns by itself.
static void end_group(const Problem &p, Target *const *group, long n) {
  const Coefficients &from = incumbent_of(group[0]->state).coefficients;
  for (long k = 0; k < n; ++k) {
    Target &t = *group[k];
    for (Evaluations &out : t.w.sets) out.leads = out.follows = false;
    leave_wide(t);
    if (k == 0) continue;
    Coefficients &to = incumbent_of(t.state).coefficients;
    copy(to.R, from.R, size_of_R(p)), copy(to.R_linear, from.R_linear, size_of_linear(p));
  }
}

// Whether a row is for all targets the same: new, or a copy of the same row, or shown again.
static bool is_same_for_all(Target *const *group, long n) {
  const Row &first = group[0]->row;
  for (long k = 1; k < n; ++k) {
    const Row &row = group[k]->row;
    if (row.seen.kind != first.seen.kind) return false;
    if (row.seen.kind == Kind::copy && row.seen.found != first.seen.found) return false;
  }
  return true;
}

// Whether there is a target whose incumbent may be replaced after this row.
static bool any_trial_ends(const Problem &p, Target *const *group, long n) {
  for (long k = 0; k < n; ++k) {
    const State &s = group[k]->state;
    if (s.sets[1 - s.incumbent].age >= 0 && s.sets[1 - s.incumbent].age >= p.trial) return true;
  }
  return false;
}

// The wide least squares after a row that was appended to the archives. U is overwritten by what comes after its use:
// the leader does one piece of the work, and then the others the same.
static void learn_wide(const Problem &p, Target *const *group, long n) {
  if (p.large == 0) return;
  for (long k = 0; k < n; ++k) {
    Large &large = group[k]->state.large;
    large.wide.grow = wide_is_useful(p, large) ? 1 : 0;
    const Large &leader = group[0]->state.large;
    if (large.wide.wanted(p, large.archive) != leader.wide.wanted(p, leader.archive)) leave_wide(*group[k]);
  }
  const auto work_on = [&](long k) {
    Large &large = group[k]->state.large;
    return step(p, large.wide, large.archive, incumbent_of(group[k]->state).scaling);
  };
  for (int64_t work = 0; work < WIDE_WORK;) {
    const int64_t more = work_on(0);
    if (more == 0) break;
    work += more;
    for (long k = 1; k < n; ++k)
      if (group[k]->state.large.wide.follows) work_on(k);
  }
  for (long k = 1; k < n; ++k)
    if (Large &large = group[k]->state.large; !large.wide.follows)
      advance(p, large.wide, large.archive, incumbent_of(group[k]->state).scaling);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
