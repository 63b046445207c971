// Python's Problem and State as views: pointers into NumPy's arrays, and what keeps these alive.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "problem.hpp"

namespace omkl {

namespace nb = nanobind;

using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

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

inline int64_t or_none(nb::handle owner, const char *name) {
  nb::object value = owner.attr(name);
  return value.is_none() ? -1 : nb::cast<int64_t>(value);
}

// Rows of D values that start on a register and are padded with zeros to whole registers.
inline double *padded_rows(Kept &kept, nb::handle owner, const char *name, std::vector<long> shape) {
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
inline std::pair<long, std::vector<double>> proportional(const double *V, long N, long d, long D) {
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

inline Frequencies frequencies(Kept &kept, nb::handle problem) {
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

inline Schedule schedule(nb::handle problem) {
  nb::object s = problem.attr("schedule");
  return {nb::cast<double>(s.attr("eta")), nb::cast<double>(s.attr("xi")), nb::cast<bool>(s.attr("anytime"))};
}

inline Descent descent(nb::handle problem) {
  nb::object s = problem.attr("descent");
  return {one_of<Loss>(s, "loss", {"squared", "logistic", "hinge"}), nb::cast<double>(s.attr("lam")),
          one_of<Stabiliser>(s, "stabiliser", {"none", "aware", "floor", "project"}),
          nb::cast<double>(s.attr("radius"))};
}

inline Graph graph(Kept &kept, nb::handle problem) {
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

inline double *vector(Kept &kept, nb::handle state, const char *name, long N) {
  auto a = kept.view<Vector>(state, name);
  if (a.shape(0) != static_cast<size_t>(N))
    throw nb::value_error((std::string(name) + " must have " + std::to_string(N) + " entries").c_str());
  return a.data();
}

inline Commit commit(nb::handle problem) { return one_of<Commit>(problem, "commit", {"never", "argmax", "first"}); }
inline int64_t node(nb::handle state) { return nb::cast<int64_t>(state.attr("node")); }
inline int64_t rounds(nb::handle state) { return nb::cast<int64_t>(state.attr("t")); }

inline void build(Raker::Problem &p, Kept &kept, nb::handle o) { p = {frequencies(kept, o), descent(o), schedule(o)}; }
inline void build(Rfomkr::Problem &p, Kept &kept, nb::handle o) { p = {frequencies(kept, o), schedule(o)}; }
inline void build(OmklGf::Problem &p, Kept &kept, nb::handle o) {
  p = {frequencies(kept, o),
       descent(o),
       schedule(o),
       nb::cast<long>(o.attr("M")),
       or_none(o, "freeze_after"),
       nb::cast<bool>(o.attr("weighted"))};
}
inline void build(SfgMkl::Problem &p, Kept &kept, nb::handle o) {
  p = {frequencies(kept, o), graph(kept, o), descent(o),
       schedule(o),          commit(o),      nb::cast<int64_t>(o.attr("commit_after"))};
}
inline void build(SfgMklR::Problem &p, Kept &kept, nb::handle o) {
  nb::object beta = o.attr("beta");
  p = {frequencies(kept, o),
       graph(kept, o),
       descent(o),
       schedule(o),
       commit(o),
       nb::cast<int64_t>(o.attr("commit_after")),
       beta.is_none() ? -1 : nb::cast<double>(beta)};
}
inline void build(GraphMkl::Problem &p, Kept &kept, nb::handle o) {
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
  p.maps = p.V.N + (p.classify ? 1 : 0);
  if (ridges.shape(0) != static_cast<size_t>(p.maps) + 1) throw nb::value_error("there must be a ridge for each map");
  p.ridges = ridges.data();
  p.active = nb::cast<int64_t>(o.attr("active"));
  p.warm_up = nb::cast<int64_t>(o.attr("warm_up"));
  p.discount = nb::cast<double>(o.attr("discount"));
  p.memory = nb::cast<double>(o.attr("memory"));
  p.trial = nb::cast<int64_t>(o.attr("trial"));
  p.sure = nb::cast<double>(o.attr("sure"));
  p.correct = nb::cast<bool>(o.attr("correct")) && !p.classify;
  p.on_kernels = p.V.N * p.B, p.remembering = p.on_kernels + (p.classify ? 2 : 1);
  p.E = p.remembering + p.M, p.stride_mix = padded(p.E);
  p.n = 2 * p.V.D, p.stride = padded(p.n);
  p.n_lin = p.V.d + 1, p.stride_lin = padded(p.n_lin);
}
// Its kernels come as codes and rates: `o` has `families` and `rates` beside the fields of algorithms/omkr.py.
inline void build(Omkr::Problem &p, Kept &kept, nb::handle o) {
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

template <class Problem>
double *theta(const Problem &p, Kept &kept, nb::handle o) {
  return padded_rows(kept, o, "theta", {p.V.N, 2, p.V.D});
}
template <class Problem>
void bind_state(Raker::State &s, const Problem &p, Kept &kept, nb::handle o) {
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), rounds(o)};
}
inline void bind_state(OmklGf::State &s, const OmklGf::Problem &p, Kept &kept, nb::handle o) {
  auto chosen = kept.view<nb::ndarray<bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(o, "chosen");
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), reinterpret_cast<uint8_t *>(chosen.data()),
       vector(kept, o, "q", p.V.N), rounds(o)};
}
inline void bind_state(SfgMkl::State &s, const SfgMkl::Problem &p, Kept &kept, nb::handle o) {
  s = {theta(p, kept, o), vector(kept, o, "log_w", p.V.N), vector(kept, o, "log_u", p.V.N), node(o), rounds(o)};
}
inline void bind_state(SfgMklR::State &s, const SfgMklR::Problem &p, Kept &kept, nb::handle o) {
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
inline void bind_state(GraphMkl::State &s, const GraphMkl::Problem &p, Kept &kept, nb::handle o) {
  const long d = p.V.d;
  s.R = padded_rows(kept, o, "R", {2, p.maps, p.n, p.n});
  s.theta = padded_rows(kept, o, "theta", {2, p.maps, p.B, p.K, p.n});
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
inline void bind_state(Omkr::State &s, const Omkr::Problem &p, Kept &kept, nb::handle o) {
  auto S = kept.view<Matrix>(o, "S");
  auto alpha = kept.view<Matrix>(o, "alpha");
  const auto capacity = static_cast<int64_t>(S.shape(1));
  if (capacity % LANES || alpha.shape(1) != S.shape(1) || reinterpret_cast<uintptr_t>(S.data()) % 64 ||
      reinterpret_cast<uintptr_t>(alpha.data()) % 64)
    throw nb::value_error("S and alpha must have one capacity, whole registers of it");
  s = {S.data(), alpha.data(), vector(kept, o, "log_w", p.N), capacity, nb::cast<int64_t>(o.attr("n")), rounds(o)};
}

}  // namespace omkl
