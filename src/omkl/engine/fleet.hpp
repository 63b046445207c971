// Many models on one problem, each under a key. All that a key has learned is one record, a row of doubles: its state,
// the statistics of its inputs and its target, and its random generator. One call runs many keys.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "problem.hpp"
#include "python.hpp"
#include "record.hpp"
#include "scaling.hpp"
#include "scratch.hpp"

namespace omkl {

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

template <class Problem, class State>
struct Key {
  State state{};
  Columns input_statistics{}, target_statistics{};
  int64_t evaluations = 0;
  Pcg64 generator{};

  template <class Visitor>
  void visit(const Problem &problem, Visitor &visitor) {
    state.visit(problem, visitor);
    visit_rest(problem, visitor);
  }
  // What there is beside the state.
  template <class Visitor>
  void visit_rest(const Problem &problem, Visitor &visitor) {
    const long d = inputs(problem);
    input_statistics.d = d, target_statistics.d = 1;
    visitor.array("inputs", input_statistics.stats, {STATISTICS * d});
    visitor.array("target", target_statistics.stats, {STATISTICS});
    visitor.number("evaluations", evaluations);
    visitor.number("state_high", generator.words[0]);
    visitor.number("state_low", generator.words[1]);
    visitor.number("inc_high", generator.words[2]);
    visitor.number("inc_low", generator.words[3]);
  }
  void load(const Problem &problem, double *record) {
    Record from(Record::Mode::load, record);
    visit(problem, from);
  }
  void store(const Problem &problem, double *record) {
    Record to(Record::Mode::store, record);
    visit(problem, to);
  }
};

using Places = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Words = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Whether order[starts[g]], ..., order[starts[g + 1] - 1] are rows, for each of so many groups.
inline bool are_groups(size_t count, const Places &starts, const Places &order, size_t rows) {
  bool right = starts.shape(0) == count + 1 && starts.data()[0] >= 0 &&
               starts.data()[count] <= static_cast<int64_t>(order.shape(0));
  for (size_t g = 0; right && g < count; ++g) right = starts.data()[g] <= starts.data()[g + 1];
  for (int64_t i = starts.shape(0) ? starts.data()[0] : 0; right && i < starts.data()[count]; ++i)
    right = order.data()[i] >= 0 && order.data()[i] < static_cast<int64_t>(rows);
  return right;
}

// Rows of many keys: group g is record slots[g] and its rows order[starts[g]], ..., order[starts[g + 1] - 1].
struct Groups {
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
    bool right = are_groups(slots_.shape(0), starts_, order_, rows);
    for (const Block &block : blocks_) {
      each = static_cast<long>(blocks_[0].shape(0));
      right = right && block.shape(0) == blocks_[0].shape(0) && block.shape(1) == static_cast<size_t>(size) &&
              reinterpret_cast<uintptr_t>(block.data()) % 64 == 0;
      blocks.push_back(block.data());
    }
    const auto capacity = each * static_cast<int64_t>(blocks.size());
    for (long g = 0; right && g < count; ++g) right = slots[g] >= 0 && slots[g] < capacity;
    if (!right) throw nb::value_error("blocks, slots, starts and order do not fit each other");
  }

  double *record(long g) const { return blocks[static_cast<size_t>(slots[g] / each)] + slots[g] % each * size; }
};

constexpr long PIECE = 256;  // rows of a key taken at a time

// Predicts and learns rows of a batch, those of one key after another, as the estimators do.
template <class Engine>
class Rows {
 public:
  // A prediction that is scaled is one number; `out` has `outputs` of the algorithm for each row.
  Rows(const Engine &engine, const int64_t *order, const double *X, const double *y, bool scaled, double *out)
      : engine_(engine),
        order_(order),
        X_(X),
        y_(y),
        scaled_(scaled),
        out_(out),
        d_(inputs(engine.problem)),
        draws_(uniforms(engine.problem)),
        width_(outputs(engine.problem)),
        memory_(static_cast<size_t>(PIECE * (d_ + draws_ + width_ + 3) + STATISTICS * d_)),
        scratch_(working_memory(engine.problem)) {
    xs_ = memory_.data(), r_ = xs_ + PIECE * d_, f_ = r_ + PIECE * draws_, ys_ = f_ + PIECE * width_;
    shift_ = ys_ + PIECE, scale_ = shift_ + PIECE, spare_ = {d_, scale_ + PIECE};
  }

  // Returns the row that diverged, or -1. Rows of the key before it are learned then.
  long learn(typename Engine::Key &key, int64_t start, int64_t stop) {
    for (; start < stop; start += PIECE) {
      const long rows = static_cast<long>(stop - start < PIECE ? stop - start : PIECE);
      for (long i = 0; i < rows; ++i) {
        const int64_t row = order_[start + i];
        const double *x = X_ + row * d_;
        if (scaled_) {
          standardise(key.input_statistics, key.input_statistics, x, xs_ + i * d_);
          shift_[i] = key.target_statistics.mean(0);
          scale_[i] =
              deviation(key.target_statistics.count(0), key.target_statistics.mean(0), key.target_statistics.square(0));
          standardise(key.target_statistics, key.target_statistics, y_ + row, ys_ + i);
        } else {
          for (long k = 0; k < d_; ++k) xs_[i * d_ + k] = x[k];
          ys_[i] = y_[row];
        }
        for (long k = 0; k < draws_; ++k) r_[i * draws_ + k] = key.generator.uniform();
      }
      Chunk chunk{rows, xs_, ys_, r_, nullptr, f_, 0, 0};
      engine_.loop->run(engine_.problem, key.state, scratch_, chunk);
      key.evaluations += chunk.evaluated;
      for (long i = 0; i < chunk.done; ++i)
        write(order_[start + i], f_ + i * width_, scaled_ ? shift_[i] : 0, scaled_ ? scale_[i] : 1);
      if (chunk.done < rows) return static_cast<long>(order_[start + chunk.done]);
    }
    return -1;
  }

