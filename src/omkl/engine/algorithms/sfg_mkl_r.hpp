// C++ counterpart of algorithms/sfg_mkl_r.py (Algorithm 2): SFG-MKL on a graph that is refined by the weights of the
// nodes. The refined graph is the original one and at most one more edge into each kernel, (d_i, i).
#pragma once
#include "nodes.hpp"
#include "problem.hpp"

namespace omkl::sfg_mkl_r {

struct Problem {
  Frequencies V;
  Graph graph;
  Descent descent;
  Schedule schedule;
  Commit commit;
  int64_t commit_after;
  double least_q, least_p;
  double beta;  // negative: the tenth-largest rule

  template <class Reader>
  void read(Reader &from) {
    V = from.frequencies("V");
    graph = from.graph(V.N);
    descent = from.descent();
    schedule = from.schedule();
    commit = from.one_of("commit", {"never", "argmax", "first"});
    commit_after = from.whole("commit_after");
    least_q = from.number("least_q");
    least_p = from.number("least_p");
    beta = from.optional_number("beta");
  }
};

struct State {
  double *theta, *log_w, *log_u;
  int64_t *d;
  int64_t node, t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.V.N, 2, p.V.D});
    visitor.array("log_w", log_w, {p.V.N});
    visitor.array("log_u", log_u, {p.V.N});
    visitor.array("d", d, {p.V.N});
    visitor.number("node", node);
    visitor.number("t", t);
  }
  bool valid(const Problem &p) const {
    for (long i = 0; i < p.V.N; ++i)
      if (d[i] < 0 || d[i] >= p.V.N) return false;
    return node >= 0 && node < p.V.N;
  }
};

