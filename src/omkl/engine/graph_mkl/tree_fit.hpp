// As algorithms/graph_mkl/tree_fit.py: how one tree is fitted. Sums are of whole numbers and exact, so that their order
// is free: a node's rows are contiguous, and of two children only the smaller is counted, the other is the rest.
#pragma once
#include <new>

#include "graph_mkl/tree_cells.hpp"
#include "graph_mkl/trees_state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

// Working memory of a thread for fits, which grows; not a std::vector, whose functions the linker would share.
struct TreeMemory {
  double *data = nullptr;
  long size = 0;
  ~TreeMemory() { release(); }
  void release() {
    ::operator delete(data, std::align_val_t{64});
    data = nullptr, size = 0;
  }
  double *at_least(long doubles) {
    if (doubles > size) {
      release();
      data = static_cast<double *>(::operator new(sizeof(double) * static_cast<size_t>(doubles), std::align_val_t{64}));
      size = doubles;
    }
    return data;
  }
};
static thread_local TreeMemory tree_memory;

// Bins

// Sorts n numbers without NaN in place, byte by byte; `other` has room for as many.
static void sort_numbers(uint64_t *keys, uint64_t *other, long n) {
  uint32_t count[8][256] = {};
  for (long i = 0; i < n; ++i) {
    const uint64_t bits = keys[i], key = bits >> 63 ? ~bits : bits | (uint64_t{1} << 63);
    keys[i] = key;
    for (int b = 0; b < 8; ++b) ++count[b][key >> 8 * b & 255];
  }
  uint64_t *from = keys, *to = other;
  for (int b = 0; b < 8; ++b) {
    if (count[b][from[0] >> 8 * b & 255] == static_cast<uint32_t>(n)) continue;
    uint32_t start = 0;
    for (uint32_t &c : count[b]) {
      const uint32_t here = c;
      c = start, start += here;
    }
    for (long i = 0; i < n; ++i) to[count[b][from[i] >> 8 * b & 255]++] = from[i];
    uint64_t *swap = from;
    from = to, to = swap;
  }
  for (long i = 0; i < n; ++i) keys[i] = from[i] >> 63 ? from[i] & ~(uint64_t{1} << 63) : ~from[i];
}

// Thresholds of the bins of an input, from its m values in order of the n that it has; returns their number.
static long cut_points(const double *present, long m, long n, double *cuts) {
  long count = 0;
  if (0 < m && m < n) cuts[count++] = -LARGEST_DOUBLE;  // (G68)
  const long most = TREE_BINS - count;
  long distinct = 0;
  for (long i = 1; i < m && distinct < most; ++i) distinct += present[i] != present[i - 1];
  long last = 0;
  auto cut = [&](long start) __attribute__((always_inline)) {
    const double below = present[start - 1], above = present[start];
    const double middle = below + (above - below) / 2;  // (G67)
    cuts[count++] = middle > below ? middle : above;
    last = start;
  };
  if (distinct < most) {
    for (long i = 1; i < m; ++i)
      if (present[i] != present[i - 1]) cut(i);
    return count;
  }
  // Frequent values have their own bins; the others share the rest.
  const auto start_of = [&](long i) __attribute__((always_inline)) {
    while (i > 0 && present[i - 1] == present[i]) --i;
    return i;
  };
  const auto cut_before = [&](long i) __attribute__((always_inline)) {
    if (i > last && i < m) cut(i);
  };
  long begin[TREE_BINS], end[TREE_BINS], frequent = 0, rest = m;
  for (long b = 1; b < most;) {
    const long first = start_of(b * m / most);
    long behind = b * m / most + 1, quantiles = 0;
    while (behind < m && present[behind] == present[first]) ++behind;
    for (; b < most && b * m / most < behind; ++b) ++quantiles;
    if (quantiles > 1 || first == 0)
      begin[frequent] = first, end[frequent++] = behind, rest -= behind - first;  // (G67)
  }
  const long bins = most - 2 * frequent;
  for (long f = 0, b = 1, before = 0; f <= frequent; ++f) {
    const long until = f < frequent ? begin[f] : m;
    for (; b < bins && b * rest / bins + before < until; ++b) cut_before(start_of(b * rest / bins + before));  // (G67)
    if (f == frequent) break;
    cut_before(begin[f]), cut_before(end[f]);
    before += end[f] - begin[f];
  }
  return count;
}

// The value of every row of a fit, in order, from those of the archive, `step` apart.
static void copy_rows(const Trees &t, const Archive &a, const double *from, long step, double *to) {
  const long n = static_cast<long>(t.rows), first = (t.started - t.rows) % a.capacity;
  const long before = first + n > a.capacity ? static_cast<long>(a.capacity) - first : n;  // the end of the archive
  for (long i = 0; i < before; ++i) to[i] = from[(first + i) * step];
  for (long i = before; i < n; ++i) to[i] = from[(i - before) * step];
}

