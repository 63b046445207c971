// One algorithm as Python calls it: Engine holds a Problem, Memory holds a State bound to Python's arrays.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fleet.hpp"
#include "packed.hpp"
#include "problem.hpp"
#include "python.hpp"
#include "scratch.hpp"
#include "visitors.hpp"

namespace omkl {

// x * 0 is 0 unless x is not finite.
inline bool all_finite(const double *v, long size) {
  double sum = 0;
  for (long i = 0; i < size; ++i) sum += v[i] * 0;
  return sum == 0;
}

using Progress = nb::ndarray<int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

struct AnyMemory {};
struct AnyEngine {};

template <class State>
struct Memory : AnyMemory {
  State state{};
  References references;
  ConstVector supplied;  // the uniform numbers that single rows will take
  const double *uniforms = nullptr;
  long unused = 0;
  mutable uint64_t predicted = 0;  // the use of working memory in which the state, as it is, predicted; 0: none

  // Before the state changes: whether the last use of this working memory was to predict with it.
  bool just_predicted(const Scratch &s) { return std::exchange(predicted, 0) == s.use - 1; }
};

// What `learn` returns instead of a number of kernels; as in engine/__init__.py.
constexpr long DIVERGED = -1, NO_UNIFORMS = -2, REFUSED = -3, NO_ROOM = -4;

template <class ProblemType, class StateType>
struct Engine : AnyEngine {
  using Problem = ProblemType;
  using State = StateType;
  using Key = omkl::Key<Problem, State>;
  using BoundMemory = Memory<State>;

  Problem problem{};
  References references;
  const Loop<Problem, State> *loop;

  Engine(nb::handle object, const Loop<Problem, State> *loop_) : loop(loop_) {
    Reader reader(object, references);
    problem.read(reader);
  }

  void require_inputs(size_t d) const {
    if (d != static_cast<size_t>(inputs(problem)))
      throw nb::value_error(("x must have " + std::to_string(inputs(problem)) + " values, got " + std::to_string(d) +
                             "; the learner was made for that many features")
                                .c_str());
  }

  // Of a fleet: every row of a group is one of X, and there is room for its prediction.
  void require_rows(size_t keys, const Places &starts, const Places &order, const ConstMatrix &X,
                    const Vector &out) const {
    require_inputs(X.shape(1));
    if (out.shape(0) != X.shape(0) * static_cast<size_t>(outputs(problem)))
      throw nb::value_error("X and out must have as many rows");
    if (!are_groups(keys, starts, order, X.shape(0)))
      throw nb::value_error("keys, starts and order do not fit each other");
  }

  // Of a state and what a fleet has beside it; `words` are evaluations and generator.
  Key key_of(Memory<State> &memory, Vector input_statistics, Vector target_statistics, Words words) const {
    Key key{};
    key.state = memory.state;
    key.input_statistics = {inputs(problem), input_statistics.data()};
    key.target_statistics = {1, target_statistics.data()};
    if (input_statistics.shape(0) != static_cast<size_t>(STATISTICS * inputs(problem)) ||
        target_statistics.shape(0) != static_cast<size_t>(STATISTICS) || words.shape(0) != 5)
      throw nb::value_error("statistics and words do not fit the problem");
    key.evaluations = words.data()[0];
    for (long i = 0; i < 4; ++i) key.generator.words[i] = words.data()[1 + i];
    return key;
  }

  // Labels index arrays, so that they are checked whoever calls.
  void require_labels(const double *y, size_t rows) const {
    const long count = labels(problem);
    for (size_t i = 0; count && i < rows; ++i)
      if (!(y[i] >= 0 && y[i] < static_cast<double>(count) && y[i] == std::floor(y[i])))
        throw nb::value_error(("y must be a whole number from 0 to " + std::to_string(count - 1) +
                               ", the label's index, got " + std::to_string(y[i]))
                                  .c_str());
  }

  Memory<State> memory(nb::handle state) const {
    Memory<State> memory;
    Binder binder(state, memory.references);
    memory.state.visit(problem, binder);
    constexpr bool has_indices = requires { memory.state.valid(problem); };
    if constexpr (has_indices)
      if (!memory.state.valid(problem)) throw nb::value_error("the state does not fit the problem: an index is wrong");
    return memory;
  }

  nb::dict numbers(Memory<State> &memory) const {
    Numbers visitor;
    memory.state.visit(problem, visitor);
    return visitor.numbers;
  }

  void extra(const Memory<State> &memory, Vector out) const {
    if (out.shape(0) != static_cast<size_t>(extras(problem))) throw nb::value_error("out has not the length of extra");
    write_extra(problem, memory.state, out.data());
  }

