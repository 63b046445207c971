// The border: Python's Problem and State become views, and one call per chunk of rows runs on them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "fleet.hpp"
#include "problem.hpp"
#include "scaling.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace omkl {

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

using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

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

// Keeps what the views point into alive: the Python objects, and lists derived from them once.
struct Kept {
  std::vector<nb::object> objects;
  std::vector<std::shared_ptr<std::vector<int>>> lists;
  std::vector<std::shared_ptr<std::vector<double>>> copies;

  template <class Array>
  auto view(nb::handle owner, const char *name) {
    nb::object object = owner.attr(name);
    auto array = nb::cast<Array>(object, false);
    objects.push_back(object);
    return array;
  }

  // A copy that starts on a register, followed by zeros up to one.
  const double *keep_padded(const double *values, long n) {
    auto copy = std::make_shared<std::vector<double>>(static_cast<size_t>(padded(n) + LANES));
    auto address = reinterpret_cast<uintptr_t>(copy->data());
    double *a = copy->data() + (64 - address % 64) % 64 / 8;
    std::copy(values, values + n, a);
    copies.push_back(std::move(copy));
    return a;
  }

  const int *keep(std::vector<int> list) {
    lists.push_back(std::make_shared<std::vector<int>>(std::move(list)));
    return lists.back()->data();
  }
};

template <class Enum>
Enum one_of(nb::handle owner, const char *name, std::initializer_list<const char *> names) {
  const auto value = nb::cast<std::string>(owner.attr(name));
  int code = 0;
  for (const char *candidate : names) {
    if (value == candidate) return static_cast<Enum>(code);
    ++code;
  }
  throw nb::value_error((std::string(name) + " has no value '" + value + "'").c_str());
}

int64_t or_none(nb::handle owner, const char *name) {
  nb::object value = owner.attr(name);
  return value.is_none() ? -1 : nb::cast<int64_t>(value);
}

// Rows of D values that start on a register and are padded with zeros to whole registers.
double *padded_rows(Kept &kept, nb::handle owner, const char *name, std::vector<long> shape) {
  auto a = kept.view<nb::ndarray<double, nb::device::cpu>>(owner, name);
  bool right = a.ndim() == shape.size() && reinterpret_cast<uintptr_t>(a.data()) % 64 == 0;
  int64_t stride = 1;
  for (size_t k = shape.size(); right && k-- > 0;) {
    right = a.shape(k) == static_cast<size_t>(shape[k]) && (a.stride(k) == stride || shape[k] == 1);
    stride *= k + 1 == shape.size() ? padded(shape[k]) : shape[k];
  }
  if (!right) throw nb::value_error((std::string(name) + " must be laid out by omkl.arrays.padded").c_str());
  return a.data();
}

// Kernels whose frequencies are proportional share their phases but for a factor: those of draw="shared". The first
// kernel that has followers, and everybody's ratio to it.
std::pair<long, std::vector<double>> proportional(const double *V, long N, long d, long D) {
  const long P = padded(D);
  std::vector<double> ratio(static_cast<size_t>(N));
  if (d * D < 8) return {-1, ratio};  // so few may be proportional by chance
  for (long model = 0; model < N; ++model) {
    long followers = 0;
    for (long i = model; i < N; ++i) {
      const double *a = V + model * d * P, *b = V + i * d * P, c = b[0] / a[0];
      bool same = std::isfinite(c) && c != 0;
      for (long e = 0; same && e < d * P; ++e) same = std::fabs(b[e] - c * a[e]) <= 1e-15 * std::fabs(b[e]);
      ratio[static_cast<size_t>(i)] = same ? c : 0;
      followers += same;
    }
    if (followers > 1) return {model, ratio};
  }
  return {-1, std::vector<double>(static_cast<size_t>(N))};
}

