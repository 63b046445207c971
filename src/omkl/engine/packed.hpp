// Keys of a fleet whose states differ in size. All that a key has learned is one array of doubles without what is not
// used: a set of experts that is not there, rows that have not come, and what is 0 in a triangular matrix. It is
// unpacked into working memory, where rows are learned, and packed again.
#pragma once
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "fleet.hpp"

namespace omkl {

// Copies a state between its arrays and a packed one, or measures how long that would be. A packed array that is too
// short is noticed.
class Packed : public Nested<Packed> {
 public:
  enum class Mode { measure, load, store };

  explicit Packed(Mode mode, double *packed = nullptr, long size = 0) : mode_(mode), packed_(packed), size_(size) {}

  long size() const { return at_; }
  bool fits() const { return at_ == size_; }

  void padded_array(const char *, double *&pointer, Shape shape) {
    long rows = 1, last = 1;
    for (long n : shape) rows *= last, last = n;
    for (long i = 0; i < rows; ++i) copy(pointer + i * padded(last), last, last);
  }
  void triangles(const char *, double *&pointer, Shape shape) {
    const auto [rows, n] = rows_of(shape);
    for (long i = 0; i < rows; ++i) copy(pointer + i * padded(n), i % n + 1, i % n + 1);
  }
  template <class T>
  void array(const char *, T *&pointer, Shape shape) {
    const auto [rows, n] = rows_of(shape);
    copy(pointer, rows * n, rows * n);
  }
  template <class T>
  void used_rows(const char *, T *&pointer, Shape shape) {
    long size = 1;
    for (long n : shape) size *= n;
    const long all = *shape.begin();
    copy(pointer, all ? size / all * used(all) : 0, size);
  }
  template <class T>
  void used_columns(const char *, T *&pointer, Shape shape) {
    const auto [rows, n] = rows_of(shape);
    for (long i = 0; i < rows; ++i) copy(pointer + i * n, used(n), n);
  }
  template <class T>
  void rows_array(const char *, T *&, int64_t &, Shape) {}
  template <class T>
  void number(const char *, T &value) {
    T *pointer = &value;
    copy(pointer, 1, 1);
  }
  void begin_set(int64_t age) { age_ = age; }
  void end_set() { age_ = 0; }
  int enter(const char *) { return 0; }
  void leave(int) {}

 private:
  struct Rows {
    long rows, n;
  };
  static Rows rows_of(Shape shape) {
    Rows all{1, 1};
    for (long n : shape) all.rows *= all.n, all.n = n;
    return all;
  }
  long used(long n) const { return age_ < n ? static_cast<long>(age_) : n; }

  // `used` of n values; the others are 0.
  template <class T>
  void copy(T *values, long used, long n) {
    if (age_ < 0) return;
    const size_t bytes = static_cast<size_t>(used) * sizeof(T);
    const long doubles = static_cast<long>((bytes + sizeof(double) - 1) / sizeof(double));
    const bool room = at_ <= size_ && doubles <= size_ - at_;
    if (mode_ == Mode::load && room) {
      if (bytes) memcpy(values, packed_ + at_, bytes);
      for (long i = used; i < n; ++i) values[i] = 0;
    }
    if (mode_ == Mode::store && room && bytes) {
      packed_[at_ + doubles - 1] = 0;
      memcpy(packed_ + at_, values, bytes);
    }
    at_ += doubles;
  }

  Mode mode_;
  double *packed_;
  long size_, at_ = 0;
  int64_t age_ = 0;  // of the set that is visited
};

// A key in working memory.
template <class Engine>
class Workbench {
 public:
  explicit Workbench(const Engine &engine) : problem_(engine.problem) {
    Record sizes(Record::Mode::list);
    key.visit(problem_, sizes);
    memory_.resize(static_cast<size_t>(sizes.size() + LANES));
    Record load(Record::Mode::load, aligned(memory_.data()));
    key.visit(problem_, load);
  }

  // False where this is no packed state of the problem; nothing is read or written beyond arrays then.
  bool load(const double *packed, long size) {
    Packed from(Packed::Mode::load, const_cast<double *>(packed), size);  // which it only reads
    key.visit(problem_, from);
    constexpr bool has_indices = requires { key.state.valid(problem_); };
    bool right = from.fits();
    if constexpr (has_indices) right = right && key.state.valid(problem_);
    return right;
  }
  long size() {
    Packed measure(Packed::Mode::measure);
    key.visit(problem_, measure);
    return measure.size();
  }
  void store(double *packed, long size) {
    Packed to(Packed::Mode::store, packed, size);
    key.visit(problem_, to);
  }

  typename Engine::Key key;

