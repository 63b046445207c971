// Input rows for Python: values taken from dictionaries, and standardised by running statistics.
#pragma once
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cmath>
#include <cstring>

#include "python.hpp"
#include "scaling.hpp"

namespace omkl {

inline Columns columns(const Matrix &stats, size_t d) {
  if (stats.shape(0) != STATISTICS || stats.shape(1) != d)
    throw nb::value_error("X and the running statistics must have as many columns");
  return {static_cast<long>(d), stats.data()};
}

// Each row is standardised by the statistics of all rows up to and with it; `stats` is updated.
inline void standardise_rows(Matrix stats, ConstMatrix X, Matrix out) {
  const size_t d = X.shape(1);
  const Columns c = columns(stats, d);
  if (out.shape(0) != X.shape(0) || out.shape(1) != d) throw nb::value_error("X and out must have one shape");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < X.shape(0); ++i) standardise(c, c, X.data() + i * d, out.data() + i * d);
}

// Each row is standardised as if it came next; `stats` stays, `spare` is overwritten.
inline void standardise_each(Matrix stats, Matrix spare, ConstMatrix X, Matrix out) {
  const size_t d = X.shape(1);
  const Columns c = columns(stats, d), next = columns(spare, d);
  if (out.shape(0) != X.shape(0) || out.shape(1) != d) throw nb::value_error("X and out must have one shape");
  nb::gil_scoped_release release;
  for (size_t i = 0; i < X.shape(0); ++i) standardise(c, next, X.data() + i * d, out.data() + i * d);
}

// standardise_rows for one column; `shift` and `scale` map a prediction made before y is known back to y's units.
inline void standardise_targets(Matrix stats, ConstVector y, Vector out, Vector shift, Vector scale) {
  const Columns c = columns(stats, 1);
  const size_t rows = y.shape(0);
  if (out.shape(0) != rows || shift.shape(0) != rows || scale.shape(0) != rows)
    throw nb::value_error("y, out, shift and scale must have as many rows");
  for (size_t i = 0; i < rows; ++i) {
    shift.data()[i] = c.mean(0);
    scale.data()[i] = deviation(c.count(0), c.mean(0), c.square(0));
    standardise(c, c, y.data() + i, out.data() + i);
  }
}

inline double standardise_target(Matrix stats, Matrix spare, double y) {
  double out;
  standardise(columns(stats, 1), columns(spare, 1), &y, &out);
  return out;
}

// (shift, scale) that map a prediction made now back to the target's units.
inline nb::tuple target_map(Matrix stats) {
  const Columns c = columns(stats, 1);
  return nb::make_tuple(c.mean(0), deviation(c.count(0), c.mean(0), c.square(0)));
}

// NaN for what is no number. NumPy converts some of its times to numbers too: to counts of whatever unit they have.
inline double as_number(PyObject *value) {
  if (PyFloat_CheckExact(value)) return PyFloat_AS_DOUBLE(value);
  const char *type = Py_TYPE(value)->tp_name;
  if (!std::strcmp(type, "numpy.timedelta64") || !std::strcmp(type, "numpy.datetime64")) return NAN;
  const double number = PyFloat_AsDouble(value);
  if (number != -1.0 || !PyErr_Occurred()) return number;
  PyErr_Clear();
  return NAN;
}

// The values of `row` for `names`, `missing` where there is none. Returns how many were found, or
// -1 - i where the value for names[i] is not a finite number.
inline long gather(nb::dict row, nb::tuple names, double missing, Vector out) {
  const size_t d = nb::len(names);
  if (out.shape(0) != d) throw nb::value_error("names and out must have one length");
  long found = 0;
  for (size_t i = 0; i < d; ++i) {
    PyObject *value = PyDict_GetItemWithError(row.ptr(), PyTuple_GET_ITEM(names.ptr(), static_cast<Py_ssize_t>(i)));
    if (!value) {
      if (PyErr_Occurred()) throw nb::python_error();
      out.data()[i] = missing;
      continue;
    }
    const double number = as_number(value);
    if (!std::isfinite(number)) return -1 - static_cast<long>(i);
    out.data()[i] = number;
    ++found;
  }
  return found;
}

// The values of `row` in the columns that `index` gives to their names, `missing` elsewhere. Returns how many names
// have a column, or -1 - j where the value of the row's j-th of them is not a finite number.
inline long gather_indexed(nb::dict row, nb::dict index, double missing, Vector out) {
  const long d = static_cast<long>(out.shape(0));
  for (long i = 0; i < d; ++i) out.data()[i] = missing;
  long found = 0, j = 0;
  PyObject *name, *value;
  for (Py_ssize_t at = 0; PyDict_Next(row.ptr(), &at, &name, &value); ++j) {
    PyObject *place = PyDict_GetItemWithError(index.ptr(), name);
    if (!place) {
      if (PyErr_Occurred()) throw nb::python_error();
      continue;
    }
    const long i = PyLong_AsLong(place);
    if (i < 0 || i >= d) throw nb::value_error("a column of the index is not one of out");
    const double number = as_number(value);
    if (!std::isfinite(number)) return -1 - j;
    out.data()[i] = number;
    ++found;
  }
  return found;
}

// `gather` and `standardise` in one call; what is missing is NaN.
inline long gather_scaled(nb::dict row, nb::tuple names, Matrix stats, Matrix spare, Vector raw, Vector out) {
  const long found = gather(row, names, NAN, raw);
  if (found < 0) return found;
  const Columns c = columns(stats, raw.shape(0)), next = columns(spare, raw.shape(0));
  if (out.shape(0) != raw.shape(0)) throw nb::value_error("raw and out must have one shape");
  standardise(c, next, raw.data(), out.data());
  return found;
}

inline void bind_rows(nb::module_ &m) {
  using namespace nb::literals;
  m.def("standardise_rows", &standardise_rows, "stats"_a.noconvert(), "X"_a, "out"_a.noconvert());
  m.def("standardise_each", &standardise_each, "stats"_a, "spare"_a.noconvert(), "X"_a, "out"_a.noconvert());
  m.def("standardise_targets", &standardise_targets, "stats"_a.noconvert(), "y"_a, "out"_a.noconvert(),
        "shift"_a.noconvert(), "scale"_a.noconvert());
  m.def("standardise_target", &standardise_target, "stats"_a, "spare"_a.noconvert(), "y"_a);
  m.def("target_map", &target_map, "stats"_a);
  m.def("gather_scaled", &gather_scaled, "row"_a, "names"_a, "stats"_a, "spare"_a.noconvert(), "raw"_a.noconvert(),
        "out"_a.noconvert());
  m.def("gather_indexed", &gather_indexed, "row"_a, "index"_a, "missing"_a, "out"_a.noconvert());
  m.def("gather", &gather, "row"_a, "names"_a, "missing"_a, "out"_a.noconvert());
}

}  // namespace omkl
