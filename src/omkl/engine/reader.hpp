// How Problem::read reads a Problem: the parts that algorithms share, and what is computed from them once.
//
// Where the values come from is up to the derived class. It has, each by name, number, whole, flag, is_none, text,
// doubles and integers (a sequence of numbers), vector (List<double>), matrix<T> (of one shape), tensor (Tensor), and
// part (a reader of the values inside).
#pragma once
#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "scratch.hpp"

namespace omkl {

template <class T>
struct List {
  const T *data;
  long size;
};

// [N][d][D], each row padded to whole registers.
struct Tensor {
  long N, d, D;
  const double *rows;
};

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

template <class Source>
class ProblemReader {
 public:
  explicit ProblemReader(Storage &storage) : storage_(storage) {}

  // -1 for None.
  int64_t optional_whole(const char *name) const { return source().is_none(name) ? -1 : source().whole(name); }
  double optional_number(const char *name) const { return source().is_none(name) ? -1 : source().number(name); }

  // The position of a string among `values`, as any enumeration.
  struct Choice {
    int code;
    template <class Enum>
    operator Enum() const {
      return static_cast<Enum>(code);
    }
  };
  Choice one_of(const char *name, std::initializer_list<const char *> values) const {
    const std::string value = source().text(name);
    int code = 0;
    for (const char *candidate : values) {
      if (value == candidate) return {code};
      ++code;
    }
    throw std::invalid_argument(std::string(name) + " has no value '" + value + "'");
  }

  List<double> numbers(const char *name) {
    const std::vector<double> values = source().doubles(name);
    const auto size = static_cast<long>(values.size());
    return {storage_.padded_copy(values.data(), size), size};
  }
  List<int> codes(const char *name) {
    std::vector<int> values = source().integers(name);
    const auto size = static_cast<long>(values.size());
    return {storage_.list(std::move(values)), size};
  }

  void require(bool right, const char *message) const {
    if (!right) throw std::invalid_argument(message);
  }

  Schedule schedule() const {
    const Source s = source().part("schedule");
    return {s.number("eta"), s.number("xi"), s.flag("anytime")};
  }

  Descent descent() const {
    const Source s = source().part("descent");
    return {s.one_of("loss", {"squared", "logistic", "hinge"}), s.number("lam"),
            s.one_of("stabiliser", {"none", "aware", "floor", "project"}), s.number("radius"),
            s.number("resting_margin")};
  }

  // `least`: random features that there must be.
  Frequencies frequencies(const char *name, long least = 1) {
    const auto [N, d, D, rows] = source().tensor(name);
    require(N >= 1 && d >= 1 && D >= least, "the problem needs kernels, features and random features");
    if (D == 0) return {N, d, 0, 0, rows, 0, storage_.zeros(d), -1, storage_.zeros(N), nullptr, nullptr};
    const long P = padded(D);
    std::vector<double> largest(static_cast<size_t>(d));
    for (long row = 0; row < N * d; ++row)
      for (long j = 0; j < D; ++j) {
        double &most = largest[static_cast<size_t>(row % d)];
        most = std::max(most, std::fabs(rows[row * P + j]));
      }
    std::vector<int> used_start{0}, used;
    for (long i = 0; i < N; ++i)
      for (long b = 0; b < P; b += LANES) {
        for (long k = 0; k < d; ++k) {
          const double *block = rows + (i * d + k) * P + b;
          if (std::any_of(block, block + LANES, [](double v) { return v != 0; })) used.push_back(static_cast<int>(k));
        }
        used_start.push_back(static_cast<int>(used.size()));
      }
    const auto [reference, ratio] = proportional(rows, N, d, D);
    return {N,
            d,
            D,
            P,
            rows,
            1 / std::sqrt(static_cast<double>(D)),
            storage_.padded_copy(largest.data(), d),
            reference,
            storage_.padded_copy(ratio.data(), N),
            storage_.list(std::move(used_start)),
            storage_.list(std::move(used))};
  }

  // Of N nodes, each with a neighbour in either direction.
  Graph graph(long N) {
    constexpr const char *unfit = "the graph does not fit the number of kernels";
    Source g = source().part("graph");
    const int64_t *order = g.template matrix<int64_t>("order", N, N, unfit);
    const uint8_t *A = g.template matrix<uint8_t>("A", N, N, unfit);
    const List<double> cover = g.vector("cover");
    require(cover.size == N, unfit);
    for (long i = 0; i < N * N; ++i)
      require(order[i] >= 0 && order[i] < N, "the graph's order names a kernel that is not there");
    std::vector<int> out_start{0}, out_list, in_start{0}, in_list;
    for (long i = 0; i < N; ++i) {
      for (long j = 0; j < N; ++j) {
        if (A[i * N + j]) out_list.push_back(static_cast<int>(j));
        if (A[j * N + i]) in_list.push_back(static_cast<int>(j));
      }
      require(
          static_cast<int>(out_list.size()) > out_start.back() && static_cast<int>(in_list.size()) > in_start.back(),
          "a node of the graph has no neighbour");
      out_start.push_back(static_cast<int>(out_list.size()));
      in_start.push_back(static_cast<int>(in_list.size()));
    }
    return {N,
            order,
            A,
            storage_.padded_copy(cover.data, N),
            storage_.list(std::move(out_start)),
            storage_.list(std::move(out_list)),
            storage_.list(std::move(in_start)),
            storage_.list(std::move(in_list))};
  }

 private:
  Source &source() { return static_cast<Source &>(*this); }
  const Source &source() const { return static_cast<const Source &>(*this); }

  Storage &storage_;
};

}  // namespace omkl