// Column k of `bins` from column k of the archive; `memory` has room for 3 n doubles.
static void bin_input(const Problem &p, Trees &t, const Archive &a, long k, double *memory) {
  const long n = static_cast<long>(t.rows), d = p.V.d;
  double *all = memory, *values = all + n;
  copy_rows(t, a, a.X + k, d, all);
  long m = 0;
  for (long i = 0; i < n; ++i) {
    values[m] = all[i];
    m += all[i] == all[i];
  }
  if (m > 0) sort_numbers(reinterpret_cast<uint64_t *>(values), reinterpret_cast<uint64_t *>(values + n), m);
  double *cuts = t.cuts + k * CUTS;
  const long count = cut_points(values, m, n, cuts);
  t.cut_counts[k] = count;
  for (long i = 0; i < n; i += W) {  // `all` is followed by memory that may be read
    const vec x = load(all + i);
    veci bin = {};
    for (long c = 0; c < count; ++c) bin -= x >= cuts[c];  // (G68)
    for (long l = 0; l < W && i + l < n; ++l) t.bins[(i + l) * d + k] = static_cast<uint8_t>(bin[l]);
  }
}

// Random choices, a hash of the number of a tree

OMKL_INLINE uint64_t mixed(uint64_t bits) {
  bits = (bits ^ (bits >> KEY_SHIFTS[0])) * KEY_MULTIPLIERS[0];
  bits = (bits ^ (bits >> KEY_SHIFTS[1])) * KEY_MULTIPLIERS[1];
  return bits ^ (bits >> KEY_SHIFTS[2]);
}
OMKL_INLINE uint64_t hashed(int64_t tree, long place) {
  return mixed(mixed(static_cast<uint64_t>(tree) * KEY_STEP) + static_cast<uint64_t>(place) * KEY_STEP);  // (G69)
}

// Inputs that a tree may split by, in order; returns their number. `inputs` has room for d.
static long inputs_of(const Problem &p, const Trees &t, int32_t *inputs) {
  long usable = 0;
  for (long k = 0; k < p.V.d; ++k)
    if (t.cut_counts[k] != 0) inputs[usable++] = static_cast<int32_t>(k);
  long count = (usable + 1) / 2;  // (G70)
  count = count > TREE_INPUTS[1] ? TREE_INPUTS[1] : count;
  count = count < TREE_INPUTS[0] ? TREE_INPUTS[0] : count;
  if (count >= usable) return usable;
  for (long j = 0; j < count; ++j) {
    const long other = j + static_cast<long>(hashed(t.grown, j) % static_cast<uint64_t>(usable - j));  // (G70)
    const int32_t swap = inputs[j];
    inputs[j] = inputs[other], inputs[other] = swap;
  }
  for (long j = 1; j < count; ++j) {
    const int32_t input = inputs[j];
    long i = j;
    for (; i > 0 && inputs[i - 1] > input; --i) inputs[i] = inputs[i - 1];
    inputs[i] = input;
  }
  return count;
}

// Splits

struct Split {
  double gain, left, right;  // weights of the children
  long input, cut;
};

constexpr double PRUNING = 1 - 1e-9;  // beyond rounding

// One tree that is being grown.
template <long S>
struct Growth {
  typedef typename Cells<S>::Cell Cell;
  const uint8_t *bins;  // [n][d]
  long d, F;
  const int32_t *inputs, *widths;  // [F]  their bins are those below a width, of whole registers
  const int32_t *offsets;  // [F + 1]  of their cells in a histogram, close together: most inputs may be binary
  const Cell *cells;  // [n]
  int32_t *order, *other;  // [n]  rows, those of a node together; working memory
  Cell *histograms;  // [TREE_DEPTH][offsets[F]], and at the end room for the bins that a file may claim
  double least;  // weight of a leaf
  const double *cuts;
  int64_t *feature;  // [NODES]
  double *threshold;  // [NODES]
  long begin[LEAVES], end[LEAVES];  // of the rows of every leaf, in `order`

  Cell *histogram(long k) const { return histograms + k * offsets[F]; }

  void count(long from, long to, Cell *__restrict out) const {
    const uint8_t *__restrict all = bins;
    const int32_t *__restrict which = inputs, *__restrict rows = order, *__restrict begins = offsets;
    const Cell *__restrict values = cells;
    const long wide = d, many = F;
    for (long k = 0; k < begins[many]; ++k) out[k] = Cell{};
    for (long i = from; i < to; ++i) {
      const long row = rows[i];
      const uint8_t *__restrict mine = all + row * wide;
      const Cell value = values[row];
      if (many == wide) {
#pragma GCC unroll 4
        for (long j = 0; j < many; ++j) out[begins[j] + (mine[j] & (TREE_BINS - 1))] += value;
      } else {
#pragma GCC unroll 4
        for (long j = 0; j < many; ++j) out[begins[j] + (mine[which[j]] & (TREE_BINS - 1))] += value;
      }
    }
  }

  // What is left of the histogram of a node without that of a child.
  void subtract(Cell *__restrict whole, const Cell *__restrict part) const {
    const long many = offsets[F];
    for (long k = 0; k < many; ++k) whole[k] -= part[k];
  }