 private:
  const typename Engine::Problem &problem_;
  std::vector<double> memory_;
};

using PackedKeys = std::vector<Vector>;

// A key whose packed array has another length now.
struct Resized {
  size_t group;
  long size;
  std::unique_ptr<double[]> packed;
};

struct Outcome {
  long done = 0;   // keys, the first of the batch
  long row = -1;   // that diverged
  bool fits = true;  // the next key's packed array
  std::vector<Resized> resized;
};

// Stops at a key that diverges, which stays as it was, and where there is too little memory for one.
template <class Engine>
Outcome run_packed(const Engine &engine, const PackedKeys &keys, const int64_t *starts, const int64_t *order,
                   const double *X, const double *y, bool scaled, double *out) {
  Rows rows(engine, order, X, y, scaled, out);
  Workbench<Engine> bench(engine);
  Outcome outcome;
  outcome.resized.reserve(keys.size());
  for (size_t g = 0; g < keys.size(); ++g, ++outcome.done) {
    const long before = static_cast<long>(keys[g].shape(0));
    outcome.fits = bench.load(keys[g].data(), before);
    if (!outcome.fits) break;
    outcome.row = rows.learn(bench.key, starts[g], starts[g + 1]);
    if (outcome.row >= 0) break;
    const long size = bench.size();
    if (size == before) {
      bench.store(keys[g].data(), size);
    } else {
      std::unique_ptr<double[]> packed(new (std::nothrow) double[static_cast<size_t>(size)]);
      if (!packed) break;
      bench.store(packed.get(), size);
      outcome.resized.push_back({g, size, std::move(packed)});
    }
  }
  return outcome;
}

inline nb::object as_array(std::unique_ptr<double[]> values, long size) {
  double *data = values.release();
  const nb::capsule owner(data, [](void *p) noexcept { delete[] static_cast<double *>(p); });
  return nb::cast(nb::ndarray<nb::numpy, double, nb::ndim<1>>(data, {static_cast<size_t>(size)}, owner));
}

// The functions of an engine whose states can be packed.
template <class Engine, class Class>
void bind_packed(Class &engine_class) {
  using namespace nb::literals;
  using Memory = typename Engine::BoundMemory;

  engine_class
      .def(
          "pack",
          [](const Engine &self, Memory &memory, Vector inputs, Vector target, Words words) {
            typename Engine::Key key = self.key_of(memory, inputs, target, words);
            Packed measure(Packed::Mode::measure);
            key.visit(self.problem, measure);
            std::unique_ptr<double[]> packed(new double[static_cast<size_t>(measure.size())]);
            Packed to(Packed::Mode::store, packed.get(), measure.size());
            key.visit(self.problem, to);
            return as_array(std::move(packed), measure.size());
          },
          "memory"_a, "inputs"_a.noconvert(), "target"_a.noconvert(), "words"_a.noconvert())
      .def(
          "unpack",
          [](const Engine &self, Vector packed, Memory &memory, Vector inputs, Vector target, Words words) {
            typename Engine::Key key = self.key_of(memory, inputs, target, words);
            Packed from(Packed::Mode::load, packed.data(), static_cast<long>(packed.shape(0)));
            key.visit(self.problem, from);
            constexpr bool has_indices = requires { key.state.valid(self.problem); };
            bool right = from.fits();
            if constexpr (has_indices) right = right && key.state.valid(self.problem);
            if (!right) throw nb::value_error("what a key has learned does not fit the problem");
            memory.state = key.state;
            memory.predicted = 0;
            words.data()[0] = key.evaluations;
            for (long i = 0; i < 4; ++i) words.data()[1 + i] = key.generator.words[i];
          },
          "packed"_a, "memory"_a, "inputs"_a.noconvert(), "target"_a.noconvert(), "words"_a.noconvert())
      .def(
          "run_packed",
          [](const Engine &self, const PackedKeys &keys, Places starts, Places order, ConstMatrix X, ConstVector y,
             bool scaled, Vector out) {
            self.require_rows(keys.size(), starts, order, X, out);
            if (y.shape(0) != X.shape(0)) throw nb::value_error("X and y must have as many rows");
            self.require_labels(y.data(), y.shape(0));
            Outcome outcome;
            {
              nb::gil_scoped_release release;
              outcome = run_packed(self, keys, starts.data(), order.data(), X.data(), y.data(), scaled, out.data());
            }
            if (!outcome.fits) throw nb::value_error("what a key has learned does not fit the problem");
            nb::list resized;
            for (Resized &key : outcome.resized)
              resized.append(nb::make_tuple(key.group, as_array(std::move(key.packed), key.size)));
            return nb::make_tuple(outcome.done, outcome.row, resized);
          },
          "keys"_a.noconvert(), "starts"_a, "order"_a, "X"_a, "y"_a, "scaled"_a, "out"_a.noconvert())
      .def(
          "predict_packed",
          [](const Engine &self, const PackedKeys &keys, Places starts, Places order, ConstMatrix X, bool scaled,
             Vector out) {
            self.require_rows(keys.size(), starts, order, X, out);
            bool right = true;
            {
              nb::gil_scoped_release release;
              Rows rows(self, order.data(), X.data(), nullptr, scaled, out.data());
              Workbench<Engine> bench(self);
              for (size_t g = 0; right && g < keys.size(); ++g) {
                right = bench.load(keys[g].data(), static_cast<long>(keys[g].shape(0)));
                if (right) rows.predict(bench.key, starts.data()[g], starts.data()[g + 1]);
              }
            }
            if (!right) throw nb::value_error("what a key has learned does not fit the problem");
          },
          "keys"_a.noconvert(), "starts"_a, "order"_a, "X"_a, "scaled"_a, "out"_a.noconvert());
}

}  // namespace omkl