  double predict(const Memory<State> &memory, ConstVector x) const {
    require_inputs(x.shape(0));
    double out;
    if (outputs(problem) != 1) throw nb::type_error("a prediction is more than one number; call predict_rows");
    Scratch s = working_memory(problem);
    loop->predict(problem, memory.state, s, x.data(), &out);
    memory.predicted = s.use;
    return out;
  }

  void predict_rows(const Memory<State> &memory, ConstMatrix X, Vector out) const {
    require_inputs(X.shape(1));
    const size_t width = static_cast<size_t>(outputs(problem));
    if (out.shape(0) != X.shape(0) * width) throw nb::value_error("X and out must have as many rows");
    nb::gil_scoped_release release;
    Scratch s = working_memory(problem);
    for (size_t i = 0; i < X.shape(0); ++i)
      loop->predict(problem, memory.state, s, X.data() + i * X.shape(1), out.data() + i * width);
    memory.predicted = X.shape(0) ? s.use : 0;
  }

  // Whether another row can be learned without larger arrays, which Python makes.
  bool has_room(const Memory<State> &memory) const {
    constexpr bool grows = requires { memory.state.has_room(problem); };
    if constexpr (grows)
      return memory.state.has_room(problem);
    else
      return true;
  }

  // Returns how many kernels were evaluated, or why there was no round.
  long learn(Memory<State> &memory, ConstVector x, double y, double weight) const {
    const long draws = uniforms(problem);
    if (memory.unused < draws) return NO_UNIFORMS;
    if (x.shape(0) != static_cast<size_t>(inputs(problem))) return REFUSED;
    if (!missing(problem) && !all_finite(x.data(), inputs(problem))) return REFUSED;
    require_labels(&y, 1);
    thread_local std::vector<double> out;
    out.resize(static_cast<size_t>(outputs(problem)));
    Chunk chunk{1, x.data(), &y, memory.uniforms, &weight, out.data(), 0, 0};
    Scratch s = working_memory(problem);
    s.predicted = memory.just_predicted(s);
    loop->run(problem, memory.state, s, chunk);
    if (!chunk.done) return has_room(memory) ? DIVERGED : NO_ROOM;
    memory.uniforms += draws;
    memory.unused -= draws;
    return chunk.evaluated;
  }

  // The weights of rows, held by `weights`; null where there are none.
  static const double *take_weights(nb::object weight, size_t rows, ConstVector &weights) {
    if (weight.is_none()) return nullptr;
    weights = nb::cast<ConstVector>(weight);
    if (weights.shape(0) != rows) throw nb::value_error("X and weight must have as many rows");
    return weights.data();
  }

  bool learns_several() const { return loop->run_several && shares(problem); }

  // The same rows for several states, with a target in each row of `y`, `uniforms`, `out` and `extra`. `progress` has
  // the rows that each has learned, and the kernels that were evaluated; it says where to begin.
  void run_several(const std::vector<BoundMemory *> &memories, ConstMatrix X, ConstMatrix y, ConstMatrix drawn,
                   nb::object weight, Matrix out, nb::object extra, Progress progress) const {
    if (!learns_several()) throw nb::type_error("this problem shares nothing between targets; call run");
    require_inputs(X.shape(1));
    const size_t n = memories.size(), rows = X.shape(0);
    const auto has = [&](const auto &matrix, size_t columns) {
      return matrix.shape(0) == n && matrix.shape(1) == columns;
    };
    if (!has(y, rows) || !has(out, rows * static_cast<size_t>(outputs(problem))) || !has(progress, 2) ||
        !has(drawn, rows * static_cast<size_t>(uniforms(problem))))
      throw nb::value_error("memories, X, y, uniforms, out and progress do not fit each other");
    ConstVector weights;
    const double *w = take_weights(weight, rows, weights);
    Matrix values;
    if (!extra.is_none()) {
      values = nb::cast<Matrix>(extra, false);
      if (!has(values, rows * static_cast<size_t>(extras(problem))))
        throw nb::value_error("X and extra must have as many rows");
    }
    std::vector<State *> states;
    std::vector<Chunk> chunks;
    for (size_t k = 0; k < n; ++k) {
      State *state = memories[k] ? &memories[k]->state : nullptr;
      const int64_t done = progress.data()[2 * k];
      if (!state || std::find(states.begin(), states.end(), state) != states.end())
        throw nb::value_error("every target must have a memory of its own");
      if (done < 0 || done > static_cast<int64_t>(rows)) throw nb::value_error("progress is beyond the rows");
      states.push_back(state);
      const auto of = [k](const auto &matrix) { return matrix.data() + k * matrix.shape(1); };
      chunks.push_back({static_cast<long>(rows), X.data(), of(y), of(drawn), w, of(out), done,
                        progress.data()[2 * k + 1], extra.is_none() ? nullptr : of(values)});
    }
    const auto each = static_cast<size_t>(padded(scratch(problem)));
    const auto memory = std::make_unique_for_overwrite<double[]>(n * each + LANES);
    {
      nb::gil_scoped_release release;
      Scratch s = working_memory(problem);
      for (const BoundMemory *one : memories) one->predicted = 0;
      loop->run_several(problem, states.data(), chunks.data(), static_cast<long>(n), s, aligned(memory.get()));
    }
    for (size_t k = 0; k < n; ++k) {
      progress.data()[2 * k] = chunks[k].done;
      progress.data()[2 * k + 1] = chunks[k].evaluated;
    }
  }