Frequencies frequencies(Kept &kept, nb::handle problem) {
  nb::object V = problem.attr("V");
  auto shape = nb::cast<nb::tuple>(V.attr("shape"));
  const long N = nb::cast<long>(shape[0]), d = nb::cast<long>(shape[1]), D = nb::cast<long>(shape[2]);
  const double *rows = padded_rows(kept, problem, "V", {N, d, D});
  std::vector<double> largest(static_cast<size_t>(d));
  for (long row = 0; row < N * d; ++row)
    for (long j = 0; j < D; ++j) {
      double &most = largest[static_cast<size_t>(row % d)];
      most = std::max(most, std::fabs(rows[row * padded(D) + j]));
    }
  const auto [model, ratio] = proportional(rows, N, d, D);
  return {N,
          d,
          D,
          padded(D),
          rows,
          1 / std::sqrt(static_cast<double>(D)),
          kept.keep_padded(largest.data(), d),
          model,
          kept.keep_padded(ratio.data(), N)};
}

Schedule schedule(nb::handle problem) {
  nb::object s = problem.attr("schedule");
  return {nb::cast<double>(s.attr("eta")), nb::cast<double>(s.attr("xi")), nb::cast<bool>(s.attr("anytime"))};
}

Descent descent(nb::handle problem) {
  nb::object s = problem.attr("descent");
  return {one_of<Loss>(s, "loss", {"squared", "logistic", "hinge"}), nb::cast<double>(s.attr("lam")),
          one_of<Stabiliser>(s, "stabiliser", {"none", "aware", "floor", "project"}),
          nb::cast<double>(s.attr("radius"))};
}

Graph graph(Kept &kept, nb::handle problem) {
  nb::object g = problem.attr("graph");
  auto order = kept.view<nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(g, "order");
  auto A = kept.view<nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(g, "A");
  auto cover = kept.view<ConstVector>(g, "cover");
  const long N = static_cast<long>(A.shape(0));
  const auto *a = reinterpret_cast<const uint8_t *>(A.data());
  std::vector<int> out_start{0}, out_list, in_start{0}, in_list;
  for (long i = 0; i < N; ++i) {
    for (long j = 0; j < N; ++j) {
      if (a[i * N + j]) out_list.push_back(static_cast<int>(j));
      if (a[j * N + i]) in_list.push_back(static_cast<int>(j));
    }
    out_start.push_back(static_cast<int>(out_list.size()));
    in_start.push_back(static_cast<int>(in_list.size()));
  }
  return {N,
          order.data(),
          a,
          kept.keep_padded(cover.data(), N),
          kept.keep(std::move(out_start)),
          kept.keep(std::move(out_list)),
          kept.keep(std::move(in_start)),
          kept.keep(std::move(in_list))};
}

double *vector(Kept &kept, nb::handle state, const char *name, long N) {
  auto a = kept.view<Vector>(state, name);
  if (a.shape(0) != static_cast<size_t>(N))
    throw nb::value_error((std::string(name) + " must have " + std::to_string(N) + " entries").c_str());
  return a.data();
}

Commit commit(nb::handle problem) { return one_of<Commit>(problem, "commit", {"never", "argmax", "first"}); }
int64_t node(nb::handle state) { return nb::cast<int64_t>(state.attr("node")); }
int64_t rounds(nb::handle state) { return nb::cast<int64_t>(state.attr("t")); }

