// C++ counterpart of algorithms/fogd.py: Raker with one kernel.
#pragma once
#include "algorithms/raker.hpp"

namespace omkl::fogd {

struct Problem : raker::Problem {};
struct State : raker::State {};

}  // namespace omkl::fogd

#ifdef OMKL_ISA

namespace omkl::fogd::OMKL_ISA {
using namespace omkl::OMKL_ISA;

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  raker::OMKL_ISA::predict(problem, state, s, x, out);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  raker::OMKL_ISA::run(problem, state, s, chunk);
}

}  // namespace omkl::fogd::OMKL_ISA
#endif
