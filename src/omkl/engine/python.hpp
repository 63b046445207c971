// Python's Problem and State as C++ sees them: pointers into NumPy's arrays, and the references that keep these alive.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

#include "reader.hpp"

namespace omkl {

namespace nb = nanobind;

using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstMatrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

using Shape = std::initializer_list<long>;

// Keeps the memory alive that a Problem or a State points into: Python objects, and arrays derived from them.
struct References : Storage {
  std::vector<nb::object> objects;

  template <class Array>
  Array array(nb::handle owner, const char *name) {
    nb::object object = owner.attr(name);
    Array array;
    if (!nb::try_cast(object, array, false)) {
      using Element = std::remove_const_t<typename Array::Scalar>;
      const char *type = std::is_same_v<Element, double>    ? "float64"
                         : std::is_same_v<Element, bool>    ? "bool"
                         : std::is_same_v<Element, uint8_t> ? "uint8"
                                                            : "int64";
      throw nb::type_error((std::string(name) + " must be an array of " + type + " in C order").c_str());
    }
    objects.push_back(object);
    return array;
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

// Reads the attributes of a Python object: what Problem::read is called with.
class Reader : public ProblemReader<Reader> {
 public:
  Reader(nb::handle object, References &references)
      : ProblemReader(references), object_(object), references_(references) {}

  double number(const char *name) const { return nb::cast<double>(object_.attr(name)); }
  int64_t whole(const char *name) const { return nb::cast<int64_t>(object_.attr(name)); }
  bool flag(const char *name) const { return nb::cast<bool>(object_.attr(name)); }
  bool is_none(const char *name) const { return object_.attr(name).is_none(); }
  std::string text(const char *name) const { return nb::cast<std::string>(object_.attr(name)); }
  std::vector<double> doubles(const char *name) const { return nb::cast<std::vector<double>>(object_.attr(name)); }
  std::vector<int> integers(const char *name) const { return nb::cast<std::vector<int>>(object_.attr(name)); }

  List<double> vector(const char *name) {
    auto a = references_.array<ConstVector>(object_, name);
    return {a.data(), static_cast<long>(a.shape(0))};
  }

  // Of int64_t, or uint8_t for Python's bool.
  template <class T>
  const T *matrix(const char *name, long rows, long columns, const char *message) {
    using Element = std::conditional_t<std::is_same_v<T, uint8_t>, bool, T>;
    auto a = references_.array<nb::ndarray<const Element, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(object_, name);
    require(has_shape(a, {rows, columns}), message);
    return reinterpret_cast<const T *>(a.data());
  }

  Tensor tensor(const char *name) {
    auto V = references_.array<nb::ndarray<const double, nb::ndim<3>, nb::device::cpu>>(object_, name);
    const long N = static_cast<long>(V.shape(0)), d = static_cast<long>(V.shape(1)), D = static_cast<long>(V.shape(2));
    const long P = padded(D);
    const bool one_row = N == 1 && d == 1;  // whose strides do not tell whether anything follows it
    if (is_padded(V) && !(one_row && D != P)) return {N, d, D, V.data()};
    double *copy = references_.zeros(N * d * P);
    for (long i = 0; i < N; ++i)
      for (long k = 0; k < d; ++k)
        for (long j = 0; j < D; ++j)
          copy[(i * d + k) * P + j] = V.data()[i * V.stride(0) + k * V.stride(1) + j * V.stride(2)];
    return {N, d, D, copy};
  }

  Reader part(const char *name) const {
    references_.objects.push_back(object_.attr(name));
    return {references_.objects.back(), references_};
  }

 private:
  nb::handle object_;
  References &references_;
};

}  // namespace omkl
