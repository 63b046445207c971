// C++ counterpart of algorithms/nodes.py: how the node of the next round is chosen.
#pragma once
#include "problem.hpp"

namespace omkl {

enum class Commit { never, argmax, first };

}  // namespace omkl

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl {
namespace OMKL_ISA {

OMKL_INLINE int64_t next_node(Commit commit, int64_t commit_after, const double *log_u, const double *p, long N,
                              int64_t t, double uniform) {
  if (commit == Commit::never || t <= commit_after) return draw(p, N, uniform);
  return commit == Commit::argmax ? argmax(log_u, N) : 0;
}

// Probability that kernel i is evaluated.
OMKL_INLINE double evaluation_probability(const Graph &graph, const double *p, long i) {
  double q = 0;
  for (int j = graph.in_start[i]; j < graph.in_start[i + 1]; ++j) q += p[graph.in_list[j]];  // (15)
  return q;
}

}  // namespace OMKL_ISA
}  // namespace omkl
#endif
