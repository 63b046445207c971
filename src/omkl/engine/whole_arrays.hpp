// What a visitor of states does with what is said about the use of their arrays, unless it leaves out the rest:
// nothing.
#pragma once
#include <cstdint>
#include <initializer_list>

namespace omkl {

template <class Visitor>
class WholeArrays {
 public:
  void triangles(const char *name, double *&pointer, std::initializer_list<long> shape) {
    static_cast<Visitor &>(*this).padded_array(name, pointer, shape);
  }
  template <class T>
  void used_rows(const char *name, T *&pointer, std::initializer_list<long> shape) {
    static_cast<Visitor &>(*this).array(name, pointer, shape);
  }
  template <class T>
  void used_columns(const char *name, T *&pointer, std::initializer_list<long> shape) {
    static_cast<Visitor &>(*this).array(name, pointer, shape);
  }
  void begin_set(int64_t) {}
  void end_set() {}
};

}  // namespace omkl
