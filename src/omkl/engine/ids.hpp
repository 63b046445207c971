// Statistics of a column of many categories, row after row (estimators/id_column.py says what they are).
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "python.hpp"

namespace omkl {

using WholeNumbers = nb::ndarray<int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Pointers into the arrays of an IdColumn.
struct IdColumn {
  long inputs, most, codes, size;  // of a row, of any row, of a target; numbers of a record
  double farthest;
  double *scaling, *overall, *records;
  int64_t *slots, *places;
  long buckets, capacity, used;

  double *record(double number) const {
    if (!(number >= 0 && number < static_cast<double>(buckets))) return nullptr;
    const int64_t slot = slots[static_cast<int64_t>(number)];
    return slot < 0 || slot >= used ? nullptr : records + slot * size;
  }

  // The record of a bucket, a new one if it has none; none for a row without a bucket.
  double *made(double number) {
    double *known = record(number);
    if (known || !(number >= 0 && number < static_cast<double>(buckets))) return known;
    if (used >= capacity) throw nb::value_error("there is no room for a bucket");
    places[used] = static_cast<int64_t>(number);
    slots[places[used]] = used;
    double *start = records + used++ * size;
    std::fill(start, start + size - 1 - most, 0.0);
    std::fill(start + size - 1 - most, start + size, 1.0);
    return start;
  }

  // 1, and the inputs, 0 where one is missing or has not varied.
  void standardise(const double *x, double *z) const {
    z[0] = 1;
    for (long i = 0; i < most; ++i) {
      const double count = scaling[i], mean = scaling[most + i], squares = scaling[2 * most + i];
      const bool known = i < inputs && squares > 0 && std::isfinite(squares) && !std::isnan(x[i]);
      z[1 + i] = known ? std::clamp((x[i] - mean) / std::sqrt(squares / count), -farthest, farthest) : 0.0;
    }
  }

  double fit(const double *bucket, const double *z, long code) const {
    double sum = 0;
    const double *weights = bucket + 1 + codes + code * (1 + most);
    for (long i = 0; i <= most; ++i) sum += weights[i] * z[i];
    return overall[1 + code] + sum;
  }

  void write(const double *bucket, const double *z, double *out) const {
    const double count = bucket ? bucket[0] : 0.0;
    out[0] = std::log1p(count);
    for (long j = 0; j < codes; ++j) {
      const double mean = bucket ? count * bucket[1 + j] : 0.0;
      out[1 + 2 * j] = (mean + overall[1 + j]) / (count + 1);
      out[2 + 2 * j] = bucket ? fit(bucket, z, j) : overall[1 + j];
    }
  }

  void add_to_mean(double *record, const double *code, double weight) const {
    record[0] += weight;
    for (long j = 0; j < codes; ++j) record[1 + j] += weight / record[0] * (code[j] - record[1 + j]);
  }

  void learn(double number, const double *x, const double *z, const double *code, double weight) {
    if (double *bucket = made(number)) {
      double *variances = bucket + size - 1 - most, s = 1 / weight;
      for (long i = 0; i <= most; ++i) s += variances[i] * z[i] * z[i];
      for (long j = 0; j < codes; ++j) {
        const double error = (code[j] - fit(bucket, z, j)) / s;
        double *weights = bucket + 1 + codes + j * (1 + most);
        for (long i = 0; i <= most; ++i) weights[i] += error * (variances[i] * z[i]);
      }
      for (long i = 0; i <= most; ++i) {
        const double gain = variances[i] * z[i];
        variances[i] = std::clamp(variances[i] - gain * gain / s, 0.0, 1.0);
      }
      add_to_mean(bucket, code, weight);
    }
    add_to_mean(overall, code, weight);
    for (long i = 0; i < inputs; ++i) {
      if (std::isnan(x[i])) continue;
      const double difference = x[i] - scaling[most + i];
      scaling[i] += weight;
      scaling[most + i] += weight * difference / scaling[i];
      scaling[2 * most + i] += weight * difference * (x[i] - scaling[most + i]);
    }
  }
};

// The statistics of each row as they are before it; rows with codes, of their targets, are learned one after the other.
// Returns how many buckets have a record.
inline long id_rows(ConstVector numbers, ConstMatrix X, nb::object codes, nb::object weight, double farthest,
                    Matrix scaling, Vector overall, WholeNumbers slots, WholeNumbers places, Matrix records, long used,
                    Matrix out) {
  const size_t rows = numbers.shape(0);
  const long most = static_cast<long>(scaling.shape(1)), width = static_cast<long>(overall.shape(0)) - 1;
  IdColumn column{static_cast<long>(X.shape(1)),
                  most,
                  width,
                  1 + width + (width + 1) * (1 + most),
                  farthest,
                  scaling.data(),
                  overall.data(),
                  records.data(),
                  slots.data(),
                  places.data(),
                  static_cast<long>(slots.shape(0)),
                  static_cast<long>(records.shape(0)),
                  used};
  ConstMatrix targets;
  ConstVector weights;
  if (!codes.is_none()) targets = nb::cast<ConstMatrix>(codes);
  if (!weight.is_none()) weights = nb::cast<ConstVector>(weight);
  const bool learned = !codes.is_none(), weighted = !weight.is_none();
  const bool fits = X.shape(0) == rows && column.inputs <= most && scaling.shape(0) == 3 && width >= 0 &&
                    static_cast<long>(records.shape(1)) == column.size && places.shape(0) == records.shape(0) &&
                    used >= 0 && used <= column.capacity && out.shape(0) == rows &&
                    static_cast<long>(out.shape(1)) == 1 + 2 * width &&
                    (!learned || (targets.shape(0) == rows && static_cast<long>(targets.shape(1)) == width)) &&
                    (!weighted || weights.shape(0) == rows);
  if (!fits) throw nb::value_error("the arrays of a column of many categories do not fit");
  std::vector<double> z(static_cast<size_t>(1 + most));
  for (size_t k = 0; k < rows; ++k) {
    const double *x = X.data() + k * X.shape(1);
    column.standardise(x, z.data());
    column.write(column.record(numbers.data()[k]), z.data(), out.data() + k * out.shape(1));
    const double w = weighted ? weights.data()[k] : 1.0;
    if (learned && w > 0) column.learn(numbers.data()[k], x, z.data(), targets.data() + k * targets.shape(1), w);
  }
  return column.used;
}

inline void bind_ids(nb::module_ &m) {
  using namespace nb::literals;
  m.def("id_rows", &id_rows, "numbers"_a, "X"_a, "codes"_a.none(), "weight"_a.none(), "farthest"_a,
        "scaling"_a.noconvert(), "overall"_a.noconvert(), "slots"_a.noconvert(), "places"_a.noconvert(),
        "records"_a.noconvert(), "used"_a, "out"_a.noconvert());
}

}  // namespace omkl
