// Many models on one problem, each under a key. All that a key has learned is one record, a row of doubles: its state,
// the statistics of its inputs and its target, and its random generator. One call runs many keys.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
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

  void visit(const Problem &problem, Record &record) {
    const long d = inputs(problem);
    state.visit(problem, record);
    input_statistics.d = d, target_statistics.d = 1;
    record.array("inputs", input_statistics.stats, {STATISTICS * d});
    record.array("target", target_statistics.stats, {STATISTICS});
    record.number("evaluations", evaluations);
    record.number("state_high", generator.words[0]);
    record.number("state_low", generator.words[1]);
    record.number("inc_high", generator.words[2]);
    record.number("inc_low", generator.words[3]);
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

// Predicts and learns the keys' rows as the estimators do. Returns the row that diverged, or -1. Keys before it, and
// rows of its key before it, are learned then; the caller has a copy of what they were.
template <class Engine>
long run_groups(const Engine &engine, const Groups &groups, const double *X, const double *y, bool scaled,
                double *out) {
  const long d = inputs(engine.problem), draws = uniforms(engine.problem);
  std::vector<double> memory(static_cast<size_t>(PIECE * (d + draws + 4)));
  double *xs = memory.data(), *r = xs + PIECE * d, *ys = r + PIECE * draws, *f = ys + PIECE, *shift = f + PIECE,
         *scale = shift + PIECE;
  Scratch scratch = working_memory(engine.problem);
  typename Engine::Key key;
  for (long g = 0; g < groups.count; ++g) {
    key.load(engine.problem, groups.record(g));
    for (int64_t start = groups.starts[g]; start < groups.starts[g + 1]; start += PIECE) {
      const int64_t left = groups.starts[g + 1] - start;
      const long rows = static_cast<long>(left < PIECE ? left : PIECE);
      for (long i = 0; i < rows; ++i) {
        const int64_t row = groups.order[start + i];
        const double *x = X + row * d;
        if (scaled) {
          standardise(key.input_statistics, key.input_statistics, x, xs + i * d);
          shift[i] = key.target_statistics.mean(0);
          scale[i] =
              deviation(key.target_statistics.count(0), key.target_statistics.mean(0), key.target_statistics.square(0));
          standardise(key.target_statistics, key.target_statistics, y + row, ys + i);
        } else {
          for (long k = 0; k < d; ++k) xs[i * d + k] = x[k];
          ys[i] = y[row];
        }
        for (long k = 0; k < draws; ++k) r[i * draws + k] = key.generator.uniform();
      }
      Chunk chunk{rows, xs, ys, r, nullptr, f, 0, 0};
      engine.loop->run(engine.problem, key.state, scratch, chunk);
      key.evaluations += chunk.evaluated;
      for (long i = 0; i < chunk.done; ++i) out[groups.order[start + i]] = scaled ? shift[i] + scale[i] * f[i] : f[i];
      if (chunk.done < rows) return static_cast<long>(groups.order[start + chunk.done]);
    }
    key.store(engine.problem, groups.record(g));
  }
  return -1;
}

// Predictions from the keys as they are; records are only read.
template <class Engine>
void predict_groups(const Engine &engine, const Groups &groups, const double *X, bool scaled, double *out) {
  const long d = inputs(engine.problem);
  std::vector<double> memory(static_cast<size_t>((STATISTICS + 1) * d));
  const Columns spare{d, memory.data()};
  double *xs = memory.data() + STATISTICS * d;
  Scratch scratch = working_memory(engine.problem);
  typename Engine::Key key;
  for (long g = 0; g < groups.count; ++g) {
    key.load(engine.problem, groups.record(g));
    const double shift = key.target_statistics.mean(0);
    const double scale =
        deviation(key.target_statistics.count(0), key.target_statistics.mean(0), key.target_statistics.square(0));
    for (int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
      const double *x = X + groups.order[i] * d;
      if (scaled) standardise(key.input_statistics, spare, x, xs);
      double f;
      engine.loop->predict(engine.problem, key.state, scratch, scaled ? xs : x, &f);
      out[groups.order[i]] = scaled ? shift + scale * f : f;
    }
  }
}

template <class Engine>
Record layout(const Engine &engine) {
  Record record(Record::Mode::list);
  typename Engine::Key key;
  key.visit(engine.problem, record);
  return record;
}

// The functions of an engine whose states have one size, so that they can be records.
template <class Engine, class Class>
void bind_fleet(Class &engine_class) {
  using namespace nb::literals;
  using Blocks = std::vector<Groups::Block>;
  using Places = Groups::Places;

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
