// The engine without Python: runs every algorithm on every instruction set and compares with what cases.py computed
// with NumPy. So it can run where Python cannot, for instance on an emulated machine.
//
// self_test FILE: prints how much was compared; every difference is an error.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <initializer_list>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "isa.hpp"
#include "reader.hpp"
#include "table.hpp"
#include "whole_arrays.hpp"

namespace omkl {

OMKL_DECLARE_ISA(const Table table)

namespace {

const Table &table(const std::string &isa) { return OMKL_SELECT_ISA(isa, table); }

using Shape = std::vector<long>;

long size_of(const Shape &shape) {
  long size = 1;
  for (long n : shape) size *= n;
  return size;
}

// An array, number or text of the file; the vector of its type has the elements.
struct Value {
  Shape shape;
  std::vector<double> doubles;
  std::vector<int64_t> wholes;
  std::vector<uint8_t> flags;
  std::string text;
  bool none = false;

  template <class T>
  std::vector<T> &of() {
    if constexpr (std::is_same_v<T, double>)
      return doubles;
    else if constexpr (std::is_same_v<T, int64_t>)
      return wholes;
    else
      return flags;
  }
};

class Values {
 public:
  // Those of the next case; false at the end of the file. A value is a line with its name, type and shape, and bytes.
  bool read(std::istream &file) {
    values_.clear();
    std::string line;
    while (std::getline(file, line) && line != "end") {
      std::istringstream words(line);
      std::string name, type;
      words >> name >> type;
      Value &value = values_[name];
      for (long n; words >> n;) value.shape.push_back(n);
      const auto size = static_cast<size_t>(size_of(value.shape));
      const auto fill = [&](auto &elements) {
        elements.resize(size);
        file.read(reinterpret_cast<char *>(elements.data()), static_cast<long>(size * sizeof elements[0]));
      };
      if (type == "float") fill(value.doubles);
      if (type == "int") fill(value.wholes);
      if (type == "bool") fill(value.flags);
      if (type == "text") fill(value.text);
      value.none = type == "none";
      if (!file) throw std::runtime_error("the file ends within " + name);
    }
    return !values_.empty();
  }

  Value &at(const std::string &name) {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::runtime_error("there is no value " + name);
    return found->second;
  }

  Value &at(const std::string &name, const Shape &shape) {
    Value &value = at(name);
    if (value.shape != shape) throw std::runtime_error(name + " has another shape");
    return value;
  }

 private:
  std::map<std::string, Value> values_;
};

class CaseReader : public ProblemReader<CaseReader> {
 public:
  CaseReader(Values &values, Storage &storage, std::string prefix)
      : ProblemReader(storage), values_(values), storage_(storage), prefix_(std::move(prefix)) {}

  double number(const char *name) const {
    const Value &v = value(name);
    return v.doubles.empty() ? static_cast<double>(v.wholes.at(0)) : v.doubles[0];
  }
  int64_t whole(const char *name) const { return value(name).wholes.at(0); }
  bool flag(const char *name) const { return value(name).flags.at(0); }
  bool is_none(const char *name) const { return value(name).none; }
  std::string text(const char *name) const { return value(name).text; }
  std::vector<double> doubles(const char *name) const { return value(name).doubles; }
  std::vector<int> integers(const char *name) const {
    std::vector<int> all;
    for (int64_t n : value(name).wholes) all.push_back(static_cast<int>(n));
    return all;
  }

  List<double> vector(const char *name) const {
    const Value &v = value(name);
    return {v.doubles.data(), static_cast<long>(v.doubles.size())};
  }
  template <class T>
  const T *matrix(const char *name, long rows, long columns, const char *) const {
    return values_.at(prefix_ + name, {rows, columns}).of<T>().data();
  }
  Tensor tensor(const char *name) const {
    const Value &v = value(name);
    const long N = v.shape.at(0), d = v.shape.at(1), D = v.shape.at(2);
    double *rows = storage_.zeros(N * d * padded(D));
    for (long i = 0; i < N * d * D; ++i) rows[i / D * padded(D) + i % D] = v.doubles[static_cast<size_t>(i)];
    return {N, d, D, rows};
  }

  CaseReader part(const char *name) const { return {values_, storage_, prefix_ + name + "."}; }

 private:
  Value &value(const char *name) const { return values_.at(prefix_ + name); }

