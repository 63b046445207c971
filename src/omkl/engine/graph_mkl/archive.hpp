// As algorithms/graph_mkl/archive.py: the rows that the large experts are fitted to.
#pragma once
#include <cstddef>

#include "graph_mkl/problem.hpp"

namespace omkl::graph_mkl {

struct Archive {
  double *X;          // [capacity][d], NaN: missing; row number r stands in place r mod capacity
  double *y, *weight;  // [capacity]
  int64_t rows;        // that it has been given
  int64_t capacity;

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.rows_array("X", X, capacity, {p.V.d});
    const int64_t most = capacity;
    visitor.array("y", y, {static_cast<long>(most)});
    visitor.array("weight", weight, {static_cast<long>(most)});
    visitor.number("rows", rows);
  }
  bool has_room(const Problem &p) const { return rows < capacity || capacity >= p.archive; }
  bool valid(const Problem &p) const {
    bool right = capacity <= p.archive && rows >= 0 && rows < LARGEST_COUNT;
    for (int64_t i = 0; right && p.classify && i < capacity; ++i)
      right = y[i] >= 0 && y[i] < static_cast<double>(p.K) && y[i] == static_cast<double>(static_cast<int64_t>(y[i]));
    return right;
  }
};

OMKL_ALWAYS_INLINE void append(const Problem &p, Archive &a, const double *x, double y, double weight) {
  if (a.capacity == 0) return;
  const int64_t j = a.rows % a.capacity;
  for (long k = 0; k < p.V.d; ++k) a.X[j * p.V.d + k] = x[k];
  a.y[j] = y, a.weight[j] = weight > MIN_WEIGHT ? weight : MIN_WEIGHT;
  a.rows += 1;
}

// After a copy of the last row.
OMKL_ALWAYS_INLINE void make_heavier(Archive &a, double weight) {
  if (a.rows == 0 || a.capacity == 0) return;
  double &last = a.weight[(a.rows - 1) % a.capacity];
  last = last + weight < MAX_COPIED_WEIGHT ? last + weight : MAX_COPIED_WEIGHT;
}

// With its last rows alone, as if it had begun with them. No containers of the standard library: the instruction sets'
// copies of their functions must not be merged by the linker.
OMKL_ALWAYS_INLINE void cut(const Problem &p, Archive &a, int64_t rows) {
  const int64_t d = p.V.d, capacity = a.capacity, width = d + 2;
  if (capacity == 0) return;
  if (rows > a.rows) rows = a.rows;
  if (rows > capacity) rows = capacity;
  double *last = new double[static_cast<size_t>(rows * width)];
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t from = (a.rows - rows + i) % capacity;
    for (int64_t k = 0; k < d; ++k) last[i * width + k] = a.X[from * d + k];
    last[i * width + d] = a.y[from], last[i * width + d + 1] = a.weight[from];
  }
  for (int64_t i = 0; i < capacity; ++i) {
    for (int64_t k = 0; k < d; ++k) a.X[i * d + k] = i < rows ? last[i * width + k] : 0;
    a.y[i] = i < rows ? last[i * width + d] : 0;
    a.weight[i] = i < rows ? last[i * width + d + 1] : 0;
  }
  delete[] last;
  a.rows = rows;
}

}  // namespace omkl::graph_mkl
