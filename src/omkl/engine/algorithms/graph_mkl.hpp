// As algorithms/graph_mkl.py: least squares and gradient experts on every kernel, explorers sent by the graph.
#pragma once
#include "problem.hpp"

namespace omkl::graph_mkl {

constexpr long WINDOW = 1024, KEPT = 256;  // rows GraphMKL remembers, and keeps for making its experts anew

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

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    graph = from.graph();
    enum class Task { regression, classification };
    const Task task = from.one_of("task", {"regression", "classification"});
    classify = task == Task::classification;
    K = from.whole("K");
    const auto step = from.vector("step_array"), width = from.vector("width_array"), ridge = from.vector("ridge_array");
    B = 1 + step.size, steps = step.data;
    M = width.size, widths = width.data;
    maps = V.N + (classify ? 1 : 0), ridges = ridge.data;
    from.require(ridge.size == maps + 1, "there must be a ridge for each map");
    active = from.whole("active");
    warm_up = from.whole("warm_up");
    discount = from.number("discount");
    memory = from.number("memory");
    trial = from.whole("trial");
    sure = from.number("sure");
    correct = from.flag("correct") && !classify;
    on_kernels = V.N * B, remembering = on_kernels + (classify ? 2 : 1);
    E = remembering + M, stride_mix = padded(E);
    n = 2 * V.D, stride = padded(n);
    n_lin = V.d + 1, stride_lin = padded(n_lin);
  }
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

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    const long d = p.V.d;
    visitor.padded_array("R", R, {2, p.maps, p.n, p.n});
    visitor.padded_array("theta", theta, {2, p.maps, p.B, p.K, p.n});
    visitor.padded_array("R_lin", R_lin, {2, p.n_lin, p.n_lin});
    visitor.padded_array("theta_lin", theta_lin, {2, p.K, p.n_lin});
    visitor.padded_array("R_mix", R_mix, {2, p.E, p.E});
    visitor.padded_array("theta_mix", theta_mix, {2, p.E});
    visitor.array("evidence", evidence, {2, p.E});
    visitor.array("noise", noise, {2, p.E});
    visitor.array("heard", heard, {2, p.E});
    visitor.array("rank", rank, {2, p.E});
    visitor.array("explorer", explorer, {2});
    visitor.array("mean", mean, {2, d});
    visitor.array("scale", scale, {2, d});
    visitor.array("shift", shift, {2, p.K});
    visitor.array("unit", unit, {2});
    visitor.array("rows", rows, {2, KEPT, d});
    visitor.array("answers", answers, {2, KEPT, p.K});
    visitor.array("worth", worth, {2, KEPT});
    visitor.array("window", window, {2, d, WINDOW});
    visitor.array("recalled", recalled, {2, p.K, WINDOW});
    visitor.array("age", age, {2});
    visitor.array("trust", trust, {2});
    visitor.array("trend", trend, {3});
    visitor.array("reach", reach, {7});
    visitor.number("incumbent", incumbent);
    visitor.number("t", t);
  }
};
// Working memory, cut from Scratch::extra. With none given it says by `size` how much that must be.
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

  OMKL_ALWAYS_INLINE Room(const Problem &p, double *memory) {
    auto cut = [&](long n) __attribute__((always_inline)) {
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

inline long uniforms(const Problem &) { return 2; }
inline long outputs(const Problem &p) { return p.classify ? p.K : 2; }
inline long scratch(const Problem &p) { return Room(p, nullptr).size; }
inline bool missing(const Problem &) { return true; }

}  // namespace omkl::graph_mkl

#ifdef OMKL_ISA
#include "least_squares.hpp"
#include "weights.hpp"

namespace omkl::graph_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

constexpr double CLIP = 5, CLIP_LINEAR = 30, STRETCH = 0.5, SQUARE = 1.5, LEAST_DOUBT = 0.05;
constexpr int64_t RANK_EVERY = 20, LISTEN = 16;
constexpr long LEVELS = 7;
constexpr double LEVEL[LEVELS] = {0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99};
constexpr double GAIN = 0.05, LEAST_VARIANCE = 1e-12, LARGEST = 1e90;
constexpr double COLDEST = 1e-2, HOTTEST = 1e2;
constexpr double MIX_RIDGE = 100, MIX_CLIP = 3;
constexpr double FAST = 50, SLOW = 500, RISE = 2;

struct Round {
  // One expert's place in the arrays; i is its map, b its learner there.
  struct Expert {
    long i, b, n, stride;
    double *theta, *R;

    Expert(const Problem &p, const State &s, long g, long e) {
      i = e < p.on_kernels ? e / p.B : e == p.on_kernels ? p.maps : p.V.N;
      b = e < p.on_kernels ? e % p.B : 0;
      const bool linear = i == p.maps;
      n = linear ? p.n_lin : p.n;
      stride = linear ? p.stride_lin : p.stride;
      theta = linear ? s.theta_lin + g * p.K * stride : s.theta + ((g * p.maps + i) * p.B + b) * p.K * stride;
      R = linear ? s.R_lin + g * n * stride : s.R + (g * p.maps + i) * n * stride;
    }
  };

  // The first expert on a map, and how many there are.
  static long first_on(const Problem &p, long i) {
    return i < p.V.N ? i * p.B : i == p.maps ? p.on_kernels : p.on_kernels + 1;
  }
  static long learners_on(const Problem &p, long i) { return i < p.V.N ? p.B : 1; }

  static double clamp(double a) { return a > LARGEST ? LARGEST : a < -LARGEST ? -LARGEST : a; }
  static double unit_of(const State &s, long g) { return s.unit[g] > 0 ? s.unit[g] : 1; }

  // Coming into being

  static void forget(const Problem &p, State &s, long g) {
    for (long i = 0; i <= p.maps; ++i) {
      const double start = 1 / sqrt(p.ridges[i]);
      const Expert first(p, s, g, first_on(p, i));
      for (long j = 0; j < first.n * first.stride; ++j) first.R[j] = 0;
      for (long j = 0; j < first.n; ++j) first.R[j * first.stride + j] = start;
      for (long j = 0; j < learners_on(p, i) * p.K * first.stride; ++j) first.theta[j] = 0;
    }
  }

  static void be_born(const Problem &p, State &s, long g) {
    forget(p, s, g);
    double *R = s.R_mix + g * p.E * p.stride_mix, *theta = s.theta_mix + g * p.stride_mix;
    for (long j = 0; j < p.E * p.stride_mix; ++j) R[j] = 0;
    for (long j = 0; j < p.E; ++j) R[j * p.stride_mix + j] = 1 / sqrt(MIX_RIDGE), theta[j] = 0;
    for (long e = 0; e < p.E; ++e) {
      s.evidence[g * p.E + e] = 0, s.noise[g * p.E + e] = 1;
      s.heard[g * p.E + e] = 0, s.rank[g * p.E + e] = e;
    }
    for (long k = 0; k < p.V.d; ++k) s.mean[g * p.V.d + k] = 0, s.scale[g * p.V.d + k] = 0;
    for (long k = 0; k < p.K; ++k) s.shift[g * p.K + k] = 0;
    s.unit[g] = p.classify ? 1 : 0;
    s.age[g] = 0;
  }

  // What the experts say

  // room.xs for kernels, room.far for the linear expert.
  static void scaled(const Problem &p, const State &s, Room &room, long g, const double *x) {
    const double root = 1 / sqrt(static_cast<double>(p.V.d));
    for (long k = 0; k < p.V.d; ++k) {
      const double a = (x[k] - s.mean[g * p.V.d + k]) * s.scale[g * p.V.d + k];
      room.xs[k] = a != a ? 0 : root * (a > CLIP ? CLIP : a < -CLIP ? -CLIP : a);
      room.far[k] = a != a ? 0 : root * (a > CLIP_LINEAR ? CLIP_LINEAR : a < -CLIP_LINEAR ? -CLIP_LINEAR : a);
    }
  }

  static void with_squares(const Problem &p, const double *xs, double *z) {
    const long room = (p.n - 1) / 2, some = p.V.d < room ? p.V.d : room;
    const double root = sqrt(static_cast<double>(p.V.d));
    for (long k = 0; k < p.stride; ++k) z[k] = 0;
    z[0] = 1;
    for (long k = 0; k < some; ++k) {
      z[1 + k] = xs[k];
      z[1 + room + k] = (root * (xs[k] * xs[k]) - 1 / root) / SQUARE;
    }
  }

  static void features(const Problem &p, long i, const Room &room, double *z) {
    const Frequencies &F = p.V;
    if (i == p.maps) {
      z[0] = 1;
      for (long k = 0; k < F.d; ++k) z[k + 1] = room.far[k];
      for (long k = F.d + 1; k < p.stride_lin; ++k) z[k] = 0;
      return;
    }
    const double *xs = room.xs;
    double *wave = room.wave;
    if (i == F.N) {
      with_squares(p, xs, z);
      return;
    }
    const double *V = F.V + i * F.d * F.P;
    if (phases_in_range(F, xs)) {
      for (long b = 0; b < F.P; b += W) {
        vec phase, sine, cosine;
        phases<1>(V + b, F.d, F.P, xs, &phase);
        sincos(phase, sine, cosine);
        store(wave + b, F.root * sine);
        store(wave + F.P + b, F.root * cosine);
      }
    } else {
      for (long j = 0; j < F.D; ++j) {
        double phase = xs[0] * V[j];
        for (long k = 1; k < F.d; ++k) phase += xs[k] * V[k * F.P + j];
        wave[j] = F.root * sin(phase);
        wave[F.P + j] = F.root * cos(phase);
      }
    }
    for (long j = 0; j < F.D; ++j) z[j] = wave[j], z[F.D + j] = wave[F.P + j];
    for (long j = 2 * F.D; j < p.stride; ++j) z[j] = 0;
  }

  static int64_t warm_up(const Problem &p, const State &s, long g) {
    return g == s.incumbent ? p.warm_up : p.warm_up / 2;
  }

  static bool all_awake(const Problem &p, const State &s, long g) {
    return s.age[g] < warm_up(p, s, g) || p.active >= p.E;
  }

  // Calls f(e, speaks) for every expert of slot g that is awake.
  template <class F>
  OMKL_INLINE void each_awake(const Problem &p, const State &s, long g, F f) {
    if (s.age[g] < 0) return;
    const bool counts = g == s.incumbent || s.age[g] >= LISTEN;
    if (all_awake(p, s, g)) {
      for (long e = 0; e < p.E; ++e) f(e, counts);
      return;
    }
    for (long j = 0; j < p.active - 1; ++j) f(s.rank[g * p.E + j], counts);
    f(s.explorer[g], false);
  }

  // z, phi, mu and q of one expert; z and phi are made once for each kernel.
  static void listen(const Problem &p, const State &s, Room &room, long g, long e, uint8_t *ready) {
    if (e >= p.remembering) {
      if (!(ready[p.maps] & 2)) {
        measure(p, s, room, g);
        ready[p.maps] |= 2;
      }
      recall(p, s, room, g, e);
      return;
    }
    const Expert x(p, s, g, e);
    double *z = room.z + (g * (p.maps + 1) + x.i) * room.widest,
           *phi = room.phi + (g * (p.maps + 1) + x.i) * room.widest;
    if (!(ready[x.i] & 1)) {
      features(p, x.i, room, z);
      ready[x.i] |= 1;
    }
    double q = 0;
    if (x.b == 0) {
      factor_times(x.R, x.n, x.stride, z, phi);
      q = dot(phi, phi, x.stride);
    }
    room.q[g * p.E + e] = q;
    double *mu = room.mu + (g * p.E + e) * p.K;
    for (long k = 0; k < p.K; ++k)
      mu[k] = s.shift[g * p.K + k] + unit_of(s, g) * dot(x.theta + k * x.stride, z, x.stride);
    if (!p.classify && e == p.on_kernels) *mu = bounded_by_answers(s, g, *mu);
  }

  // No further from the answers remembered than STRETCH times their range.
  static double bounded_by_answers(const State &s, long g, double mu) {
    const long n = s.age[g] < WINDOW ? s.age[g] : WINDOW;
    const double *told = s.recalled + g * WINDOW;
    if (n == 0) return mu;
    vec lows = splat(told[0]), highs = lows;
    long j = 0;
    for (; j + W <= n; j += W) {
      vec a;
      __builtin_memcpy(&a, told + j, sizeof a);
      lows = smaller(a, lows);
      highs = larger(a, highs);
    }
    double low = lows[0], high = highs[0];
    for (long l = 1; l < W; ++l) low = lesser(low, lows[l]), high = greater(high, highs[l]);
    for (; j < n; ++j) low = lesser(low, told[j]), high = greater(high, told[j]);
    const double more = STRETCH * (high - low);
    return mu > high + more ? high + more : mu < low - more ? low - more : mu;
  }

  // Squared distances to the rows remembered, in room.square; room.nearest is the least.
  static void measure(const Problem &p, const State &s, Room &room, long g) {
    const long n = s.age[g] < WINDOW ? s.age[g] : WINDOW;
    const double *window = s.window + g * p.V.d * WINDOW;
    room.nearest = INFINITY;
    for (long j = 0; j < n; j += W) {
      vec square = {};
      for (long k = 0; k < p.V.d; ++k) {
        vec gap;
        __builtin_memcpy(&gap, window + k * WINDOW + j, sizeof gap);
        gap -= room.xs[k];
        square += gap * gap;
      }
      store(room.square + j, square);
    }
    for (long j = 0; j < n; ++j) room.nearest = lesser(room.nearest, room.square[j]);
  }

  static void recall(const Problem &p, const State &s, Room &room, long g, long e) {
    const long n = s.age[g] < WINDOW ? s.age[g] : WINDOW;
    double *mu = room.mu + (g * p.E + e) * p.K, &q = room.q[g * p.E + e];
    for (long k = 0; k < p.K; ++k) mu[k] = 0;
    q = 1;
    if (n == 0) return;
    const double width = p.widths[e - p.remembering], rate = 1 / (2 * width * width);
    const double nearest = room.nearest;
    vec total = {}, squares = {};
    for (long j = 0; j < n; j += W) {
      vec w = exp_below_zero(rate * (nearest - load(room.square + j)));
      for (long l = n - j; l < W; ++l) w[l] = 0;
      store(room.near + j, w);
      total += w;
      squares += w * w;
    }
    const double whole = sum(total);
    for (long k = 0; k < p.K; ++k) {
      const double *answers = s.recalled + (g * p.K + k) * WINDOW;
      double mixed = 0;
      vec part = {};
      long j = 0;
      for (; j + W <= n; j += W) {
        vec a;
        __builtin_memcpy(&a, answers + j, sizeof a);
        part += load(room.near + j) * a;
      }
      for (; j < n; ++j) mixed += room.near[j] * answers[j];
      mu[k] = (mixed + sum(part)) / whole;
    }
    q = sum(squares) / (whole * whole);
  }

  static void remember(const Problem &p, State &s, long g, const double *xs, const double *answer, int64_t place) {
    const long j = place % WINDOW;
    for (long k = 0; k < p.V.d; ++k) s.window[(g * p.V.d + k) * WINDOW + j] = xs[k];
    for (long k = 0; k < p.K; ++k) s.recalled[(g * p.K + k) * WINDOW + j] = answer[k];
  }

  static double variance(const State &s, long g, const Problem &p, long e, double q) {
    const double unit = unit_of(s, g);
    return (s.noise[g * p.E + e] * (1 + q) + LEAST_VARIANCE) * unit * unit;
  }

  static void chances(const double *mu, double v, long K, double *out) {
    for (long k = 0; k < K; ++k) out[k] = mu[k] / v;
    normalised(out, K, out);
  }

  // Fills the room with voices and weights, and `out` with what the learner says; false where it diverged.
  static bool mix(const Problem &p, const State &s, Scratch &scratch, Room &room, const double *x, double *out,
                  long &heard) {
    for (long k = 0; k < p.V.d; ++k) room.x[k] = clamp(x[k]);
    double top = -INFINITY;
    bool fine = true;
    heard = 0;
    for (long g = 0; g < 2; ++g) {
      for (long i = 0; i <= p.maps; ++i) scratch.flags[i] = 0;
      if (s.age[g] >= 0) scaled(p, s, room, g, room.x);
      each_awake(p, s, g, [&](long e, bool speaks) {
        listen(p, s, room, g, e, scratch.flags);
        fine = fine && bounded(room.mu + (g * p.E + e) * p.K, p.K);
        if (speaks) top = greater(top, s.evidence[g * p.E + e]);
        ++heard;
      });
    }
    double total = 0;
    for (long j = 0; j < 2 * p.E; ++j) room.weight[j] = 0;
    for (long g = 0; g < 2; ++g)
      each_awake(p, s, g, [&](long e, bool speaks) {
        if (speaks) total += room.weight[g * p.E + e] = exp(s.evidence[g * p.E + e] - top);
      });
    const long width = p.classify ? p.K : 2;
    for (long k = 0; k < width; ++k) out[k] = 0;
    for (long g = 0; g < 2; ++g)
      each_awake(p, s, g, [&](long e, bool speaks) {
        if (!speaks) return;
        const long at = g * p.E + e;
        const double w = room.weight[at] /= total;
        if (p.classify) {
          chances(room.mu + at * p.K, variance(s, g, p, e, room.q[at]), p.K, room.chance);
          for (long k = 0; k < p.K; ++k) out[k] += w * room.chance[k];
        } else {
          out[0] += w * room.mu[at];
        }
      });
    if (!p.classify) {
      double spread = 0;
      for (long g = 0; g < 2; ++g)
        each_awake(p, s, g, [&](long e, bool speaks) {
          if (!speaks) return;
          const long at = g * p.E + e;
          const double gap = room.mu[at] - out[0];
          spread += room.weight[at] * (variance(s, g, p, e, room.q[at]) + gap * gap);
        });
      out[1] = sqrt(spread);
      if (p.correct) out[0] = corrected(p, s, room, out[0], out[1]);
    }
    return fine;
  }

  static double within(double a) { return a > MIX_CLIP ? MIX_CLIP : a < -MIX_CLIP ? -MIX_CLIP : a; }

  // The mixture, moved by what its incumbent experts say beyond it.
  static double corrected(const Problem &p, const State &s, Room &room, double mean, double deviation) {
    room.mean = mean, room.deviation = deviation > 0 ? deviation : INFINITY;
    for (long g = 0; g < 2; ++g) {
      double *z = room.beyond + g * p.stride_mix;
      for (long e = 0; e < p.stride_mix; ++e) z[e] = 0;
      each_awake(p, s, g, [&](long e, bool speaks) {
        if (speaks) z[e] = within((room.mu[g * p.E + e] - mean) / room.deviation);
      });
    }
    const long g = s.incumbent * p.stride_mix;
    return mean + deviation * within(dot(s.theta_mix + g, room.beyond + g, p.stride_mix));
  }

  static void predict(const Problem &p, const State &s, Scratch &scratch, const double *x, double *out) {
    Room room(p, scratch.extra);
    long heard;
    mix(p, s, scratch, room, x, out, heard);
  }

  // What they learn

  static double log_likelihood(const Problem &p, Room &room, const double *mu, double v, double y) {
    if (p.classify) {
      chances(mu, v, p.K, room.chance);
      return log(greater(room.chance[static_cast<long>(y)], 1e-12));
    }
    const double gap = y - mu[0];
    return -0.5 * log(v) - 2.5 * log1p(lesser(gap * gap / (4 * v), TOO_FAR * TOO_FAR));
  }

  // One row of recursive least squares, for P: room.Pz = P z, and R counts the row until z' P z is sure.
  static void solve(const Problem &p, Room &room, double *R, long n, long stride, const double *phi, double q,
                    double weight) {
    const double left = p.sure > 0 ? 1 / p.sure - 1 / greater(q, LEAST_VARIANCE) : weight;
    factor_update(R, n, stride, phi, lesser(weight, left), room.keep, room.take, room.Pz);
  }

  static void correct(const Problem &p, State &s, Room &room, double y, double weight) {
    const double wanted = within((y - room.mean) / room.deviation);
    for (long g = 0; g < 2; ++g) {
      if (s.age[g] < 0) continue;
      double *R = s.R_mix + g * p.E * p.stride_mix, *theta = s.theta_mix + g * p.stride_mix;
      const double *z = room.beyond + g * p.stride_mix;
      const double gap = wanted - dot(theta, z, p.stride_mix);
      factor_times(R, p.E, p.stride_mix, z, room.phi_mix);
      const double q = dot(room.phi_mix, room.phi_mix, p.stride_mix);
      solve(p, room, R, p.E, p.stride_mix, room.phi_mix, q, weight);
      add(theta, weight * gap / (1 + weight * q), room.Pz, p.stride_mix);
    }
  }

  static void improve(const Problem &p, State &s, Room &room, long g, long e, const double *z, const double *phi,
                      double q, const double *target, double weight) {
    if (e >= p.remembering) return;  // what remembers has no coefficients
    const Expert x(p, s, g, e);
    if (x.b > 0) {
      const double step = lesser(1, weight * p.steps[x.b - 1]);
      for (long k = 0; k < p.K; ++k) {
        double *theta = x.theta + k * x.stride;
        add(theta, step * (target[k] - dot(theta, z, x.stride)), z, x.stride);
      }
      return;
    }
    if (p.classify && e >= p.on_kernels) {
      newton(p, room, x, z, phi, q, s.shift + g * p.K, target, weight);
      return;
    }
    solve(p, room, x.R, x.n, x.stride, phi, q, weight);
    for (long k = 0; k < p.K; ++k) {
      double *theta = x.theta + k * x.stride;
      const double gap = target[k] - dot(theta, z, x.stride);
      add(theta, weight * gap / (1 + weight * q), room.Pz, x.stride);
    }
  }

  // One step of logistic regression: least squares in which a row counts by the doubt that was left about it.
  static void newton(const Problem &p, Room &room, const Expert &x, const double *z, const double *phi, double q,
                     const double *shift, const double *target, double weight) {
    for (long k = 0; k < p.K; ++k) room.chance[k] = shift[k] + dot(x.theta + k * x.stride, z, x.stride);
    chances(room.chance, 1, p.K, room.chance);
    double most = 0;
    for (long k = 0; k < p.K; ++k) most = greater(most, room.chance[k]);
    const double doubt = greater(most * (1 - most), LEAST_DOUBT);
    solve(p, room, x.R, x.n, x.stride, phi, q, doubt * weight);
    for (long k = 0; k < p.K; ++k) {
      const double gap = target[k] + shift[k] - room.chance[k];
      add(x.theta + k * x.stride, weight * gap / (1 + doubt * weight * q), room.Pz, x.stride);
    }
  }

  static double inverse(double deviation, double mean) {
    return !(deviation <= 1e-12 * fabs(mean)) && deviation > 1e-150 ? 1 / deviation : 0;
  }

  static void refit(const Problem &p, State &s, Room &room, long g) {
    const long n = s.age[g], d = p.V.d;
    const double *X = s.rows + g * KEPT * d, *Y = s.answers + g * KEPT * p.K;
    for (long k = 0; k < d; ++k) {
      double count = 0, total = 0, square = 0;
      for (long j = 0; j < n; ++j)
        if (X[j * d + k] == X[j * d + k]) count += 1, total += X[j * d + k];
      const double mean = count > 0 ? total / count : NAN;
      count = greater(count, 1);
      for (long j = 0; j < n; ++j)
        if (X[j * d + k] == X[j * d + k]) square += (X[j * d + k] - mean) * (X[j * d + k] - mean);
      s.mean[g * d + k] = mean;
      s.scale[g * d + k] = inverse(sqrt(square / count), mean);
    }
    for (long k = 0; k < p.K; ++k) {
      double total = 0;
      for (long j = 0; j < n; ++j) total += Y[j * p.K + k];
      s.shift[g * p.K + k] = total / static_cast<double>(n);
    }
    if (!p.classify) {
      double square = 0;
      for (long j = 0; j < n; ++j) square += (Y[j] - s.shift[g]) * (Y[j] - s.shift[g]);
      const double unit = sqrt(square / static_cast<double>(n));
      if (unit > 0) {
        const double ratio = s.unit[g] > 0 ? s.unit[g] / unit : 1;
        for (long e = 0; e < p.E; ++e) s.noise[g * p.E + e] *= ratio * ratio;
        s.unit[g] = unit;
      }
    }
    forget(p, s, g);
    double *z = room.z + g * (p.maps + 1) * room.widest, *phi = room.phi + g * (p.maps + 1) * room.widest;
    for (long j = 0; j < n; ++j) {
      scaled(p, s, room, g, X + j * d);
      remember(p, s, g, room.xs, Y + j * p.K, j);
      for (long k = 0; k < p.K; ++k) room.target[k] = (Y[j * p.K + k] - s.shift[g * p.K + k]) / unit_of(s, g);
      for (long i = 0; i <= p.maps; ++i) {
        features(p, i, room, z);
        const Expert first(p, s, g, first_on(p, i));
        factor_times(first.R, first.n, first.stride, z, phi);
        const double q = dot(phi, phi, first.stride);
        for (long b = 0; b < learners_on(p, i); ++b)
          improve(p, s, room, g, first_on(p, i) + b, z, phi, q, room.target, s.worth[g * KEPT + j]);
      }
    }
  }

  static bool is_refit(int64_t age) { return age <= 8 || age == 16 || age == 64 || age == KEPT; }

  static double noise_after(const Problem &p, const State &s, Room &room, long g, long e, double y, double a) {
    const long at = g * p.E + e;
    const double before = s.noise[at], *mu = room.mu + at * p.K;
    if (!p.classify) {
      const double far = (y - mu[0]) / s.unit[g];
      const double gap = far > TOO_FAR ? TOO_FAR : far < -TOO_FAR ? -TOO_FAR : far;
      return (1 - a) * before + a * (gap * gap) / (1 + room.q[at]);
    }
    const double v = variance(s, g, p, e, room.q[at]);
    chances(mu, v, p.K, room.chance);
    double mean = 0;
    for (long k = 0; k < p.K; ++k) mean += room.chance[k] * mu[k];
    const double slope = (mu[static_cast<long>(y)] - mean) / v;
    const double after = before * exp(-a * (slope > 2 ? 2 : slope < -2 ? -2 : slope));
    return after < COLDEST ? COLDEST : after > HOTTEST ? HOTTEST : after;
  }

  static void take_in(const Problem &p, State &s, Room &room, long g, double y, double weight, double r) {
    const long d = p.V.d;
    double answer;
    each_awake(p, s, g, [&](long e, bool) {
      const long at = g * p.E + e;
      if (s.unit[g] > 0) {
        s.heard[at] += 1;
        const double a = greater(1 - p.memory, 1 / (static_cast<double>(s.heard[at]) + 1));
        s.noise[at] = noise_after(p, s, room, g, e, y, a);
      }
      for (long k = 0; k < p.K; ++k) {
        answer = p.classify ? (static_cast<long>(y) == k ? 1 : 0) : y;
        room.target[k] = (answer - s.shift[g * p.K + k]) / unit_of(s, g);
      }
      const long slot = (g * (p.maps + 1) + Expert(p, s, g, e).i) * room.widest;
      improve(p, s, room, g, e, room.z + slot, room.phi + slot, room.q[at], room.target, weight);
    });
    if (s.age[g] < KEPT) {
      s.worth[g * KEPT + s.age[g]] = weight;
      for (long k = 0; k < d; ++k) s.rows[(g * KEPT + s.age[g]) * d + k] = room.x[k];
      for (long k = 0; k < p.K; ++k)
        s.answers[(g * KEPT + s.age[g]) * p.K + k] = p.classify ? (static_cast<long>(y) == k ? 1 : 0) : y;
    }
    for (long k = 0; k < p.K; ++k) room.target[k] = p.classify ? (static_cast<long>(y) == k ? 1 : 0) : y;
    scaled(p, s, room, g, room.x);
    remember(p, s, g, room.xs, room.target, s.age[g]);
    s.age[g] += 1;
    if (is_refit(s.age[g])) {
      refit(p, s, room, g);
    } else {
      for (long k = 0; k < d; ++k) {
        if (s.mean[g * d + k] != s.mean[g * d + k]) s.mean[g * d + k] = room.x[k];
        const double gap = fabs(room.x[k] - s.mean[g * d + k]);
        if (s.scale[g * d + k] == 0 && gap == gap) s.scale[g * d + k] = inverse(gap, s.mean[g * d + k]);
      }
    }
    const int64_t warm = warm_up(p, s, g);
    if (s.age[g] >= warm && p.active < p.E) {
      int64_t *rank = s.rank + g * p.E;
      const double *evidence = s.evidence + g * p.E;
      if ((s.age[g] - warm) % RANK_EVERY == 0)
        for (long e = 0; e < p.E; ++e) {
          long j = e;
          for (; j > 0 && evidence[rank[j - 1]] < evidence[e]; --j) rank[j] = rank[j - 1];
          rank[j] = e;
        }
      s.explorer[g] = explore(p, rank, reinterpret_cast<uint8_t *>(room.rank), r);
    }
  }

  // `mark`: 1 asleep, 3 asleep and a neighbour of a leader.
  static int64_t explore(const Problem &p, const int64_t *rank, uint8_t *mark, double r) {
    for (long e = 0; e < p.E; ++e) mark[e] = 1;
    for (long j = 0; j < p.active - 1; ++j) mark[rank[j]] = 0;
    long near = 0, asleep = p.E - (p.active - 1);
    for (long j = 0; j < p.active - 1; ++j) {
      const long i = rank[j] / p.B, b = rank[j] % p.B;
      if (i >= p.V.N) continue;
      for (int l = p.graph.out_start[i]; l < p.graph.out_start[i + 1]; ++l) {
        uint8_t &m = mark[p.graph.out_list[l] * p.B + b];
        if (m == 1) m = 3, ++near;
      }
    }
    const bool any_far = near < asleep;
    const long count = any_far ? asleep - near : asleep;
    long pick = static_cast<long>(r * static_cast<double>(count));
    if (pick > count - 1) pick = count - 1;
    for (long e = 0; e < p.E; ++e)
      if ((any_far ? mark[e] == 1 : mark[e] != 0) && pick-- == 0) return e;
    return 0;
  }

  static int64_t watch(const Problem &p, State &s, const Room &room, double error) {
    double &fast = s.trend[0], &slow = s.trend[1], &n = s.trend[2];
    if (s.age[s.incumbent] > 2 * LISTEN) {
      const double bounded = n > 2 * LISTEN ? lesser(error, 20 * slow) : error;
      n += 1;
      slow += greater(1 / SLOW, 1 / n) * (bounded - slow);
      fast += greater(1 / FAST, 1 / n) * (bounded - fast);
    }
    const int64_t other = 1 - s.incumbent;
    if (s.age[other] < 0) {
      if (p.trial && n > 4 * FAST && fast > RISE * slow) {
        be_born(p, s, other);
        s.trust[0] = s.trust[1] = 0;
      }
      return s.incumbent;
    }
    double weight[2] = {0, 0};
    for (long g = 0; g < 2; ++g)
      for (long e = 0; e < p.E; ++e) weight[g] += room.weight[g * p.E + e];
    s.trust[0] = 0.98 * s.trust[0] + weight[s.incumbent];
    s.trust[1] = 0.98 * s.trust[1] + weight[other];
    if (s.age[other] < p.trial) return s.incumbent;
    const int64_t winner = s.trust[1] > s.trust[0] ? other : s.incumbent;
    s.age[1 - winner] = -1;
    fast = slow = n = 0;
    return winner;
  }

  static void run(const Problem &p, State &s, Scratch &scratch, Chunk &chunk) {
    Room room(p, scratch.extra);
    const long width = p.classify ? p.K : 2;
    for (; chunk.done < chunk.rows; ++chunk.done) {
      double *said = chunk.out + chunk.done * width;
      const double y = clamp(chunk.y[chunk.done]), *r = chunk.uniforms + 2 * chunk.done;
      long heard;
      if (!mix(p, s, scratch, room, chunk.X + chunk.done * p.V.d, said, heard)) return;
      chunk.evaluated += heard;
      const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
      if (weight == 0) {
        ++s.t;
        continue;
      }
      const bool known = s.unit[s.incumbent] > 0;
      if (known) {
        double top = -INFINITY, mixed = 0;
        for (long g = 0; g < 2; ++g)
          each_awake(p, s, g, [&](long e, bool) {
            const long at = g * p.E + e;
            room.told[at] = log_likelihood(p, room, room.mu + at * p.K, variance(s, g, p, e, room.q[at]), y);
            if (room.weight[at] > 0) top = greater(top, room.told[at]);
          });
        for (long g = 0; g < 2; ++g)
          each_awake(p, s, g, [&](long e, bool) {
            const long at = g * p.E + e;
            if (room.weight[at] > 0) mixed += room.weight[at] * exp(room.told[at] - top);
          });
        mixed = top + log(mixed);
        for (long g = 0; g < 2; ++g)
          each_awake(p, s, g, [&](long e, bool) {
            double &evidence = s.evidence[g * p.E + e];
            evidence = (1 - p.discount) * (evidence + room.told[g * p.E + e] - mixed);
          });
      }
      if (p.correct) correct(p, s, room, y, weight);
      const bool challenged = s.age[1 - s.incumbent] >= 0;
      for (long g = 0; g < 2; ++g)
        if (g == s.incumbent || challenged) take_in(p, s, room, g, y, weight, r[g]);
      double error;
      if (p.classify) {
        const double gap = 1 - said[static_cast<long>(y)];
        error = gap * gap;
      } else {
        error = (y - said[0]) * (y - said[0]);
        if (known)
          for (long l = 0; l < LEVELS; ++l) {
            const double missed = fabs(y - said[0]) > s.reach[l] * said[1] ? 1 : 0;
            s.reach[l] *= exp(GAIN * (missed - (1 - LEVEL[l])));
          }
      }
      s.incumbent = watch(p, s, room, error);
      ++s.t;
    }
  }
};

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  Round::predict(problem, state, s, x, out);
}
inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  Round::run(problem, state, s, chunk);
}

}  // namespace omkl::graph_mkl::OMKL_ISA
#endif