  // The best split of a node; gain 0: there is none.
  Split best_split(const Cell *histogram) const {
    Split best{0, 0, 0, 0, 0};
    typename Cells<S>::Sums sums;
    const double ridge = TREE_WEIGHT * TREE_RIDGE;
    double whole = 0, all[S], before = 0;
    for (long j = 0; j < F; ++j) {
      const Cell *cell = histogram + offsets[j];
      const long width = widths[j];
      Cell sum{};
      for (long k = 0; k < width; ++k) sums.put(k, sum += cell[k]);
      if (j == 0) {  // those of the node, whatever the input
        whole = sums.weight(width - 1);
        if (!(whole >= 2 * least)) return best;
        for (long s = 0; s < S; ++s) all[s] = sums.residual(width - 1, s), before += all[s] * all[s];
        before /= whole + ridge;
      }
      vec left, right, below, above;
      const auto part_at = [&](long k) __attribute__((always_inline)) {
        left = sums.weights(k), right = whole - left, below = above = vec{};
        for (long s = 0; s < S; ++s) {
          const vec g = sums.residuals(k, s), rest = all[s] - g;
          below += g * g, above += rest * rest;
        }
        return (left >= least) & (right >= least);  // (G74)
      };
      const double bound = PRUNING * (best.gain + before);  // divisions are only for what may be better
      veci maybe = {};
      for (long k = 0; k < width; k += W) {
        const veci enough = part_at(k);
        const vec l = left + ridge, r = right + ridge;
        maybe |= enough & (below * r + above * l > bound * (l * r));
      }
      if (total(maybe) == 0) continue;
      vec highest = {};
      veci at = {};
      for (long k = 0; k < width; k += W) {
        const veci enough = part_at(k);
        const vec gain = below / (left + ridge) + above / (right + ridge) - before;  // (G73)
        const veci better = enough & (gain > highest);
        highest = better ? gain : highest;
        at = better ? LANE + k : at;
      }
      for (long l = 0; l < W; ++l)
        if (highest[l] > best.gain || (highest[l] == best.gain && best.gain > 0 && best.input == j && at[l] < best.cut))
          best = {highest[l], sums.weight(at[l]), whole - sums.weight(at[l]), j, at[l]};
    }
    return best;
  }

  // Rows of a node, of which those that go right come behind the others; returns the first of them.
  long part(long from, long to, long input, long cut) {
    const uint8_t *__restrict column = bins + inputs[input];
    int32_t *__restrict rows = order, *__restrict rest = other;
    const long wide = d;
    long left = from, right = 0;
    for (long i = from; i < to; ++i) {
      const int32_t row = rows[i];
      const long up = (column[row * wide] & (TREE_BINS - 1)) > cut;
      rows[left] = row, rest[right] = row;
      left += 1 - up, right += up;
    }
    for (long i = 0; i < right; ++i) rows[left + i] = rest[i];
    return left;
  }

  // Node v of a level, whose rows stand from..to in `order`; `used` histograms are in use, this node's among them.
  void split(long level, long v, long from, long to, Cell *mine, long used) {
    Split best{0, 0, 0, 0, 0};
    if (level < TREE_DEPTH && mine) best = best_split(mine);
    if (!(best.gain > 0)) {
      begin[v << (TREE_DEPTH - level)] = from, end[v << (TREE_DEPTH - level)] = to;
      return;
    }
    const long node = (1L << level) - 1 + v, input = inputs[best.input];
    feature[node] = input, threshold[node] = cuts[input * CUTS + best.cut];
    const long middle = part(from, to, best.input, best.cut);
    const bool smaller_left = middle - from <= to - middle;
    const bool more = level + 1 < TREE_DEPTH, left = more && best.left >= 2 * least,
               right = more && best.right >= 2 * least;
    Cell *small = nullptr, *large = nullptr;
    if (left || right) {
      Cell *next = histogram(used);
      if (smaller_left)
        count(from, middle, next);
      else
        count(middle, to, next);
      if (smaller_left ? left : right) small = next;
      if (smaller_left ? right : left) {
        large = mine;
        subtract(large, next);
      }
    }
    if (smaller_left) {
      split(level + 1, 2 * v, from, middle, small, used + 1);
      split(level + 1, 2 * v + 1, middle, to, large, used);
    } else {
      split(level + 1, 2 * v + 1, middle, to, small, used + 1);
      split(level + 1, 2 * v, from, middle, large, used);
    }
  }

  void grow(long n) {
    for (long i = 0; i < n; ++i) order[i] = static_cast<int32_t>(i);
    for (long v = 0; v < LEAVES; ++v) begin[v] = end[v] = 0;
    for (long v = 0; v < NODES; ++v) feature[v] = 0, threshold[v] = LARGEST_DOUBLE;
    if (F > 0) count(0, n, histogram(0));
    split(0, 0, 0, n, F > 0 ? histogram(0) : nullptr, 1);
  }
};

}  // namespace omkl::graph_mkl::OMKL_ISA
