// Many keys on one problem. All that a key has become lies in one record, a row of doubles: the statistics of
// its inputs and its target, its state and its generator. One call runs many keys.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "problem.hpp"
#include "scaling.hpp"
#include "views.hpp"

namespace omkl {

// Hands out the parts of a record in their order; arrays start on a register and are padded to whole ones.
// One walk serves to list the parts, to load a key from its record and to store it again.
struct Parts {
  enum class Mode { list, load, store };
  struct Part {
    const char *name, *kind;
    long at;
    std::vector<long> shape;
  };

  Mode mode;
  double *record;
  long at = 0;
  std::vector<Part> listing{};

  double *doubles(const char *name, std::initializer_list<long> shape) { return take(name, "float", shape, 1); }
  int64_t *wholes(const char *name, long n) { return reinterpret_cast<int64_t *>(take(name, "int", {n}, 1)); }
  uint8_t *bits(const char *name, long n) { return reinterpret_cast<uint8_t *>(take(name, "bool", {n}, 8)); }

  void number(const char *name, int64_t &value) {
    if (mode == Mode::list) listing.push_back({name, "int", at, {}});
    if (mode == Mode::load) value = reinterpret_cast<int64_t *>(record)[at];
    if (mode == Mode::store) reinterpret_cast<int64_t *>(record)[at] = value;
    ++at;
  }

 private:
  double *take(const char *name, const char *kind, std::initializer_list<long> shape, long per_double) {
    at = padded(at);
    const long start = at;
    if (mode == Mode::list) listing.push_back({name, kind, start, shape});
    long rows = 1, last = 1;
    for (long n : shape) rows *= last, last = n;
    at += rows * padded((last + per_double - 1) / per_double);
    return mode == Mode::list ? nullptr : record + start;
  }
};

template <class Problem>
void lay_out(Raker::State &s, const Problem &p, Parts &parts) {
  s.theta = parts.doubles("theta", {p.V.N, 2, p.V.D});
  s.log_w = parts.doubles("log_w", {p.V.N});
  parts.number("t", s.t);
}
inline void lay_out(OmklGf::State &s, const OmklGf::Problem &p, Parts &parts) {
  s.theta = parts.doubles("theta", {p.V.N, 2, p.V.D});
  s.log_w = parts.doubles("log_w", {p.V.N});
  s.chosen = parts.bits("chosen", p.V.N);
  s.q = parts.doubles("q", {p.V.N});
  parts.number("t", s.t);
}
inline void lay_out(SfgMkl::State &s, const SfgMkl::Problem &p, Parts &parts) {
  s.theta = parts.doubles("theta", {p.V.N, 2, p.V.D});
  s.log_w = parts.doubles("log_w", {p.V.N});
  s.log_u = parts.doubles("log_u", {p.V.N});
  parts.number("node", s.node);
  parts.number("t", s.t);
}
inline void lay_out(SfgMklR::State &s, const SfgMklR::Problem &p, Parts &parts) {
  s.theta = parts.doubles("theta", {p.V.N, 2, p.V.D});
  s.log_w = parts.doubles("log_w", {p.V.N});
  s.log_u = parts.doubles("log_u", {p.V.N});
  s.d = parts.wholes("d", p.V.N);
  parts.number("node", s.node);
  parts.number("t", s.t);
}

// NumPy's PCG64 (XSL-RR on 128 bits): state and increment, high words before low ones.
struct Pcg64 {
  int64_t words[4];

  double uniform() {
    using wide = unsigned __int128;
    const auto join = [](int64_t high, int64_t low) {
      return static_cast<wide>(static_cast<uint64_t>(high)) << 64 | static_cast<uint64_t>(low);
    };
    const wide multiplier = static_cast<wide>(0x2360ED051FC65DA4) << 64 | 0x4385DF649FCCF645;
    const wide now = join(words[0], words[1]) * multiplier + join(words[2], words[3]);
    const auto high = static_cast<uint64_t>(now >> 64), low = static_cast<uint64_t>(now);
    words[0] = static_cast<int64_t>(high), words[1] = static_cast<int64_t>(low);
    const uint64_t folded = high ^ low, turn = high >> 58;
    return static_cast<double>((folded >> turn | folded << (-turn & 63)) >> 11) * 0x1p-53;
  }
};

template <class Algorithm>
struct Key {
  typename Algorithm::State state{};
  Columns inputs{}, target{};
  int64_t evaluations = 0;
  Pcg64 tape{};

