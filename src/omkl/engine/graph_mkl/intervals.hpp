// As algorithms/graph_mkl/intervals.py: half widths, in predicted standard deviations, that hold their coverage.
#pragma once
#include "../losses.hpp"
#include "graph_mkl/state.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

static void update_half_widths(double *half_widths, const double *prediction, double y) {
  for (long l = 0; l < TRACKED; ++l) {
    const double missed = fabs(y - prediction[0]) > half_widths[l] * prediction[1] ? 1 : 0;
    half_widths[l] *= exp(HALF_WIDTH_GAIN * (missed - (1 - LEVELS[l])));  // (G38)
  }
}

}  // namespace omkl::graph_mkl::OMKL_ISA
