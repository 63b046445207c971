// The border: one call per chunk of rows, on views of Python's Problem and State.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fleet.hpp"
#include "problem.hpp"
#include "rows.hpp"
#include "views.hpp"

namespace omkl {

using namespace nb::literals;

namespace baseline {
extern const Table table;
}
#ifdef OMKL_X86
namespace avx2 {
extern const Table table;
}
namespace avx512 {
extern const Table table;
}
#endif

namespace {

std::vector<std::string> supported() {
  std::vector<std::string> names{"baseline"};
#ifdef OMKL_X86
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
    names.push_back("avx2");
  if (names.size() == 2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd"))
    names.push_back("avx512");
#endif
  return names;
}

const Table &table(const std::string &isa) {
  const auto names = supported();
  bool known = false;
  for (const auto &name : names) known = known || name == isa;
  if (!known) {
    std::string all;
    for (const auto &name : names) all += (all.empty() ? "" : ", ") + name;
    throw nb::value_error(("this machine runs the instruction sets " + all + ", got '" + isa + "'").c_str());
  }
#ifdef OMKL_X86
  if (isa == "avx2") return avx2::table;
  if (isa == "avx512") return avx512::table;
#endif
  return baseline::table;
}

// x * 0 is 0 unless x is not finite.
bool all_finite(const double *v, long size) {
  double sum = 0;
  for (long i = 0; i < size; ++i) sum += v[i] * 0;
  return sum == 0;
}

long kernels(const Omkr::Problem &p) { return p.N; }
long inputs(const Omkr::Problem &p) { return p.d; }
long lanes(const Omkr::Problem &) { return 0; }
template <class Problem>
long kernels(const Problem &p) {
  return p.V.N;
}
template <class Problem>
long inputs(const Problem &p) {
  return p.V.d;
}
template <class Problem>
long lanes(const Problem &p) {
  return p.V.P;
}

template <class State>
int64_t node_of(const State &) {
  return 0;
}
int64_t node_of(const SfgMkl::State &s) { return s.node; }
int64_t node_of(const SfgMklR::State &s) { return s.node; }
int64_t node_of(const GraphMkl::State &s) { return s.incumbent; }

// Values that one prediction consists of, and working memory beyond what all have.
template <class Problem>
long width_of(const Problem &) {
  return 1;
}
long width_of(const GraphMkl::Problem &p) { return p.classify ? p.K : 2; }
template <class Problem>
long more_for(const Problem &) {
  return 0;
}
long more_for(const GraphMkl::Problem &p) { return GraphMkl::Room(p, nullptr).size; }

// Uniforms that one round takes.
template <class Problem>
long draws_of(const Problem &) {
  return 0;
}
long draws_of(const OmklGf::Problem &p) { return p.M; }
long draws_of(const SfgMkl::Problem &) { return 1; }
long draws_of(const SfgMklR::Problem &) { return 1; }
long draws_of(const GraphMkl::Problem &) { return 2; }

// Whether a value may be missing, as NaN.
template <class Problem>
bool may_miss(const Problem &) {
  return false;
}
bool may_miss(const GraphMkl::Problem &) { return true; }

template <class State>
int64_t support_of(const State &) {
  return 0;
}
int64_t support_of(const Omkr::State &s) { return s.n; }

// One block of aligned doubles per thread, grown when a larger problem comes by.
Scratch scratch(long N, long P, long more) {
  thread_local std::vector<double> memory;
  const long Np = padded(N);
  const size_t size = static_cast<size_t>(N * 2 * P + P + 9 * Np + 3 * BLOCK + more + LANES);
  if (memory.size() < size) memory.resize(size);
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  double *a = memory.data() + (64 - address % 64) % 64 / 8;
  Scratch s{};
  s.z = a, a += N * 2 * P;
  s.phase = a, a += P;
  s.f = a, a += Np;
  s.norm = a, a += Np;
  s.p = a, a += Np;
  s.work = a, a += Np;
  s.u = a, a += Np;
  s.extra = a, a += Np;
  s.distance = a, a += 3 * BLOCK;
  s.more = a, a += more;
  s.heard = reinterpret_cast<int *>(a), a += Np;
  s.lead = reinterpret_cast<uint8_t *>(a);
  return s;
}

struct AnyMemory {};
struct AnyEngine {};

template <class Algorithm>
struct Memory : AnyMemory {
  typename Algorithm::State state;
  Kept kept;
  ConstVector tape;  // the uniforms that single rows will take, and where they are
  const double *uniforms = nullptr;
  long left = 0;
};

// What `learn` returns instead of a number of kernels; as in engine/__init__.py.
constexpr long DIVERGED = -1, NO_UNIFORMS = -2, REFUSED = -3;

template <class Algorithm>
struct Engine : AnyEngine {
  typename Algorithm::Problem problem;
  Kept kept;
  const Loop<Algorithm> *loop;

  Scratch room() const { return scratch(kernels(problem) + 1, lanes(problem), more_for(problem)); }

  void want_inputs(size_t d) const {
    if (d != static_cast<size_t>(inputs(problem)))
      throw nb::value_error(("x must have " + std::to_string(inputs(problem)) + " values, got " + std::to_string(d) +
                             "; the learner was made for that many features")
                                .c_str());
  }

  double predict(const Memory<Algorithm> &memory, ConstVector x) const {
    want_inputs(x.shape(0));
    double out;
    if (width_of(problem) != 1) throw nb::type_error("this learner says more than one number: predict_rows");
    Scratch s = room();
    loop->predict(problem, memory.state, s, x.data(), &out);
    return out;
  }

  void predict_rows(const Memory<Algorithm> &memory, ConstMatrix X, Vector out) const {
    want_inputs(X.shape(1));
    const size_t width = static_cast<size_t>(width_of(problem));
    if (out.shape(0) != X.shape(0) * width) throw nb::value_error("X and out must have as many rows");
    nb::gil_scoped_release release;
    Scratch s = room();
    for (size_t i = 0; i < X.shape(0); ++i)
      loop->predict(problem, memory.state, s, X.data() + i * X.shape(1), out.data() + i * width);
  }

  // Returns how many kernels were heard, or why there was no round.
  long learn(Memory<Algorithm> &memory, ConstVector x, double y, double weight) const {
    const long draws = draws_of(problem);
    if (memory.left < draws) return NO_UNIFORMS;
    if (x.shape(0) != static_cast<size_t>(inputs(problem))) return REFUSED;
    if (!may_miss(problem) && !all_finite(x.data(), inputs(problem))) return REFUSED;
    thread_local std::vector<double> out;
    out.resize(static_cast<size_t>(width_of(problem)));
    Chunk chunk{1, x.data(), &y, memory.uniforms, &weight, out.data(), 0, 0};
    Scratch s = room();
    loop->run(problem, memory.state, s, chunk);
    if (!chunk.done) return DIVERGED;
    memory.uniforms += draws;
    memory.left -= draws;
    return chunk.heard;
  }

  // Returns (rows done, kernels heard).
  std::pair<long, long> run(Memory<Algorithm> &memory, ConstMatrix X, ConstVector y, ConstVector r, nb::object weight,
                            Vector out) const {
    want_inputs(X.shape(1));
    const size_t rows = X.shape(0);
    if (y.shape(0) != rows || out.shape(0) != rows * static_cast<size_t>(width_of(problem)))
      throw nb::value_error("X, y and out must have as many rows");
    const double *w = nullptr;
    ConstVector weights;
    if (!weight.is_none()) {
      weights = nb::cast<ConstVector>(weight);
      if (weights.shape(0) != rows) throw nb::value_error("X and weight must have as many rows");
      w = weights.data();
    }
    Chunk chunk{static_cast<long>(rows), X.data(), y.data(), r.data(), w, out.data(), 0, 0};
    {
      nb::gil_scoped_release release;
      Scratch s = room();
      loop->run(problem, memory.state, s, chunk);
    }
    return {chunk.done, chunk.heard};
  }
};

template <class Algorithm>
void bind(nb::module_ &m, const std::string &name, Loop<Algorithm> Table::*loop) {
  using E = Engine<Algorithm>;
  using M = Memory<Algorithm>;
  nb::class_<M, AnyMemory>(m, (name + "Memory").c_str())
      .def_prop_ro("t", [](const M &self) { return self.state.t; })
      .def_prop_ro("node", [](const M &self) { return node_of(self.state); })
      .def_prop_ro("n", [](const M &self) { return support_of(self.state); })
      .def_prop_ro("left", [](const M &self) { return self.left; })
      .def(
          "feed",
          [](M &self, ConstVector tape) {
            self.tape = tape;
            self.uniforms = tape.data();
            self.left = static_cast<long>(tape.shape(0));
          },
          "tape"_a);
  nb::class_<E, AnyEngine> engine(m, (name + "Engine").c_str());
  bind_fleet<Algorithm>(engine);
  engine
      .def(
          "__init__",
          [loop](E *self, nb::handle problem, const std::string &isa) {
            new (self) E{};
            self->loop = &(table(isa).*loop);
            build(self->problem, self->kept, problem);
          },
          "problem"_a, "isa"_a)
      .def(
          "memory",
          [](const E &self, nb::handle state) {
            M memory{};
            bind_state(memory.state, self.problem, memory.kept, state);
            return memory;
          },
          "state"_a)
      .def("predict", &E::predict, "memory"_a, "x"_a)
      .def("predict_rows", &E::predict_rows, "memory"_a, "X"_a, "out"_a.noconvert())
      .def("learn", &E::learn, "memory"_a, "x"_a, "y"_a, "weight"_a)
      .def(
          "run",
          [](const E &self, M &memory, ConstMatrix X, ConstVector y, ConstVector r, nb::object weight, Vector out) {
            auto [done, heard] = self.run(memory, X, y, r, weight, out);
            return nb::make_tuple(done, heard);
          },
          "memory"_a, "X"_a, "y"_a, "r"_a, "weight"_a.none(), "out"_a.noconvert());
}

using Anything = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

// Flat index of the first value whose magnitude is not at most the limit, or -1.
long first_beyond(Anything a, double limit) {
  static const Table &best = table(supported().back());
  const double *v = a.data();
  const long size = static_cast<long>(a.size());
  if (best.within(v, size, limit)) return -1;
  for (long i = 0; i < size; ++i)
    if (!(std::fabs(v[i]) <= limit)) return i;
  return -1;
}

long first_not_finite(Anything a) { return first_beyond(a, std::numeric_limits<double>::max()); }

// Runs one of the loops of peaks.hpp; returns how much it did.
long peak(const std::string &isa, const std::string &what, long times) {
  const Peaks &peaks = table(isa).peaks;
  Peaks::Run run = what == "sincos"          ? peaks.sincos
                   : what == "multiply_adds" ? peaks.multiply_adds
                   : what == "bytes_read"    ? peaks.bytes_read
                   : what == "least_squares" ? peaks.least_squares
                                             : nullptr;
  if (!run) throw nb::value_error(("there is no peak '" + what + "'").c_str());
  static std::vector<double> memory(LEAST_SQUARES_ROOM + LANES);
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  return run(memory.data() + (64 - address % 64) % 64 / 8, times);
}

}  // namespace
}  // namespace omkl

NB_MODULE(_native, m) {
  using namespace omkl;
#ifdef __clang__
  m.attr("compiler") = "clang " __clang_version__;
#else
  m.attr("compiler") = "gcc " __VERSION__;
#endif
  m.def("supported", &supported);
  m.def("peak", &peak, "isa"_a, "what"_a, "times"_a);
  m.def("first_not_finite", &first_not_finite, "a"_a);
  m.def("first_beyond", &first_beyond, "a"_a, "limit"_a);
  bind_rows(m);
  nb::class_<AnyMemory>(m, "Memory");
  nb::class_<AnyEngine>(m, "Engine");
  bind<Omkr>(m, "Omkr", &Table::omkr);
  bind<Rfomkr>(m, "Rfomkr", &Table::rfomkr);
  bind<Raker>(m, "Raker", &Table::raker);
  bind<OmklGf>(m, "OmklGf", &Table::omkl_gf);
  bind<SfgMkl>(m, "SfgMkl", &Table::sfg_mkl);
  bind<SfgMklR>(m, "SfgMklR", &Table::sfg_mkl_r);
  bind<GraphMkl>(m, "GraphMkl", &Table::graph_mkl);
}