  Values &values_;
  Storage &storage_;
  std::string prefix_;
};

// What both visitors of a State have: the values of its parts by their names.
template <class Visitor>
class StateVisitor : public WholeArrays<Visitor> {
 public:
  StateVisitor(Values &values, std::string prefix) : values_(values), prefix_(std::move(prefix)) {}

  template <class Part, class Problem>
  void part(const char *name, Part &part, const Problem &problem) {
    const std::string outer = prefix_;
    prefix_ += std::string(name) + ".";
    part.visit(problem, static_cast<Visitor &>(*this));
    prefix_ = outer;
  }

 protected:
  Values &values_;
  std::string prefix_;
};

// Points a State at the values. Rows are padded where the engine reads whole registers; other arrays end where their
// memory ends, so that AddressSanitizer sees what is read beyond.
class Loader : public StateVisitor<Loader> {
 public:
  Loader(Values &values, Storage &storage, long room)
      : StateVisitor(values, "before."), storage_(storage), room_(room) {}

  void padded_array(const char *name, double *&pointer, std::initializer_list<long> shape) {
    pointer = in_rows(values_.at(prefix_ + name, shape), padded(*(shape.end() - 1)));
  }
  template <class T>
  void array(const char *name, T *&pointer, std::initializer_list<long> shape) {
    pointer = values_.at(prefix_ + name, shape).of<T>().data();
  }
  void growing_array(const char *name, double *&pointer, std::initializer_list<long>, int64_t &capacity) {
    const Value &value = values_.at(prefix_ + name);
    capacity = padded(value.shape.back() + room_);
    pointer = in_rows(value, capacity);
  }
  template <class T>
  void rows_array(const char *name, T *&pointer, int64_t &rows, std::initializer_list<long>) {
    Value &value = values_.at(prefix_ + name);
    rows = value.shape.front();
    pointer = value.of<T>().data();
  }
  template <class T>
  void number(const char *name, T &value) {
    value = values_.at(prefix_ + name).of<T>().at(0);
  }

 private:
  double *in_rows(const Value &value, long stride) {
    const long length = value.shape.back(), size = size_of(value.shape);
    double *rows = storage_.zeros(size_of({value.shape.begin(), value.shape.end() - 1}) * stride);
    for (long i = 0; i < size; ++i) rows[i / length * stride + i % length] = value.doubles[static_cast<size_t>(i)];
    return rows;
  }

  Storage &storage_;
  long room_;
};

struct Report {
  long numbers = 0, wrong = 0;
  double largest = 0;  // difference, relative to max(1, size)
};

constexpr double TOLERANCE = 1e-12;

// Compares a State, and what a run returned, with the values.
class Comparison : public StateVisitor<Comparison> {
 public:
  Comparison(Values &values, Report &report, std::string title)
      : StateVisitor(values, "after."), report_(report), title_(std::move(title)) {}

  // Within 1e-12 of each other, relative to max(1, size); whole numbers and what is not finite must be the same.
  template <class T>
  void compare(const std::string &name, T found, T wanted, double size) {
    ++report_.numbers;
    const auto a = static_cast<double>(found), b = static_cast<double>(wanted);
    if (found == wanted || (std::isnan(a) && std::isnan(b))) return;
    const double off = std::is_same_v<T, double> ? std::fabs(a - b) / std::max(1.0, size) : HUGE_VAL;
    if (!(off <= TOLERANCE)) {
      ++report_.wrong;
      std::printf("%s: %s is %.17g instead of %.17g\n", title_.c_str(), name.c_str(), a, b);
    }
    report_.largest = std::max(report_.largest, off);
  }

  // Each number by its own size.
  template <class T>
  void compare_all(const std::string &name, const T *found, const std::vector<T> &wanted) {
    for (const T &want : wanted) compare(name, *found++, want, std::fabs(static_cast<double>(want)));
  }

  void padded_array(const char *name, const double *pointer, std::initializer_list<long> shape) {
    compare_rows(name, pointer, shape, padded(*(shape.end() - 1)));
  }
  template <class T>
  void array(const char *name, const T *pointer, std::initializer_list<long> shape) {
    compare_all(prefix_ + name, pointer, values_.at(prefix_ + name, shape).of<T>());
  }
  void growing_array(const char *name, const double *pointer, std::initializer_list<long>, int64_t capacity) {
    compare_rows(name, pointer, values_.at(prefix_ + name).shape, capacity);
  }
  template <class T>
  void rows_array(const char *name, const T *pointer, int64_t, std::initializer_list<long>) {
    compare_all(prefix_ + name, pointer, values_.at(prefix_ + name).of<T>());
  }
  template <class T>
  void number(const char *name, const T &value) {
    array(name, &value, {});
  }