void build(Raker::Problem &p, Kept &kept, nb::handle o) { p = {frequencies(kept, o), descent(o), schedule(o)}; }
void build(Rfomkr::Problem &p, Kept &kept, nb::handle o) { p = {frequencies(kept, o), schedule(o)}; }
void build(OmklGf::Problem &p, Kept &kept, nb::handle o) {
  p = {frequencies(kept, o),
       descent(o),
       schedule(o),
       nb::cast<long>(o.attr("M")),
       or_none(o, "freeze_after"),
       nb::cast<bool>(o.attr("weighted"))};
}
void build(SfgMkl::Problem &p, Kept &kept, nb::handle o) {
  p = {frequencies(kept, o), graph(kept, o), descent(o),
       schedule(o),          commit(o),      nb::cast<int64_t>(o.attr("commit_after"))};
}
void build(SfgMklR::Problem &p, Kept &kept, nb::handle o) {
  nb::object beta = o.attr("beta");
  p = {frequencies(kept, o),
       graph(kept, o),
       descent(o),
       schedule(o),
       commit(o),
       nb::cast<int64_t>(o.attr("commit_after")),
       beta.is_none() ? -1 : nb::cast<double>(beta)};
}
void build(GraphMkl::Problem &p, Kept &kept, nb::handle o) {
  auto steps = kept.view<ConstVector>(o, "step_array");
  p = {};
  p.V = frequencies(kept, o);
  p.graph = graph(kept, o);
  p.classify = nb::cast<std::string>(o.attr("task")) == "classification";
  p.K = nb::cast<long>(o.attr("K"));
  p.B = 1 + static_cast<long>(steps.shape(0));
  p.steps = steps.data();
  auto widths = kept.view<ConstVector>(o, "width_array");
  p.M = static_cast<long>(widths.shape(0));
  p.widths = widths.data();
  auto ridges = kept.view<ConstVector>(o, "ridge_array");
  if (ridges.shape(0) != static_cast<size_t>(p.V.N) + 1) throw nb::value_error("there must be N + 1 ridges");
  p.ridges = ridges.data();
  p.active = nb::cast<int64_t>(o.attr("active"));
  p.warm_up = nb::cast<int64_t>(o.attr("warm_up"));
  p.discount = nb::cast<double>(o.attr("discount"));
  p.memory = nb::cast<double>(o.attr("memory"));
  p.trial = nb::cast<int64_t>(o.attr("trial"));
  p.sure = nb::cast<double>(o.attr("sure"));
  p.correct = nb::cast<bool>(o.attr("correct")) && !p.classify;
  p.E = p.V.N * p.B + 1 + p.M, p.stride_mix = padded(p.E);
  p.n = 2 * p.V.D, p.stride = padded(p.n);
  p.n_lin = p.V.d + 1, p.stride_lin = padded(p.n_lin);
}
// Its kernels come as codes and rates: `o` has `families` and `rates` beside the fields of rounds/omkr.py.
void build(Omkr::Problem &p, Kept &kept, nb::handle o) {
  auto families = nb::cast<std::vector<int>>(o.attr("families"));
  auto rates = kept.view<ConstVector>(o, "rates");
  bool any_l2 = false, any_l1 = false;
  for (int code : families) {
    const auto family = static_cast<Family>(code);
    any_l2 = any_l2 || family == Family::matern12 || family == Family::matern32 || family == Family::matern52;
    any_l1 = any_l1 || family == Family::laplacian;
  }
  static_assert(sizeof(Family) == sizeof(int));
  p = {static_cast<long>(families.size()),
       nb::cast<long>(o.attr("d")),
       nullptr,
       rates.data(),
       schedule(o),
       or_none(o, "budget"),
       any_l2,
       any_l1};
  p.family = reinterpret_cast<const Family *>(kept.keep(std::move(families)));
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

template <class Problem>
double *theta(const Problem &p, Kept &kept, nb::handle o) {
  return padded_rows(kept, o, "theta", {p.V.N, 2, p.V.D});
}
template <class Problem>
void bind_state(Raker::State &s, const Problem &p, Kept &kept, nb::handle o) {
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), rounds(o)};
}
void bind_state(OmklGf::State &s, const OmklGf::Problem &p, Kept &kept, nb::handle o) {
  auto chosen = kept.view<nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(o, "chosen");
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), reinterpret_cast<uint8_t *>(chosen.data()),
       vector(kept, o, "q", p.V.N), rounds(o)};
}
void bind_state(SfgMkl::State &s, const SfgMkl::Problem &p, Kept &kept, nb::handle o) {
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), vector(kept, o, "log_u", p.V.N), node(o), rounds(o)};
}
void bind_state(SfgMklR::State &s, const SfgMklR::Problem &p, Kept &kept, nb::handle o) {
  auto d = kept.view<nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(o, "d");
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), vector(kept, o, "log_u", p.V.N), d.data(), node(o),
       rounds(o)};
}
template <class T>
T *entries(Kept &kept, nb::handle o, const char *name, long size) {
  auto a = kept.view<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(o, name);
  if (a.size() != static_cast<size_t>(size))
    throw nb::value_error((std::string(name) + " must have " + std::to_string(size) + " entries").c_str());
  return a.data();
}
void bind_state(GraphMkl::State &s, const GraphMkl::Problem &p, Kept &kept, nb::handle o) {
  const long N = p.V.N, d = p.V.d;
  s.R = padded_rows(kept, o, "R", {2, N, p.n, p.n});
  s.theta = padded_rows(kept, o, "theta", {2, N, p.B, p.K, p.n});
  s.R_lin = padded_rows(kept, o, "R_lin", {2, p.n_lin, p.n_lin});
  s.theta_lin = padded_rows(kept, o, "theta_lin", {2, p.K, p.n_lin});
  s.R_mix = padded_rows(kept, o, "R_mix", {2, p.E, p.E});
  s.theta_mix = padded_rows(kept, o, "theta_mix", {2, p.E});
  s.evidence = entries<double>(kept, o, "evidence", 2 * p.E);
  s.noise = entries<double>(kept, o, "noise", 2 * p.E);
  s.heard = entries<int64_t>(kept, o, "heard", 2 * p.E);
  s.rank = entries<int64_t>(kept, o, "rank", 2 * p.E);
  s.explorer = entries<int64_t>(kept, o, "explorer", 2);
  s.mean = entries<double>(kept, o, "mean", 2 * d);
  s.scale = entries<double>(kept, o, "scale", 2 * d);
  s.shift = entries<double>(kept, o, "shift", 2 * p.K);
  s.unit = entries<double>(kept, o, "unit", 2);
  s.rows = entries<double>(kept, o, "rows", 2 * KEPT * d);
  s.answers = entries<double>(kept, o, "answers", 2 * KEPT * p.K);
  s.worth = entries<double>(kept, o, "worth", 2 * KEPT);
  s.window = entries<double>(kept, o, "window", 2 * d * WINDOW);
  s.recalled = entries<double>(kept, o, "recalled", 2 * p.K * WINDOW);
  s.age = entries<int64_t>(kept, o, "age", 2);
  s.trust = entries<double>(kept, o, "trust", 2);
  s.trend = entries<double>(kept, o, "trend", 3);
  s.reach = entries<double>(kept, o, "reach", 7);
  s.incumbent = nb::cast<int64_t>(o.attr("incumbent"));
  s.t = rounds(o);
}
// S and alpha come with room to grow; `n` says how many columns are support points.
void bind_state(Omkr::State &s, const Omkr::Problem &p, Kept &kept, nb::handle o) {
  auto S = kept.view<Matrix>(o, "S");
  auto alpha = kept.view<Matrix>(o, "alpha");
  const auto capacity = static_cast<int64_t>(S.shape(1));
  if (capacity % LANES || alpha.shape(1) != S.shape(1) || reinterpret_cast<uintptr_t>(S.data()) % 64 ||
      reinterpret_cast<uintptr_t>(alpha.data()) % 64)
    throw nb::value_error("S and alpha must have one capacity, whole registers of it");
  s = {S.data(), alpha.data(), vector(kept, o, "log_w", p.N), capacity, nb::cast<int64_t>(o.attr("n")), rounds(o)};
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
long more_for(const GraphMkl::Problem &p) {
  const long E = padded(p.E), K = padded(p.K), widest = std::max({p.stride, p.stride_lin, p.stride_mix});
  const long inputs = 2 * padded(p.V.d) + 2 * p.V.P, features = (4 * (p.V.N + 1) + 3) * widest;
  return inputs + features + 10 * E + padded(2 * p.E * p.K) + 2 * K + 2 * WINDOW;
}

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

Columns columns(const Matrix &stats, size_t d) {
  if (stats.shape(0) != 3 || stats.shape(1) != d)
    throw nb::value_error("X and the running statistics must have as many columns");
  return {static_cast<long>(d), stats.data()};
}

// Rows one after the other, each standardised by all up to it; `stats` goes along.
void standardise_rows(Matrix stats, ConstMatrix X, Matrix out) {
  const size_t d = X.shape(1);
  const Columns c = columns(stats, d);
  if (out.shape(0) != X.shape(0) || out.shape(1) != d) throw nb::value_error("X and out must have one shape");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < X.shape(0); ++i) standardise(c, c, X.data() + i * d, out.data() + i * d);
}