  // From the key as it is.
  void predict(const typename Engine::Key &key, int64_t start, int64_t stop) {
    const double shift = key.target_statistics.mean(0);
    const double scale =
        deviation(key.target_statistics.count(0), key.target_statistics.mean(0), key.target_statistics.square(0));
    for (; start < stop; ++start) {
      const double *x = X_ + order_[start] * d_;
      if (scaled_) standardise(key.input_statistics, spare_, x, xs_);
      engine_.loop->predict(engine_.problem, key.state, scratch_, scaled_ ? xs_ : x, f_);
      write(order_[start], f_, scaled_ ? shift : 0, scaled_ ? scale : 1);
    }
  }

 private:
  void write(int64_t row, const double *f, double shift, double scale) {
    if (scaled_)
      out_[row] = shift + scale * f[0];
    else
      for (long k = 0; k < width_; ++k) out_[row * width_ + k] = f[k];
  }

  const Engine &engine_;
  const int64_t *order_;
  const double *X_, *y_;
  bool scaled_;
  double *out_;
  long d_, draws_, width_;
  std::vector<double> memory_;
  double *xs_, *r_, *f_, *ys_, *shift_, *scale_;
  Columns spare_;
  Scratch scratch_;
};

// Returns the row that diverged, or -1. Keys before it are learned then; the caller has a copy of what they were.
template <class Engine>
long run_groups(const Engine &engine, const Groups &groups, const double *X, const double *y, bool scaled,
                double *out) {
  Rows rows(engine, groups.order, X, y, scaled, out);
  typename Engine::Key key;
  for (long g = 0; g < groups.count; ++g) {
    key.load(engine.problem, groups.record(g));
    const long diverged = rows.learn(key, groups.starts[g], groups.starts[g + 1]);
    if (diverged >= 0) return diverged;
    key.store(engine.problem, groups.record(g));
  }
  return -1;
}

// Records are only read.
template <class Engine>
void predict_groups(const Engine &engine, const Groups &groups, const double *X, bool scaled, double *out) {
  Rows rows(engine, groups.order, X, nullptr, scaled, out);
  typename Engine::Key key;
  for (long g = 0; g < groups.count; ++g) {
    key.load(engine.problem, groups.record(g));
    rows.predict(key, groups.starts[g], groups.starts[g + 1]);
  }
}

template <class Engine>
Record layout(const Engine &engine) {
  Record record(Record::Mode::list);
  typename Engine::Key key;
  key.visit(engine.problem, record);
  for (const auto &part : record.parts)
    if (part.plain && part.shape.size() > 1)
      throw std::logic_error("Python expects the rows of a record's arrays to be padded");
  return record;
}

// The functions of an engine whose states have one size, so that they can be records.
template <class Engine, class Class>
void bind_fleet(Class &engine_class) {
  using namespace nb::literals;
  using Blocks = std::vector<Groups::Block>;

  engine_class
      .def("record",
           [](const Engine &self) {
             const Record record = layout(self);
             nb::list parts;
             for (const auto &part : record.parts) {
               nb::list shape;
               for (long n : part.shape) shape.append(n);
               parts.append(nb::make_tuple(part.name, part.kind, part.at, nb::tuple(shape)));
             }
             return nb::make_tuple(record.size(), parts);
           })
      .def(
          "run_keys",
          [](const Engine &self, const Blocks &blocks, Places slots, Places starts, Places order, ConstMatrix X,
             ConstVector y, bool scaled, Vector out) {
            self.require_inputs(X.shape(1));
            if (y.shape(0) != X.shape(0) || out.shape(0) != X.shape(0))
              throw nb::value_error("X, y and out must have as many rows");
            const Groups groups(blocks, slots, starts, order, layout(self).size(), X.shape(0));
            nb::gil_scoped_release release;
            return run_groups(self, groups, X.data(), y.data(), scaled, out.data());
          },
          "blocks"_a, "slots"_a, "starts"_a, "order"_a, "X"_a, "y"_a, "scaled"_a, "out"_a.noconvert())
      .def(
          "predict_keys",
          [](const Engine &self, const Blocks &blocks, Places slots, Places starts, Places order, ConstMatrix X,
             bool scaled, Vector out) {
            self.require_inputs(X.shape(1));
            if (out.shape(0) != X.shape(0)) throw nb::value_error("X and out must have as many rows");
            const Groups groups(blocks, slots, starts, order, layout(self).size(), X.shape(0));
            nb::gil_scoped_release release;
            predict_groups(self, groups, X.data(), scaled, out.data());
          },
          "blocks"_a, "slots"_a, "starts"_a, "order"_a, "X"_a, "scaled"_a, "out"_a.noconvert());
}

}  // namespace omkl
