// A state as one row of doubles: the visitor that lists the parts of such a record, loads a state from it or stores it.
#pragma once
#include <concepts>
#include <stdexcept>
#include <string>
#include <vector>

#include "visitors.hpp"

namespace omkl {

// Arrays start on a register and are padded to whole ones; numbers follow each other.
class Record : public Nested<Record> {
 public:
  enum class Mode { list, load, store };
  struct Part {
    std::string name;
    const char *kind;
    long at;  // in doubles
    std::vector<long> shape;
    bool plain;  // its rows are not padded
  };

  explicit Record(Mode mode, double *record = nullptr) : mode_(mode), record_(record) {}

  std::vector<Part> parts;  // in mode list

  long size() const { return padded(at_); }

  void padded_array(const char *name, double *&pointer, Shape shape) {
    long rows = 1, last = 1;
    for (long n : shape) rows *= last, last = n;
    pointer = place(name, "float", shape, rows * padded(last), false);
  }

  template <class T>
  void array(const char *name, T *&pointer, Shape shape) {
    constexpr const char *kind = std::same_as<T, double> ? "float" : std::same_as<T, int64_t> ? "int" : "bool";
    constexpr long per_double = static_cast<long>(sizeof(double) / sizeof(T));
    long size = 1;
    for (long n : shape) size *= n;
    const long doubles = padded((size + per_double - 1) / per_double);
    pointer = reinterpret_cast<T *>(place(name, kind, shape, doubles, true));
  }

  // There are none: what can become longer has no place in a record.
  template <class T>
  void rows_array(const char *, T *&pointer, int64_t &rows, Shape) {
    pointer = nullptr, rows = 0;
  }

  template <class T>
  void number(const char *name, T &value) {
    static_assert(sizeof(T) == sizeof(double));
    if (mode_ == Mode::list)
      parts.push_back({prefix_ + name, std::same_as<T, double> ? "float" : "int", at_, {}, false});
    if (mode_ == Mode::load) value = reinterpret_cast<T *>(record_)[at_];
    if (mode_ == Mode::store) reinterpret_cast<T *>(record_)[at_] = value;
    ++at_;
  }

  std::string enter(const char *name) {
    if (mode_ != Mode::list) return {};
    std::string outer = prefix_;
    prefix_ += std::string(name) + ".";
    return outer;
  }
  void leave(const std::string &outer) { prefix_ = outer; }

 private:
  double *place(const char *name, const char *kind, Shape shape, long doubles, bool plain) {
    at_ = padded(at_);
    const long start = at_;
    if (mode_ == Mode::list) parts.push_back({prefix_ + name, kind, start, shape, plain});
    at_ += doubles;
    return mode_ == Mode::list ? nullptr : record_ + start;
  }

  Mode mode_;
  double *record_;
  long at_ = 0;
  std::string prefix_;
};

}  // namespace omkl
