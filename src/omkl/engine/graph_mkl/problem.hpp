// As algorithms/graph_mkl/problem.py: what never changes.
#pragma once
#include "../problem.hpp"
#include "graph_mkl_constants.hpp"  // written by the build from algorithms/graph_mkl/constants.py

namespace omkl::graph_mkl {

constexpr int64_t LARGEST_COUNT = int64_t{1} << 62;  // as in algorithms/invariants.py

struct Problem {
  Frequencies V;
  Graph graph;
  bool classify;
  long S;               // sparse inputs, behind those of V in a row
  long K, B;            // outputs; learners per kernel
  const double *steps;  // [B - 1]
  long M;               // memory experts
  const double *widths;
  long maps;             // of kernels, and for labels that of the squares; the linear map comes after them
  const double *ridges;  // [maps + 1]
  int64_t active, warm_up;
  double discount, memory;
  int64_t trial;
  double min_leverage;
  bool stack;
  Frequencies V_wide;  // of the wide least squares; D = 0: there are none
  int64_t trees, archive;  // boosted trees, 0: there are none; most rows of the archive
  long on_kernels, first_memory, first_large, E;  // experts: the linear one, the first memory expert, all of them
  long large, wide_experts;                       // large experts; those of them that are wide least squares
  long rows_linear;                  // of the factor of the linear expert: n_linear, or 1, its diagonal
  long n, stride, n_linear, stride_linear, stride_stack;  // features, and their number padded to whole registers

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    graph = from.graph(V.N);
    enum class Task { regression, classification };
    const Task task = from.one_of("task", {"regression", "classification"});
    classify = task == Task::classification;
    K = from.whole("K");
    from.require(K >= 1 && (classify || K == 1), "a number is one output, and labels are at least one");
    const auto step = from.numbers("steps"), width = from.numbers("widths"), ridge = from.numbers("ridges");
    B = 1 + step.size, steps = step.data;
    M = width.size, widths = width.data;
    maps = V.N + (classify ? 1 : 0), ridges = ridge.data;
    from.require(ridge.size == maps + 1, "there must be a ridge for each map");
    active = from.whole("active");
    from.require(active >= 2, "at least two experts must be evaluated");
    warm_up = from.whole("warm_up");
    discount = from.number("discount");
    memory = from.number("memory");
    trial = from.whole("trial");
    min_leverage = from.number("min_leverage");
    stack = from.flag("stack");
    V_wide = from.frequencies("V_wide", 0);
    trees = from.whole("trees");
    from.require(trees >= 0 && trees <= MAX_TREES, "there are too many trees");
    const bool same = V_wide.D == 0 || (V_wide.d == V.d && V_wide.D <= MAX_WIDE);
    from.require(V_wide.N == 1 && same, "the wide frequencies do not fit");
    archive = from.whole("archive");
    from.require(archive >= 0 && archive <= MAX_ARCHIVE, "the archive is too large");
    S = from.whole("sparse");
    from.require(S >= 0 && S <= MAX_SPARSE, "there are too many sparse inputs");
    on_kernels = V.N * B, first_memory = on_kernels + (classify ? 2 : 1);
    wide_experts = V_wide.D > 0 ? static_cast<long>(sizeof WIDE_RIDGES / sizeof *WIDE_RIDGES) : 0;
    first_large = first_memory + M, large = (trees > 0 ? 1 : 0) + wide_experts;
    E = first_large + large, stride_stack = padded(E);
    n = 2 * V.D, stride = padded(n);
    n_linear = V.d + 1, stride_linear = padded(n_linear);
    rows_linear = V.d <= MAX_FULL_INPUTS ? n_linear : 1;
  }
};

}  // namespace omkl::graph_mkl
