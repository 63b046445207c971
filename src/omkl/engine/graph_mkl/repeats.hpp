// As algorithms/graph_mkl/repeats.py: rows that come again.
#pragma once
#include <cstring>

#include "graph_mkl/memory.hpp"
#include "graph_mkl/scaling.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

enum class Kind { new_row, copy, again };

OMKL_INLINE uint64_t key_bits(double value, uint64_t place) {
  uint64_t bits;
  value += 0.0;  // -0.0 is 0.0
  memcpy(&bits, &value, sizeof bits);
  bits += place * KEY_STEP;
  bits = (bits ^ (bits >> KEY_SHIFTS[0])) * KEY_MULTIPLIERS[0];  // (G53)
  bits = (bits ^ (bits >> KEY_SHIFTS[1])) * KEY_MULTIPLIERS[1];  // (G53)
  return bits ^ (bits >> KEY_SHIFTS[2]);                         // (G53)
}

// Of a row and its target, whatever inputs are missing; never 0.
static int64_t key_of(const Problem &p, const double *x, const SparseRow &sparse, double y) {
  uint64_t total = key_bits(y, 0);
  for (long k = 0; k < p.V.d; ++k)
    if (x[k] == x[k]) total += key_bits(x[k], static_cast<uint64_t>(k) + 1);  // (G53)
  for (long j = 0; j < sparse.n; ++j)
    total += key_bits(sparse.value[j], static_cast<uint64_t>(p.V.d + place_of(sparse, j)) + 1);  // (G53)
  return total > 1 ? static_cast<int64_t>(total >> 1) : 1;
}

// The column of the window that holds this row, the one met last; -1 where there is none.
static long column_of(const Window &window, int64_t key) {
  long found = -1;
  veci hits = {};
  for (long j = 0; j < WINDOW; j += W) {
    veci keys;
    __builtin_memcpy(&keys, window.key + j, sizeof keys);
    hits |= keys == key;
  }
  bool any = false;
  for (long l = 0; l < W; ++l) any |= hits[l] != 0;
  if (!any) return found;
  for (long j = 0; j < WINDOW; ++j)
    if (window.key[j] == key && (found < 0 || window.met[j] > window.met[found])) found = j;
  return found;
}

// Whether the row in this column is the one that the set learned last.
OMKL_INLINE bool is_last(const ExpertSet &set, long column) { return set.age > 0 && column == (set.age - 1) % WINDOW; }

// That a row has come before, estimated by the share of rows that came once.
static double chance_of_return(const Window &window, int64_t age) {
  const long n = rows_in(age);
  double returned = 0;
  for (long j = 0; j < n; ++j) returned += static_cast<double>(window.returned[j]);
  return (returned + 1) / (static_cast<double>(n) + 2);  // (G54)
}

static double evidence_after(double evidence, bool found, double chance) {
  const double after = REPEAT_MEMORY * evidence + (found ? log((1 + chance) / (2 * chance)) : -log(2.0));  // (G55)
  return after < 0 ? 0 : lesser(after, MAX_REPEAT_EVIDENCE);                            // (G55)
}

static Kind kind_of(int64_t lag, double evidence, double chance) {
  if (lag == 1) return chance < 0.5 ? Kind::copy : Kind::new_row;                                        // (G56)
  return lag > NEAR_ROUNDS && evidence > REPEAT_EVIDENCE ? Kind::again : Kind::new_row;  // (G56)
}

struct Recognised {
  Kind kind;
  int64_t key;
  double weight;    // of the row that it is a copy of
  double evidence;  // that rows are shown again
  long found;       // its column in the incumbent's window, or -1
};

static Recognised recognise(const Problem &p, const State &s, const double *x, const SparseRow &sparse, double y) {
  const ExpertSet &set = s.sets[s.incumbent];
  const int64_t key = key_of(p, x, sparse, y);
  const long found = column_of(set.window, key);
  if (found < 0) return {Kind::new_row, key, 0, evidence_after(s.repeats, false, 0), found};
  const int64_t lag = s.t - set.window.met[found];
  const double chance = chance_of_return(set.window, set.age);
  const double evidence = lag == 1 ? s.repeats : evidence_after(s.repeats, true, chance);
  const Kind kind = kind_of(lag, evidence, chance);
  return {kind, key, kind == Kind::copy ? set.window.weight[found] : 0, evidence, found};
}

// Means over weights after one more row, or a copy that makes a row of weight `before` heavier.
static Weights means_after(const Weights &means, int64_t t, double weight, double before) {
  const double rate = greater(1 / WEIGHT_ROUNDS, 1 / (static_cast<double>(t) + 1));  // (G57)
  const double w = greater(weight, MIN_WEIGHT), more = before > 0 ? w : w - means.mean;
  const double squares = before > 0 ? (2 * before + w) * w : w * w - means.square;
  return {means.mean + rate * more, means.square + rate * squares};  // (G57)
}

OMKL_INLINE double relative_weight(const Weights &means, double weight) {
  return greater(weight, MIN_WEIGHT) * means.mean / means.square;  // (G57)
}

OMKL_INLINE int64_t row_in_column(int64_t age, long column) { return age - 1 - (age - 1 - column) % WINDOW; }

// After the row was appended in round t; the same row stands in column `found`, if any.
static void mark_new(Window &window, int64_t row, int64_t key, int64_t t, long found) {
  const long j = row % WINDOW;
  const bool again = found >= 0 && t - window.met[found] > 1;
  if (again) window.returned[found] = 1;
  window.key[j] = key, window.met[j] = t, window.returned[j] = again;
}

}  // namespace omkl::graph_mkl::OMKL_ISA
