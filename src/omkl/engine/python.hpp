// Python's Problem and State as C++ sees them: pointers into NumPy's arrays, and the references that keep these alive.
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
#include <type_traits>
#include <utility>
#include <vector>

#include "problem.hpp"

namespace omkl {

namespace nb = nanobind;

using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Shape = std::initializer_list<long>;

// Keeps the memory alive that a Problem or a State points into: Python objects, and arrays derived from them.
struct References {
  std::vector<nb::object> objects;
  std::vector<std::shared_ptr<std::vector<int>>> lists;
  std::vector<std::shared_ptr<std::vector<double>>> copies;

  template <class Array>
  Array array(nb::handle owner, const char *name) {
    nb::object object = owner.attr(name);
    Array array;
    if (!nb::try_cast(object, array, false)) {
      using Element = std::remove_const_t<typename Array::Scalar>;
      const char *type = std::is_same_v<Element, double> ? "float64" : std::is_same_v<Element, bool> ? "bool" : "int64";
      throw nb::type_error((std::string(name) + " must be an array of " + type + " in C order").c_str());
    }
    objects.push_back(object);
    return array;
  }

  // Zeros for n doubles that start on a register and end with a whole one.
  double *zeros(long n) {
    copies.push_back(std::make_shared<std::vector<double>>(static_cast<size_t>(padded(n) + LANES)));
    auto address = reinterpret_cast<uintptr_t>(copies.back()->data());
    return copies.back()->data() + (64 - address % 64) % 64 / 8;
  }

  const double *padded_copy(const double *values, long n) {
    double *a = zeros(n);
    std::copy(values, values + n, a);
    return a;
  }

  const int *list(std::vector<int> values) {
    lists.push_back(std::make_shared<std::vector<int>>(std::move(values)));
    return lists.back()->data();
  }
};

// Whether rows start on a register and are padded to whole registers, as omkl.arrays.padded lays them out.
template <class Array>
bool is_padded(const Array &a) {
  bool right = reinterpret_cast<uintptr_t>(a.data()) % 64 == 0;
  int64_t stride = 1;
  for (size_t k = a.ndim(); right && k-- > 0;) {
    const auto n = static_cast<int64_t>(a.shape(k));
    right = a.stride(k) == stride || n == 1;
    stride *= k + 1 == a.ndim() ? padded(n) : n;
  }
  return right;
}

template <class Array>
bool has_shape(const Array &a, Shape shape) {
  bool right = a.ndim() == shape.size();
  size_t k = 0;
  for (auto n = shape.begin(); right && n != shape.end(); ++n) right = a.shape(k++) == static_cast<size_t>(*n);
  return right;
}

inline std::string text(Shape shape) {
  std::string all;
  for (long n : shape) all += (all.empty() ? "(" : ", ") + std::to_string(n);
  return all + ")";
}

// Kernels whose frequencies are proportional, as draw="shared" makes them, have the same phases but for a factor.
// Returns the first kernel that others are proportional to, or -1, and the ratio of every kernel to it.
inline std::pair<long, std::vector<double>> proportional(const double *V, long N, long d, long D) {
  const long P = padded(D);
  std::vector<double> ratio(static_cast<size_t>(N));
  if (d * D < 8) return {-1, ratio};  // so few may be proportional by coincidence
  for (long reference = 0; reference < N; ++reference) {
    long count = 0;
    for (long i = reference; i < N; ++i) {
      const double *a = V + reference * d * P, *b = V + i * d * P, c = b[0] / a[0];
      bool same = std::isfinite(c) && c != 0;
      for (long e = 0; same && e < d * P; ++e) same = std::fabs(b[e] - c * a[e]) <= 1e-15 * std::fabs(b[e]);
      ratio[static_cast<size_t>(i)] = same ? c : 0;
      count += same;
    }
    if (count > 1) return {reference, ratio};
  }
  return {-1, std::vector<double>(static_cast<size_t>(N))};
}

// Reads the attributes of a Python object: what Problem::read is called with.
class Reader {
 public:
  Reader(nb::handle object, References &references) : object_(object), references_(references) {}

  double number(const char *name) const { return nb::cast<double>(object_.attr(name)); }
  int64_t whole(const char *name) const { return nb::cast<int64_t>(object_.attr(name)); }
  bool flag(const char *name) const { return nb::cast<bool>(object_.attr(name)); }

  // -1 for None.
  int64_t optional_whole(const char *name) const { return object_.attr(name).is_none() ? -1 : whole(name); }
  double optional_number(const char *name) const { return object_.attr(name).is_none() ? -1 : number(name); }

  // The position of a string among `values`, as any enumeration.
  struct Choice {
    int code;
    template <class Enum>
    operator Enum() const {
      return static_cast<Enum>(code);
    }
  };
  Choice one_of(const char *name, std::initializer_list<const char *> values) const {
    const auto value = nb::cast<std::string>(object_.attr(name));
    int code = 0;
    for (const char *candidate : values) {
      if (value == candidate) return {code};
      ++code;
    }
    throw nb::value_error((std::string(name) + " has no value '" + value + "'").c_str());
  }