  void walk(const typename Algorithm::Problem &problem, Parts &parts) {
    lay_out(state, problem, parts);
    inputs = {problem.V.d, parts.doubles("inputs", {3 * problem.V.d})};
    target = {1, parts.doubles("target", {3})};
    parts.number("evaluations", evaluations);
    parts.number("state_high", tape.words[0]);
    parts.number("state_low", tape.words[1]);
    parts.number("inc_high", tape.words[2]);
    parts.number("inc_low", tape.words[3]);
  }
  void load(const typename Algorithm::Problem &problem, double *record) {
    Parts parts{Parts::Mode::load, record};
    walk(problem, parts);
  }
  void store(const typename Algorithm::Problem &problem, double *record) {
    Parts parts{Parts::Mode::store, record};
    walk(problem, parts);
  }
};

// Rows of many keys: group g is record slots[g] and its rows order[starts[g]], ..., order[starts[g + 1] - 1].
struct Groups {
  using Places = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Block = Matrix;

  long count;
  const int64_t *slots, *starts, *order;
  std::vector<double *> blocks;
  long each = 0, size = 0;  // records of a block, doubles of a record

  Groups(const std::vector<Block> &blocks_, const Places &slots_, const Places &starts_, const Places &order_,
         long size_, size_t rows)
      : count(static_cast<long>(slots_.shape(0))),
        slots(slots_.data()),
        starts(starts_.data()),
        order(order_.data()),
        size(size_) {
    bool right = starts_.shape(0) == slots_.shape(0) + 1 && starts[0] >= 0 &&
                 starts[count] <= static_cast<int64_t>(order_.shape(0));
    for (const Block &block : blocks_) {
      each = static_cast<long>(blocks_[0].shape(0));
      right = right && block.shape(0) == blocks_[0].shape(0) && block.shape(1) == static_cast<size_t>(size) &&
              reinterpret_cast<uintptr_t>(block.data()) % 64 == 0;
      blocks.push_back(block.data());
    }
    const auto capacity = each * static_cast<int64_t>(blocks.size());
    for (long g = 0; right && g < count; ++g)
      right = starts[g] <= starts[g + 1] && slots[g] >= 0 && slots[g] < capacity;
    for (int64_t i = starts[0]; right && i < starts[count]; ++i)
      right = order[i] >= 0 && order[i] < static_cast<int64_t>(rows);
    if (!right) throw nb::value_error("blocks, slots, starts and order do not fit each other");
  }