 private:
  // By the size of the largest, because each row of coefficients or of a factor counts as a whole.
  void compare_rows(const char *name, const double *found, const Shape &shape, long stride) {
    const Value &wanted = values_.at(prefix_ + name, shape);
    double size = 0;
    for (double want : wanted.doubles) size = std::max(size, std::fabs(want));
    const long length = shape.back();
    for (long i = 0; i < size_of(shape); ++i)
      compare(prefix_ + name, found[i / length * stride + i % length], wanted.doubles[static_cast<size_t>(i)], size);
  }

  Report &report_;
  std::string title_;
};

// `values` is a copy: the State is bound to it and changes it.
template <class Problem, class State>
void check(const Loop<Problem, State> &loop, Values values, const std::string &isa, Report &report) {
  Storage storage;
  Problem problem{};
  CaseReader reader(values, storage, "problem.");
  problem.read(reader);
  const std::vector<double> &y = values.at("y").doubles;
  const auto rows = static_cast<long>(y.size());
  State state{};
  Loader loader(values, storage, rows);
  state.visit(problem, loader);

  Comparison comparison(values, report, values.at("case").text + " on " + isa);
  Scratch scratch = working_memory(problem);
  const std::vector<double> &X = values.at("X", {rows, inputs(problem)}).doubles;
  const std::vector<double> &wanted = values.at("predictions", {values.at("done").wholes[0], outputs(problem)}).doubles;
  std::vector<double> out(static_cast<size_t>(rows * outputs(problem))),
      extra(static_cast<size_t>(rows * extras(problem)));
  loop.predict(problem, state, scratch, X.data(), out.data());
  if (!wanted.empty())
    comparison.compare_all("first prediction", out.data(), {wanted.begin(), wanted.begin() + outputs(problem)});

  const std::vector<double> &uniform = values.at("uniforms", {rows, uniforms(problem)}).doubles;
  const Value &weight = values.at("weight");
  Chunk chunk{rows,       X.data(), y.data(), uniform.data(), weight.none ? nullptr : weight.doubles.data(),
              out.data(), 0,        0};
  chunk.extra = extra.data();
  loop.run(problem, state, scratch, chunk);
  comparison.compare("rows learned", int64_t{chunk.done}, values.at("done").wholes[0], 0);
  comparison.compare("kernels evaluated", int64_t{chunk.evaluated}, values.at("evaluated").wholes[0], 0);
  comparison.compare_all("prediction", out.data(), wanted);
  comparison.compare_all("extra", extra.data(), values.at("extra").doubles);
  state.visit(problem, comparison);
}

// all_at_most against its definition, with one value out of range at every place.
void check_limits(const Table &functions, Report &report) {
  for (size_t n = 0; n < 70; ++n)
    for (double beyond : {1.5, -1.5, HUGE_VAL, std::nan("")})
      for (size_t at = 0; at <= n; ++at) {
        std::vector<double> values(n, -1.0);
        if (at < n) values[at] = beyond;
        ++report.numbers;
        report.wrong += functions.all_at_most(values.data(), static_cast<long>(n), 1.0) != (at == n);
      }
}

int main_of(const char *path) {
  std::map<std::string, Report> reports;
  for (const std::string &isa : supported()) check_limits(table(isa), reports[isa]);
  std::ifstream file(path, std::ios::binary);
  long cases = 0;
  for (Values values; values.read(file); ++cases)
    for (const std::string &isa : supported()) {
      const std::string algorithm = values.at("algorithm").text;
      bool known = false;
#define OMKL_CHECK(NAME, TEXT) \
  if (algorithm == TEXT) known = true, check(table(isa).NAME, values, isa, reports[isa]);
      OMKL_ALGORITHMS(OMKL_CHECK)
#undef OMKL_CHECK
      if (!known) throw std::runtime_error("there is no algorithm " + algorithm);
    }
  bool right = cases > 0;
  for (const auto &[isa, report] : reports) {
    std::printf("%s: %ld cases, %ld numbers, %ld wrong, largest difference %.2g\n", isa.c_str(), cases, report.numbers,
                report.wrong, report.largest);
    right = right && !report.wrong;
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace omkl

int main(int arguments, char **values) {
  try {
    if (arguments == 2) return omkl::main_of(values[1]);
    std::fprintf(stderr, "usage: self_test FILE\n");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "self_test: %s\n", error.what());
  }
  return 2;
}