// Rows standardised each as if it came next; `spare` is overwritten.
void standardise_each(Matrix stats, Matrix spare, ConstMatrix X, Matrix out) {
  const size_t d = X.shape(1);
  const Columns c = columns(stats, d), next = columns(spare, d);
  if (out.shape(0) != X.shape(0) || out.shape(1) != d) throw nb::value_error("X and out must have one shape");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < X.shape(0); ++i) standardise(c, next, X.data() + i * d, out.data() + i * d);
}

// As rows of one column; `shift` and `scale` map a prediction made before y is known back to y's units.
void standardise_targets(Matrix stats, ConstVector y, Vector out, Vector shift, Vector scale) {
  const Columns c = columns(stats, 1);
  const size_t rows = y.shape(0);
  if (out.shape(0) != rows || shift.shape(0) != rows || scale.shape(0) != rows)
    throw nb::value_error("y, out, shift and scale must have as many rows");
  for (size_t i = 0; i < rows; ++i) {
    shift.data()[i] = c.mean(0);
    scale.data()[i] = deviation(c.count(0), c.mean(0), c.square(0));
    standardise(c, c, y.data() + i, out.data() + i);
  }
}

double standardise_target(Matrix stats, Matrix spare, double y) {
  double out;
  standardise(columns(stats, 1), columns(spare, 1), &y, &out);
  return out;
}

