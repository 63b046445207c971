// What all algorithms share: parts of a Problem, working memory and the interface between Python's border and the
// computing code. Nothing here computes, so that every instruction set compiles against the same layout.
#pragma once
#include <cstdint>

namespace omkl {

constexpr long LANES = 8;  // doubles in the widest register, as in arrays.py

// Always inlined: the copies of different instruction sets must not be merged by the linker.
#define OMKL_ALWAYS_INLINE inline __attribute__((always_inline))

// n rounded up to whole registers.
OMKL_ALWAYS_INLINE long padded(long n) { return (n + LANES - 1) / LANES * LANES; }

enum class Loss { squared, logistic, hinge };
enum class Stabiliser { none, aware, floor, project };

struct Schedule {
  double eta, xi;
  bool anytime;
};

struct Descent {
  Loss loss;
  double lam;
  Stabiliser stabiliser;
  double radius;
  double resting_margin;  // where logistic loss and ridge balance
};

struct Frequencies {
  long N, d, D, P;        // P: D padded to whole registers
  const double *V;        // [N][d][P]
  double root;            // 1 / sqrt(D)
  const double *largest;  // [d] the largest frequency of every input
  long reference;         // a kernel that others are proportional to, negative where there is none
  const double *ratio;    // [N] of a kernel's frequencies to the reference's, 0 where they are not proportional
  // Inputs with a frequency other than 0 in registers of LANES features: of block b those in used[used_start[b] ..
  // used_start[b + 1]), where blocks are counted over all kernels.
  const int *used_start, *used;
};

struct Graph {
  long N;
  const int64_t *order;             // [N][N]
  const uint8_t *A;                 // [N][N]
  const double *cover;              // [N padded]
  const int *out_start, *out_list;  // out-neighbours of i: out_list[out_start[i] .. out_start[i + 1])
  const int *in_start, *in_list;
};

// Working memory of one thread. Between calls it holds nothing but what was computed for the row predicted last.
struct Scratch {
  uint64_t use;    // a number that no other use of working memory has, one more than that of this thread's last
  bool predicted;  // whether that last use predicted, with the present state
  double *z;       // [N][2][P]  sines and cosines, not yet divided by sqrt(D)
  double *f;       // [N]        f_i of the kernels evaluated
  double *norm;    // [N]        |theta_i|^2 of the kernels evaluated
  double *phase;   // [P]        phases of the reference kernel
  double *p;       // [N padded] node probabilities
  double *work;    // [N padded]
  double *next;    // [N padded] logarithms of weights after the round
  double *u;       // [N padded] as NodeWeights has it
  double *shares;  // [N padded] equal shares of the nodes in D'_t, for SFG-MKL-R
  int *evaluated;  // [N]        kernels evaluated in this round
  uint8_t *flags;  // [N]
  double *extra;   // [scratch(problem)]
};

// Rows in, predictions out. `done` falls short of `rows` where a round diverged; that round and all after it have
// changed nothing.
struct Chunk {
  long rows;
  const double *X, *y, *uniforms, *weight;  // weight may be null
  double *out;
  long done, evaluated;
  double *extra = nullptr;  // [rows][extras(problem)], may be null
};

// One algorithm compiled for one instruction set.
template <class Problem, class State>
struct Loop {
  void (*predict)(const Problem &, const State &, Scratch &, const double *x, double *out);
  void (*run)(const Problem &, State &, Scratch &, Chunk &);
  // The same for n states and their chunks: the same rows, each with another target. `memory` has room for the working
  // memory of each, `scratch(problem)` padded. Null where nothing is shared.
  void (*run_several)(const Problem &, State *const *, Chunk *, long n, Scratch &, double *memory);
};

// What an algorithm says about its Problem. These are the defaults; a function of the same name in the algorithm's
// own namespace replaces them.

// Uniform numbers that one round takes.
template <class Problem>
long uniforms(const Problem &) {
  return 0;
}
// Values that one prediction consists of.
template <class Problem>
long outputs(const Problem &) {
  return 1;
}
// Further values about a round, beside its prediction, that are reported on request: how many, and what they are for
// the next round.
template <class Problem>
long extras(const Problem &) {
  return 0;
}
template <class Problem, class State>
void write_extra(const Problem &, const State &, double *) {}
// Doubles of working memory, Scratch::extra, beyond what all algorithms have.
template <class Problem>
long scratch(const Problem &) {
  return 0;
}
// Whether several states share some of the work when they are run together.
template <class Problem>
bool shares(const Problem &) {
  return false;
}
// Whether an input may be missing, as NaN.
template <class Problem>
bool missing(const Problem &) {
  return false;
}
// How many labels there are where a target is the index of one, 0 where it is a number.
template <class Problem>
long labels(const Problem &) {
  return 0;
}
template <class Problem>
long kernels(const Problem &p) {
  return p.V.N;
}
template <class Problem>
long inputs(const Problem &p) {
  return p.V.d;
}
// Features of a kernel, padded to whole registers.
template <class Problem>
long features(const Problem &p) {
  return p.V.P;
}

}  // namespace omkl