inline long uniforms(const Problem &) { return 1; }

}  // namespace omkl::sfg_mkl_r

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::sfg_mkl_r::OMKL_ISA {
using namespace omkl::OMKL_ISA;

constexpr long RANK = 10;
constexpr double ROUNDING = 4e-16;

inline double tenth_largest(const double *log_u, long N) {
  double top[RANK] = {};
  const long rank = N < RANK ? N : RANK;
  long n = 0;
  for (long i = 0; i < N; ++i) {
    if (n == rank && !(log_u[i] > top[rank - 1])) continue;
    long j = n < rank ? n++ : rank - 1;
    for (; j > 0 && top[j - 1] < log_u[i]; --j) top[j] = top[j - 1];
    top[j] = log_u[i];
  }
  return top[rank - 1];
}

// Flags the nodes of D'_t, where d_i = i, and gives them equal shares of 1.
inline void share(const State &state, long N, Scratch &s) {
  long count = 0;
  for (long i = 0; i < N; ++i) count += s.flags[i] = state.d[i] == i;
  for (long i = 0; i < padded(N); ++i) s.shares[i] = i < N && s.flags[i] ? 1 / static_cast<double>(count) : 0;
}

// d_{i,t} of round t, after u of the node decreased. `tenth` is the tenth-largest log u, before and after.
inline void refine(const Problem &problem, State &state, Scratch &s, double &tenth, int64_t t) {
  const long N = problem.V.N;
  const int64_t *order = problem.graph.order;
  uint8_t *dominating = s.flags;
  if (problem.beta < 0) {
    // nothing changes by a node that was not in D'_t, or that still is
    if (!dominating[state.node] || state.log_u[state.node] >= tenth) return;
    tenth = tenth_largest(state.log_u, N);
    for (long i = 0; i < N; ++i) dominating[i] = state.log_u[i] >= tenth;  // (22)
  } else {
    const double xi = xi_at(problem.schedule, t);
    normalised(state.log_u, N, s.p);
    for (long i = 0; i < N; ++i)
      dominating[i] = (1 - xi) * s.p[i] >= problem.beta - xi / static_cast<double>(N) - ROUNDING;  // (22)
    dominating[argmax(s.p, N)] = 1;
    bool same = true;
    for (long i = 0; i < N; ++i) same = same && dominating[i] == (state.d[i] == i);
    if (same) return;
  }
  for (long i = 0; i < N; ++i) {
    const int64_t *row = order + i * N, *last = row + N - 1;
    while (row < last && !dominating[*row]) ++row;
    state.d[i] = *row;  // (23)
  }
  share(state, N, s);
}

inline void node_probabilities(const Problem &problem, const NodeWeights &u, int64_t t, Scratch &s) {
  const double xi = xi_at(problem.schedule, t);
  u.mix(1 - xi, xi, s.shares, s.p);  // (24)
}

// Evaluates the node's out-neighbours in the refined graph; returns how many they are.
inline long evaluate_neighbours(const Problem &problem, const State &state, Scratch &s, const double *x,
                                double &y_hat) {
  const long N = problem.V.N, node = state.node;
  const Graph &graph = problem.graph;
  long n = 0;
  for (int j = graph.out_start[node]; j < graph.out_start[node + 1]; ++j) s.evaluated[n++] = graph.out_list[j];
  if (state.d[node] == node)
    for (long i = 0; i < N; ++i)
      if (state.d[i] == node && !graph.A[node * N + i]) s.evaluated[n++] = static_cast<int>(i);
  y_hat = predict_some(problem.V, state.theta, state.log_w, s, n, x);  // (25)
  return n;
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  evaluate_neighbours(problem, state, s, x, *out);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[F, graph, descent, schedule, commit, commit_after, least_q, least_p, beta] = problem;
  NodeWeights u{state.log_u, s.u, F.N, 0};
  u.recompute();
  share(state, F.N, s);
  double tenth = tenth_largest(state.log_u, F.N);
  node_probabilities(problem, u, state.t + 1, s);
  for (; chunk.done < chunk.rows; ++chunk.done) {
    const double *x = chunk.X + chunk.done * F.d, y = chunk.y[chunk.done];
    const double weight = chunk.weight ? chunk.weight[chunk.done] : 1;
    const int64_t t = state.t + 1;
    const double eta = eta_at(schedule, t);
    double y_hat;
    const long n = evaluate_neighbours(problem, state, s, x, y_hat);
    if (!bounded(s.f, n)) return;
    chunk.out[chunk.done] = y_hat;

    bool usable = is_finite(y);
    for (long j = 0; j < n; ++j) {
      const long i = s.evaluated[j], nearest = state.d[i];
      double q = evaluation_probability(graph, s.p, i);  // (15)
      if (!graph.A[nearest * F.N + i]) q += s.p[nearest];
      const double h = s.work[j] = importance(descent, greater(q, least_q), eta, weight);
      usable &= weigh(descent, state.log_w[i], s.f[j], s.norm[j], y, eta, h, h, s.next[j]);
    }
    const double ell_hat =
        weight * loss_value(descent.loss, y_hat, y) / greater(greater(s.p[state.node], least_p), LEAST);  // (16)
    const double log_u = state.log_u[state.node] - eta * ell_hat;  // (18b)
    if (!usable || !is_finite(log_u)) return;
    // u first, as in sfg_mkl.hpp
    state.log_u[state.node] = log_u;
    u.decreased(state.node);
    if (commit == Commit::never || t + 1 <= commit_after) refine(problem, state, s, tenth, t + 1);
    node_probabilities(problem, u, t + 1, s);
    state.node = next_node(commit, commit_after, state.log_u, s.p, F.N, t + 1, chunk.uniforms[chunk.done]);

    for (long j = 0; j < n; ++j) {
      state.log_w[s.evaluated[j]] = s.next[j];
      learn(F, descent, s.evaluated[j], state.theta, s.z + j * 2 * F.P, s.f[j], s.norm[j], y, eta, s.work[j]);
    }
    state.t = t;
    chunk.evaluated += n;
  }
}

}  // namespace omkl::sfg_mkl_r::OMKL_ISA
#endif