// (shift, scale) that map a prediction made now back to the target's units.
nb::tuple target_map(Matrix stats) {
  const Columns c = columns(stats, 1);
  return nb::make_tuple(c.mean(0), deviation(c.count(0), c.mean(0), c.square(0)));
}

// The values of `row` for `names`, `missing` where there is none. Returns how many were found, or
// -1 - i where the value for names[i] is not a finite number.
long gather(nb::dict row, nb::tuple names, double missing, Vector out) {
  const size_t d = nb::len(names);
  if (out.shape(0) != d) throw nb::value_error("names and out must be as many");
  long found = 0;
  for (size_t i = 0; i < d; ++i) {
    PyObject *value = PyDict_GetItemWithError(row.ptr(), PyTuple_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i)));
    if (!value) {
      if (PyErr_Occurred()) throw nb::python_error();
      out.data()[i] = missing;
      continue;
    }
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) {
      PyErr_Clear();
      return -1 - static_cast<long>(i);
    }
    if (!std::isfinite(number)) return -1 - static_cast<long>(i);
    out.data()[i] = number;
    ++found;
  }
  return found;
}

// `gather` and `standardise_row` in one call; what is missing is NaN.
long gather_scaled(nb::dict row, nb::tuple names, Matrix stats, Matrix spare, Vector raw, Vector out) {
  const long found = gather(row, names, NAN, raw);
  if (found < 0) return found;
  const Columns c = columns(stats, raw.shape(0)), next = columns(spare, raw.shape(0));
  if (out.shape(0) != raw.shape(0)) throw nb::value_error("raw and out must have one shape");
  standardise(c, next, raw.data(), out.data());
  return found;
}

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
  m.def("standardise_rows", &standardise_rows, "stats"_a.noconvert(), "X"_a, "out"_a.noconvert());
  m.def("standardise_each", &standardise_each, "stats"_a, "spare"_a.noconvert(), "X"_a, "out"_a.noconvert());
  m.def("standardise_targets", &standardise_targets, "stats"_a.noconvert(), "y"_a, "out"_a.noconvert(),
        "shift"_a.noconvert(), "scale"_a.noconvert());
  m.def("standardise_target", &standardise_target, "stats"_a, "spare"_a.noconvert(), "y"_a);
  m.def("target_map", &target_map, "stats"_a);
  m.def("gather_scaled", &gather_scaled, "row"_a, "names"_a, "stats"_a, "spare"_a.noconvert(), "raw"_a.noconvert(),
        "out"_a.noconvert());
  m.def("gather", &gather, "row"_a, "names"_a, "missing"_a, "out"_a.noconvert());
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
