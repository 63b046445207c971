// What the engine works on: views of NumPy arrays that Python owns. No code that computes lives
// here, so that every instruction set compiles against the same layout.
#pragma once
#include <cstdint>

namespace omkl {

constexpr long LANES = 8;  // doubles per padded step, as in arrays.py

inline long padded(long n) { return (n + LANES - 1) / LANES * LANES; }

enum class Loss { squared, logistic, hinge };
enum class Stabiliser { none, aware, floor, project };
enum class Commit { never, argmax, first };

struct Schedule {
  double eta, xi;
  bool anytime;
};

struct Descent {
  Loss loss;
  double lam;
  Stabiliser stabiliser;
  double radius;
};

struct Frequencies {
  long N, d, D, P;  // P: D padded to whole lanes
  const double *V;  // [N][d][P]
  double root;      // 1 / sqrt(D)
  const double *largest;  // [d] the largest frequency of every input
  long model;             // a kernel that others are proportional to, negative where there is none
  const double *ratio;    // [N] of a kernel's frequencies to the model's, 0 where they are not proportional
};

struct Graph {
  long N;
  const int64_t *order;             // [N][N]
  const uint8_t *A;                 // [N][N]
  const double *cover;              // [N padded]
  const int *out_start, *out_list;  // out-neighbours of i: out_list[out_start[i] .. out_start[i + 1])
  const int *in_start, *in_list;
};

// Working memory of one thread; holds nothing between calls.
struct Scratch {
  double *z;         // [N][2][P]  sines and cosines, not yet divided by sqrt(D)
  double *f;         // [N]        f_i of the kernels heard
  double *norm;      // [N]        |theta_i|^2 of the kernels heard
  double *phase;     // [P]        of the model
  double *p;         // [N padded] node law
  double *work;      // [N padded]
  double *u;         // [N padded] as Shares has it
  double *extra;     // [N padded]
  int *heard;        // [N]
  uint8_t *lead;     // [N]        D'_t
  double *distance;  // [3][BLOCK] for OMKR
  double *more;      // what GraphMKL needs
};

constexpr long BLOCK = 512;  // support points OMKR takes at a time

// Rows in, predictions out. `done` falls short of `rows` where a round diverged; that round and
// all after it have left no trace.
struct Chunk {
  long rows;
  const double *X, *y, *r, *weight;  // weight may be null
  double *out;
  long done, heard;
};

struct Raker {
  struct Problem {
    Frequencies V;
    Descent descent;
    Schedule schedule;
  };
  struct State {
    double *theta;  // [N][2][P]
    double *log_w;
    int64_t t;
  };
};

struct Rfomkr {
  struct Problem {
    Frequencies V;
    Schedule schedule;
  };
  using State = Raker::State;
};

enum class Family { gaussian, laplacian, matern12, matern32, matern52, cauchy };

struct Omkr {
  struct Problem {
    long N, d;
    const Family *family;  // [N]
    const double *rate;    // [N]  Gaussian 1 / (2 l^2), Matern sqrt(2 nu) / l, others 1 / l
    Schedule schedule;
    int64_t budget;  // negative: none
    bool any_l2, any_l1;
  };
  struct State {
    double *S;      // [d][capacity]
    double *alpha;  // [N][capacity]
    double *log_w;
    int64_t capacity, n, t;
  };
};

struct OmklGf {
  struct Problem {
    Frequencies V;
    Descent descent;
    Schedule schedule;
    long M;
    int64_t freeze_after;  // negative: never
    bool weighted;
  };
  struct State {
    double *theta, *log_w;
    uint8_t *chosen;
    double *q;
    int64_t t;
  };
};

struct SfgMkl {
  struct Problem {
    Frequencies V;
    Graph graph;
    Descent descent;
    Schedule schedule;
    Commit commit;
    int64_t commit_after;
  };
  struct State {
    double *theta, *log_w, *log_u;
    int64_t node, t;
  };
};

struct SfgMklR {
  struct Problem {
    Frequencies V;
    Graph graph;
    Descent descent;
    Schedule schedule;
    Commit commit;
    int64_t commit_after;
    double beta;  // negative: the tenth-largest rule
  };
  struct State {
    double *theta, *log_w, *log_u;
    int64_t *d;
    int64_t node, t;
  };
};

constexpr long WINDOW = 1024, KEPT = 256;  // rows GraphMKL remembers, and keeps for making its experts anew

struct GraphMkl {
  struct Problem {
    Frequencies V;
    Graph graph;
    bool classify;
    long K, B;            // outputs; learners per kernel
    const double *steps;  // [B - 1]
    long M;               // experts that remember
    const double *widths;
    long maps;  // of kernels, and for labels of inputs with their squares; the linear one comes after them
    const double *ridges;  // [maps + 1]
    int64_t active, warm_up;
    double discount, memory;
    int64_t trial;
    double sure;
    bool correct;
    long on_kernels, remembering, E;  // experts: the first on inputs, the first that remembers, all of them
    long n, stride, n_lin, stride_lin, stride_mix;  // features of a kernel and of the inputs, padded too
  };
  struct State {
    double *R;  // [2][maps][n][stride], lower triangular
    double *theta;  // [2][maps][B][K][stride]
    double *R_lin;  // [2][n_lin][stride_lin]
    double *theta_lin;  // [2][K][stride_lin]
    double *R_mix;  // [2][E][stride_mix]
    double *theta_mix;  // [2][stride_mix]
    double *evidence, *noise;
    int64_t *heard, *rank, *explorer;
    double *mean, *scale, *shift, *unit, *rows, *answers, *worth, *window, *recalled;
    int64_t *age;
    double *trust, *trend, *reach;
    int64_t incumbent, t;
  };
  // Working memory, cut from Scratch::more. With none given it says by `size` how much that must be.
  struct Room {
    long widest, size = 0;
    double *x, *xs, *far;  // [d padded]
    double *wave;  // [2][P]
    double *z, *phi;  // [2][maps + 1][widest]
    double *q, *weight, *told;  // [2][E]
    double *mu;  // [2][E][K]
    double *Pz, *keep, *take;  // [widest]
    double *target, *chance;  // [K]
    double *rank;  // [E], as bytes
    double *square, *near;  // [WINDOW]
    double *beyond;  // [2][E padded]
    double *phi_mix;  // [E padded]
    double nearest, mean, deviation;