  // Returns (rows learned, kernels evaluated).
  nb::tuple run(Memory<State> &memory, ConstMatrix X, ConstVector y, ConstVector drawn, nb::object weight, Vector out,
                nb::object extra) const {
    require_inputs(X.shape(1));
    const size_t rows = X.shape(0);
    if (y.shape(0) != rows || out.shape(0) != rows * static_cast<size_t>(outputs(problem)))
      throw nb::value_error("X, y and out must have as many rows");
    if (drawn.shape(0) != rows * static_cast<size_t>(uniforms(problem)))
      throw nb::value_error("there must be uniform numbers for each row");
    require_labels(y.data(), rows);
    ConstVector weights;
    const double *w = take_weights(weight, rows, weights);
    Chunk chunk{static_cast<long>(rows), X.data(), y.data(), drawn.data(), w, out.data(), 0, 0};
    if (!extra.is_none()) {
      const auto values = nb::cast<Vector>(extra, false);
      if (values.shape(0) != rows * static_cast<size_t>(extras(problem)))
        throw nb::value_error("X and extra must have as many rows");
      chunk.extra = values.data();
    }
    {
      nb::gil_scoped_release release;
      Scratch s = working_memory(problem);
      s.predicted = memory.just_predicted(s) && rows == 1;
      loop->run(problem, memory.state, s, chunk);
    }
    return nb::make_tuple(chunk.done, chunk.evaluated);
  }
};

template <class Problem, class State>
nb::object bind(nb::module_ &m, const std::string &name, const Loop<Problem, State> &(*loop)(const std::string &isa)) {
  using namespace nb::literals;
  using E = Engine<Problem, State>;
  using M = Memory<State>;
  nb::class_<M, AnyMemory>(m, (name + "_memory").c_str())
      .def_prop_ro("t", [](const M &self) { return self.state.t; })
      .def_ro("unused", &M::unused)
      .def(
          "supply",
          [](M &self, ConstVector uniforms) {
            self.supplied = uniforms;
            self.uniforms = uniforms.data();
            self.unused = static_cast<long>(uniforms.shape(0));
          },
          "uniforms"_a);
  nb::class_<E, AnyEngine> engine(m, (name + "_engine").c_str());
  engine
      .def(
          "__init__",
          [loop](E *self, nb::handle problem, const std::string &isa) { new (self) E(problem, &loop(isa)); },
          "problem"_a, "isa"_a)
      .def("memory", &E::memory, "state"_a)
      .def("numbers", &E::numbers, "memory"_a)
      .def("has_room", &E::has_room, "memory"_a)
      .def("extra", &E::extra, "memory"_a, "out"_a.noconvert())
      .def("predict", &E::predict, "memory"_a, "x"_a)
      .def("predict_rows", &E::predict_rows, "memory"_a, "X"_a, "out"_a.noconvert())
      .def("learn", &E::learn, "memory"_a, "x"_a, "y"_a, "weight"_a)
      .def("run", &E::run, "memory"_a, "X"_a, "y"_a, "uniforms"_a, "weight"_a.none(), "out"_a.noconvert(),
           "extra"_a.none() = nb::none())
      .def("run_several", &E::run_several, "memories"_a, "X"_a, "y"_a, "uniforms"_a, "weight"_a.none(),
           "out"_a.noconvert(), "extra"_a.none(), "progress"_a.noconvert())
      .def_prop_ro("learns_several", &E::learns_several);
  constexpr bool fixed_size = requires { requires State::fixed_size; };
  if constexpr (fixed_size) bind_fleet<E>(engine);
  engine.attr("fixed_size") = fixed_size;
  constexpr bool packs = requires(const Problem &problem) { State::can_be_packed(problem); };
  if constexpr (packs || fixed_size) bind_packed<E>(engine);
  engine.def_prop_ro("can_be_packed", [](const E &self) {
    if constexpr (packs) return State::can_be_packed(self.problem);
    return fixed_size;
  });
  return engine;
}

}  // namespace omkl