  double *record(long g) const { return blocks[static_cast<size_t>(slots[g] / each)] + slots[g] % each * size; }
};

constexpr long PIECE = 256;  // rows of a key taken at a time

// The keys' rows, learned as the estimators learn them. Returns the row that diverged, or -1; rows of its key
// before it and keys before it are learned then, and the caller has what they were.
template <class Algorithm, class Engine>
long run_groups(const Engine &engine, const Groups &groups, const double *X, const double *y, long draws, bool scaled,
                double *out) {
  const long d = engine.problem.V.d;
  std::vector<double> memory(static_cast<size_t>(PIECE * (d + draws + 4)));
  double *xs = memory.data(), *r = xs + PIECE * d, *ys = r + PIECE * draws, *f = ys + PIECE, *shift = f + PIECE,
         *scale = shift + PIECE;
  Scratch scratch = engine.room();
  Key<Algorithm> key;
  for (long g = 0; g < groups.count; ++g) {
    key.load(engine.problem, groups.record(g));
    for (int64_t start = groups.starts[g]; start < groups.starts[g + 1]; start += PIECE) {
      const int64_t left = groups.starts[g + 1] - start;
      const long rows = static_cast<long>(left < PIECE ? left : PIECE);
      for (long i = 0; i < rows; ++i) {
        const int64_t row = groups.order[start + i];
        const double *x = X + row * d;
        if (scaled) {
          standardise(key.inputs, key.inputs, x, xs + i * d);
          shift[i] = key.target.mean(0);
          scale[i] = deviation(key.target.count(0), key.target.mean(0), key.target.square(0));
          standardise(key.target, key.target, y + row, ys + i);
        } else {
          for (long k = 0; k < d; ++k) xs[i * d + k] = x[k];
          ys[i] = y[row];
        }
        for (long k = 0; k < draws; ++k) r[i * draws + k] = key.tape.uniform();
      }
      Chunk chunk{rows, xs, ys, r, nullptr, f, 0, 0};
      engine.loop->run(engine.problem, key.state, scratch, chunk);
      key.evaluations += chunk.heard;
      for (long i = 0; i < chunk.done; ++i) out[groups.order[start + i]] = scaled ? shift[i] + scale[i] * f[i] : f[i];
      if (chunk.done < rows) return static_cast<long>(groups.order[start + chunk.done]);
    }
    key.store(engine.problem, groups.record(g));
  }
  return -1;
}

// Predictions from the keys as they are; records are only read.
template <class Algorithm, class Engine>
void predict_groups(const Engine &engine, const Groups &groups, const double *X, bool scaled, double *out) {
  const long d = engine.problem.V.d;
  std::vector<double> memory(static_cast<size_t>(4 * d));
  const Columns spare{d, memory.data()};
  double *xs = memory.data() + 3 * d;
  Scratch scratch = engine.room();
  Key<Algorithm> key;
  for (long g = 0; g < groups.count; ++g) {
    key.load(engine.problem, groups.record(g));
    const double shift = key.target.mean(0);
    const double scale = deviation(key.target.count(0), key.target.mean(0), key.target.square(0));
    for (int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
      const double *x = X + groups.order[i] * d;
      if (scaled) standardise(key.inputs, spare, x, xs);
      double f;
      engine.loop->predict(engine.problem, key.state, scratch, scaled ? xs : x, &f);
      out[groups.order[i]] = scaled ? shift + scale * f : f;
    }
  }
}

template <class Algorithm, class Engine>
Parts parts_of(const Engine &engine) {
  Parts parts{Parts::Mode::list, nullptr};
  Key<Algorithm> key;
  key.walk(engine.problem, parts);
  parts.at = padded(parts.at);
  return parts;
}

// Only learners whose state has one size and whose prediction is one number lie in records.
template <class Algorithm, class Class>
void bind_fleet(Class &) {}
template <class Algorithm, class Class>
  requires requires(typename Algorithm::State &s, typename Algorithm::Problem &p, Parts &parts) {
    lay_out(s, p, parts);
  }
void bind_fleet(Class &engine_class) {
  using namespace nb::literals;
  using Engine = typename Class::Type;
  using Blocks = std::vector<Groups::Block>;
  using Places = Groups::Places;

  engine_class
      .def("record",
           [](const Engine &self) {
             const Parts parts = parts_of<Algorithm>(self);
             nb::list listing;
             for (const auto &part : parts.listing) {
               nb::list shape;
               for (long n : part.shape) shape.append(n);
               listing.append(nb::make_tuple(part.name, part.kind, part.at, nb::tuple(shape)));
             }
             return nb::make_tuple(parts.at, listing);
           })
      .def(
          "run_keys",
          [](const Engine &self, const Blocks &blocks, Places slots, Places starts, Places order, ConstMatrix X,
             ConstVector y, long draws, bool scaled, Vector out) {
            self.want_inputs(X.shape(1));
            if (y.shape(0) != X.shape(0) || out.shape(0) != X.shape(0) || draws < 0)
              throw nb::value_error("X, y and out must have as many rows");
            const Groups groups(blocks, slots, starts, order, parts_of<Algorithm>(self).at, X.shape(0));
            nb::gil_scoped_release release;
            return run_groups<Algorithm>(self, groups, X.data(), y.data(), draws, scaled, out.data());
          },
          "blocks"_a, "slots"_a, "starts"_a, "order"_a, "X"_a, "y"_a, "draws"_a, "scaled"_a, "out"_a.noconvert())
      .def(
          "predict_keys",
          [](const Engine &self, const Blocks &blocks, Places slots, Places starts, Places order, ConstMatrix X,
             bool scaled, Vector out) {
            self.want_inputs(X.shape(1));
            if (out.shape(0) != X.shape(0)) throw nb::value_error("X and out must have as many rows");
            const Groups groups(blocks, slots, starts, order, parts_of<Algorithm>(self).at, X.shape(0));
            nb::gil_scoped_release release;
            predict_groups<Algorithm>(self, groups, X.data(), scaled, out.data());
          },
          "blocks"_a, "slots"_a, "starts"_a, "order"_a, "X"_a, "scaled"_a, "out"_a.noconvert());
}

}  // namespace omkl
