// Visitors of a State. State::visit names every array and number of a state once; what is done with them is here:
// Binder points a state at the arrays of a Python state, Numbers collects its numbers for Python, and Record
// (record.hpp) lays a state out as one row of doubles.
//
// A visitor has
//   padded_array(name, pointer, shape)           rows padded to whole registers, as omkl.arrays.padded makes them
//   array(name, pointer, shape)                  contiguous; of double, int64_t, or uint8_t for Python's bool
//   growing_array(name, pointer, shape, capacity)  one more axis, of whole registers, longer than what is used
//   rows_array(name, pointer, rows, shape)       contiguous, as many rows of this shape as there are; of double,
//   int64_t
//                                                or uint8_t for Python's uint8
//   triangles(name, pointer, shape)              padded_array of square matrices with zeros above the diagonal
//   used_rows(name, pointer, shape)              array, of which an ExpertSet uses as many rows as it has learned
//   used_columns(name, pointer, shape)           the same for the columns of a matrix
//   number(name, value)                          int64_t or double
//   begin_set(age), end_set()                    around the arrays of an ExpertSet, which are unused below an age of 0
//   part(name, part, problem)                    calls part.visit(problem, visitor); "sets.0" is state.sets[0] in
//   Python
#pragma once
#include <algorithm>
#include <cctype>
#include <string>
#include <type_traits>

#include "python.hpp"
#include "whole_arrays.hpp"

namespace omkl {

// Part names: what Python calls a part of a state, with a dot between an object and its attribute or element.
template <class Visitor>
class Nested : public WholeArrays<Visitor> {
 public:
  template <class Part, class Problem>
  void part(const char *name, Part &part, const Problem &problem) {
    auto &self = static_cast<Visitor &>(*this);
    auto outer = self.enter(name);
    part.visit(problem, self);
    self.leave(outer);
  }
};

class Binder : public Nested<Binder> {
 public:
  Binder(nb::handle state, References &references) : object_(nb::borrow<nb::object>(state)), references_(references) {}

  void padded_array(const char *name, double *&pointer, Shape shape) {
    auto a = references_.array<nb::ndarray<double, nb::device::cpu>>(object_, name);
    if (!has_shape(a, shape) || !is_padded(a))
      throw nb::value_error(
          (std::string(name) + " must have shape " + text(shape) + " and be laid out by omkl.arrays.padded").c_str());
    pointer = a.data();
  }

  template <class T>
  void array(const char *name, T *&pointer, Shape shape) {
    using Element = std::conditional_t<std::is_same_v<T, uint8_t>, bool, T>;
    auto a = references_.array<nb::ndarray<Element, nb::c_contig, nb::device::cpu>>(object_, name);
    if (!has_shape(a, shape)) throw nb::value_error((std::string(name) + " must have shape " + text(shape)).c_str());
    pointer = reinterpret_cast<T *>(a.data());
  }

  void growing_array(const char *name, double *&pointer, Shape shape, int64_t &capacity) {
    auto a = references_.array<nb::ndarray<double, nb::c_contig, nb::device::cpu>>(object_, name);
    bool right = a.ndim() == shape.size() + 1 && is_padded(a);
    size_t k = 0;
    for (auto n = shape.begin(); right && n != shape.end(); ++n) right = a.shape(k++) == static_cast<size_t>(*n);
    const auto columns = right ? static_cast<int64_t>(a.shape(k)) : 0;
    if (capacity_ < 0) capacity_ = columns;
    if (!right || columns % LANES || columns != capacity_)
      throw nb::value_error("arrays that grow must have one capacity, of whole registers");
    pointer = a.data();
    capacity = columns;
  }

  template <class T>
  void rows_array(const char *name, T *&pointer, int64_t &rows, Shape shape) {
    auto a = references_.array<nb::ndarray<T, nb::c_contig, nb::device::cpu>>(object_, name);
    bool right = a.ndim() == shape.size() + 1;
    size_t k = 1;
    for (auto n = shape.begin(); right && n != shape.end(); ++n) right = a.shape(k++) == static_cast<size_t>(*n);
    if (!right) throw nb::value_error((std::string(name) + " must have rows of shape " + text(shape)).c_str());
    pointer = a.data();
    rows = static_cast<int64_t>(a.shape(0));
  }

  template <class T>
  void number(const char *name, T &value) {
    value = nb::cast<T>(object_.attr(name));
  }

  nb::object enter(const char *name) {
    nb::object outer = object_;
    const std::string path = name;
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find('.', start), path.size());
      const std::string step = path.substr(start, end - start);
      object_ = std::isdigit(static_cast<unsigned char>(step[0])) ? nb::object(object_[std::stol(step)])
                                                                  : nb::object(object_.attr(step.c_str()));
      start = end + 1;
    }
    return outer;
  }
  void leave(const nb::object &outer) { object_ = outer; }

 private:
  nb::object object_;
  References &references_;
  int64_t capacity_ = -1;
};

class Numbers : public Nested<Numbers> {
 public:
  nb::dict numbers;  // by the name of the number, with those of the parts it belongs to before it

  template <class T>
  void number(const char *name, T &value) {
    numbers[(prefix_ + name).c_str()] = value;
  }
  template <class T>
  void array(const char *, T *&, Shape) {}
  void padded_array(const char *, double *&, Shape) {}
  void growing_array(const char *, double *&, Shape, int64_t &) {}
  template <class T>
  void rows_array(const char *, T *&, int64_t &, Shape) {}

  std::string enter(const char *name) {
    std::string outer = prefix_;
    prefix_ += std::string(name) + ".";
    return outer;
  }
  void leave(const std::string &outer) { prefix_ = outer; }

 private:
  std::string prefix_;
};

}  // namespace omkl
