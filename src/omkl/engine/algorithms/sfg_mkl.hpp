// C++ counterpart of algorithms/sfg_mkl.py (Algorithm 1): draw a node, evaluate its out-neighbours, learn from them.
#pragma once
#include "nodes.hpp"
#include "problem.hpp"

namespace omkl::sfg_mkl {

struct Problem {
  Frequencies V;
  Graph graph;
  Descent descent;
  Schedule schedule;
  Commit commit;
  int64_t commit_after;
  double least_q, least_p;

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
  }
};

struct State {
  double *theta, *log_w, *log_u;
  int64_t node, t;

  static constexpr bool fixed_size = true;
  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.padded_array("theta", theta, {p.V.N, 2, p.V.D});
    visitor.array("log_w", log_w, {p.V.N});
    visitor.array("log_u", log_u, {p.V.N});
    visitor.number("node", node);
    visitor.number("t", t);
  }
  bool valid(const Problem &p) const { return node >= 0 && node < p.V.N; }
};

inline long uniforms(const Problem &) { return 1; }

}  // namespace omkl::sfg_mkl

#ifdef OMKL_ISA
#include "weights.hpp"

namespace omkl::sfg_mkl::OMKL_ISA {
using namespace omkl::OMKL_ISA;

inline void node_probabilities(const Problem &problem, const NodeWeights &u, int64_t t, double *p) {
  const double xi = xi_at(problem.schedule, t);
  u.mix(1 - xi, xi, problem.graph.cover, p);  // (12)
}

// Evaluates the node's out-neighbours; returns how many they are.
inline long evaluate_neighbours(const Problem &problem, const State &state, Scratch &s, const double *x,
                                double &y_hat) {
  const int *out = problem.graph.out_list + problem.graph.out_start[state.node];
  const long n = problem.graph.out_start[state.node + 1] - problem.graph.out_start[state.node];
  for (long j = 0; j < n; ++j) s.evaluated[j] = out[j];
  y_hat = predict_some(problem.V, state.theta, state.log_w, s, n, x);  // (13)
  return n;
}

inline void predict(const Problem &problem, const State &state, Scratch &s, const double *x, double *out) {
  evaluate_neighbours(problem, state, s, x, *out);
}

inline void run(const Problem &problem, State &state, Scratch &s, Chunk &chunk) {
  const auto &[F, graph, descent, schedule, commit, commit_after, least_q, least_p] = problem;
  NodeWeights u{state.log_u, s.u, F.N, 0};
  u.recompute();
  node_probabilities(problem, u, state.t + 1, s.p);
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
      const long i = s.evaluated[j];
      const double h = s.work[j] =
          importance(descent, greater(evaluation_probability(graph, s.p, i), least_q), eta, weight);
      usable &= weigh(descent, state.log_w[i], s.f[j], s.norm[j], y, eta, h, h, s.next[j]);
    }
    const double ell_hat =
        weight * loss_value(descent.loss, y_hat, y) / greater(greater(s.p[state.node], least_p), LEAST);  // (16)
    const double log_u = state.log_u[state.node] - eta * ell_hat;  // (18b)
    if (!usable || !is_finite(log_u)) return;
    // u before w and theta: the next round waits for the node, and the processor can update the kernels meanwhile
    state.log_u[state.node] = log_u;
    u.decreased(state.node);
    node_probabilities(problem, u, t + 1, s.p);
    state.node = next_node(commit, commit_after, state.log_u, s.p, F.N, t + 1, chunk.uniforms[chunk.done]);

    for (long j = 0; j < n; ++j) {
      state.log_w[s.evaluated[j]] = s.next[j];
      learn(F, descent, s.evaluated[j], state.theta, s.z + j * 2 * F.P, s.f[j], s.norm[j], y, eta, s.work[j]);
    }
    state.t = t;
    chunk.evaluated += n;
  }
}

}  // namespace omkl::sfg_mkl::OMKL_ISA
#endif