    Room(const Problem &p, double *memory) {
      auto cut = [&](long n) {
        double *here = memory ? memory + size : nullptr;
        size += padded(n);
        return here;
      };
      widest = p.stride > p.stride_lin ? p.stride : p.stride_lin;
      if (p.stride_mix > widest) widest = p.stride_mix;
      x = cut(p.V.d), xs = cut(p.V.d), far = cut(p.V.d);
      wave = cut(2 * p.V.P);
      z = cut(2 * (p.maps + 1) * widest), phi = cut(2 * (p.maps + 1) * widest);
      q = cut(2 * p.E), weight = cut(2 * p.E), told = cut(2 * p.E);
      mu = cut(2 * p.E * p.K);
      Pz = cut(widest), keep = cut(widest), take = cut(widest);
      target = cut(p.K), chance = cut(p.K);
      rank = cut(p.E);
      square = cut(WINDOW), near = cut(WINDOW);
      beyond = cut(2 * p.stride_mix);
      phi_mix = cut(p.stride_mix);
    }
  };
};

// One algorithm compiled for one instruction set.
template <class Algorithm>
struct Loop {
  void (*predict)(const typename Algorithm::Problem &, const typename Algorithm::State &, Scratch &, const double *x,
                  double *out);
  void (*run)(const typename Algorithm::Problem &, typename Algorithm::State &, Scratch &, Chunk &);
};

// Loops that `omkl bench` measures the machine by.
struct Peaks {
  using Run = long (*)(double *memory, long times);
  Run sincos, multiply_adds, bytes_read, least_squares;
};
constexpr long PEAK_ROOM = 20480;  // doubles: 160 KB lie in the second cache of any machine, and not in the first
constexpr long LEAST_SQUARES_ROOM = 53248;

struct Table {
  Loop<Omkr> omkr;
  Loop<Rfomkr> rfomkr;
  Loop<Raker> raker;
  Loop<OmklGf> omkl_gf;
  Loop<SfgMkl> sfg_mkl;
  Loop<SfgMklR> sfg_mkl_r;
  Loop<GraphMkl> graph_mkl;
  Peaks peaks;
  bool (*within)(const double *values, long n, double limit);  // whether all magnitudes are at most the limit
};

}  // namespace omkl