  template <class T>
  struct List {
    const T *data;
    long size;
  };
  List<double> vector(const char *name) {
    auto a = references_.array<ConstVector>(object_, name);
    return {a.data(), static_cast<long>(a.shape(0))};
  }
  // A sequence of numbers, for instance a tuple.
  List<double> numbers(const char *name) {
    const auto values = nb::cast<std::vector<double>>(object_.attr(name));
    const auto size = static_cast<long>(values.size());
    return {references_.padded_copy(values.data(), size), size};
  }
  List<int> codes(const char *name) {
    auto values = nb::cast<std::vector<int>>(object_.attr(name));
    const auto size = static_cast<long>(values.size());
    return {references_.list(std::move(values)), size};
  }

  void require(bool right, const char *message) const {
    if (!right) throw nb::value_error(message);
  }

  Schedule schedule() const {
    const Reader s = part("schedule");
    return {s.number("eta"), s.number("xi"), s.flag("anytime")};
  }

  Descent descent() const {
    const Reader s = part("descent");
    return {s.one_of("loss", {"squared", "logistic", "hinge"}), s.number("lam"),
            s.one_of("stabiliser", {"none", "aware", "floor", "project"}), s.number("radius"),
            s.number("resting_margin")};
  }

  Frequencies frequencies(const char *name) {
    using Array = nb::ndarray<const double, nb::ndim<3>, nb::device::cpu>;
    auto V = references_.array<Array>(object_, name);
    const long N = static_cast<long>(V.shape(0)), d = static_cast<long>(V.shape(1)), D = static_cast<long>(V.shape(2));
    const long P = padded(D);
    require(N >= 1 && d >= 1 && D >= 1, "the problem needs kernels, features and random features");
    const double *rows = V.data();
    const bool one_row = N == 1 && d == 1;  // whose strides do not tell whether anything follows it
    if (!is_padded(V) || (one_row && D != P)) {
      double *copy = references_.zeros(N * d * P);
      for (long i = 0; i < N; ++i)
        for (long k = 0; k < d; ++k)
          for (long j = 0; j < D; ++j)
            copy[(i * d + k) * P + j] = V.data()[i * V.stride(0) + k * V.stride(1) + j * V.stride(2)];
      rows = copy;
    }
    std::vector<double> largest(static_cast<size_t>(d));
    for (long row = 0; row < N * d; ++row)
      for (long j = 0; j < D; ++j) {
        double &most = largest[static_cast<size_t>(row % d)];
        most = std::max(most, std::fabs(rows[row * P + j]));
      }
    const auto [reference, ratio] = proportional(rows, N, d, D);
    return {N,
            d,
            D,
            P,
            rows,
            1 / std::sqrt(static_cast<double>(D)),
            references_.padded_copy(largest.data(), d),
            reference,
            references_.padded_copy(ratio.data(), N)};
  }

  // Of N nodes, each with a neighbour in either direction.
  Graph graph(long N) {
    nb::object g = object_.attr("graph");
    auto order = references_.array<nb::ndarray<const int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(g, "order");
    auto A = references_.array<nb::ndarray<const bool, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(g, "A");
    auto cover = references_.array<ConstVector>(g, "cover");
    const auto n = static_cast<size_t>(N);
    require(A.shape(0) == n && A.shape(1) == n && order.shape(0) == n && order.shape(1) == n && cover.shape(0) == n,
            "the graph does not fit the number of kernels");
    for (long i = 0; i < N * N; ++i)
      require(order.data()[i] >= 0 && order.data()[i] < N, "the graph's order names a kernel that is not there");
    const auto *a = reinterpret_cast<const uint8_t *>(A.data());
    std::vector<int> out_start{0}, out_list, in_start{0}, in_list;
    for (long i = 0; i < N; ++i) {
      for (long j = 0; j < N; ++j) {
        if (a[i * N + j]) out_list.push_back(static_cast<int>(j));
        if (a[j * N + i]) in_list.push_back(static_cast<int>(j));
      }
      require(
          static_cast<int>(out_list.size()) > out_start.back() && static_cast<int>(in_list.size()) > in_start.back(),
          "a node of the graph has no neighbour");
      out_start.push_back(static_cast<int>(out_list.size()));
      in_start.push_back(static_cast<int>(in_list.size()));
    }
    return {N,
            order.data(),
            a,
            references_.padded_copy(cover.data(), N),
            references_.list(std::move(out_start)),
            references_.list(std::move(out_list)),
            references_.list(std::move(in_start)),
            references_.list(std::move(in_list))};
  }

 private:
  Reader part(const char *name) const {
    references_.objects.push_back(object_.attr(name));
    return {references_.objects.back(), references_};
  }

  nb::handle object_;
  References &references_;
};

}  // namespace omkl
