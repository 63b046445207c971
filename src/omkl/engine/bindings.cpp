// The module omkl.engine._native: an engine for every algorithm, and the functions on rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "engine.hpp"
#include "ids.hpp"
#include "isa.hpp"
#include "rows.hpp"
#include "table.hpp"

namespace omkl {

OMKL_DECLARE_ISA(const Table table)

namespace {

const Table &table(const std::string &isa) { return OMKL_SELECT_ISA(isa, table); }

using AnyArray = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

// Flat index of the first value whose magnitude is not at most the limit, or -1.
long first_above(AnyArray a, double limit) {
  static const Table &best = table(supported().back());
  const double *v = a.data();
  const long size = static_cast<long>(a.size());
  if (best.all_at_most(v, size, limit)) return -1;
  for (long i = 0; i < size; ++i)
    if (!(std::fabs(v[i]) <= limit)) return i;
  return -1;
}

long first_not_finite(AnyArray a) { return first_above(a, std::numeric_limits<double>::max()); }

}  // namespace
}  // namespace omkl

NB_MODULE(_native, m) {
  using namespace omkl;
  using namespace nb::literals;
#ifdef __clang__
  m.attr("compiler") = "clang " __clang_version__;
#else
  m.attr("compiler") = "gcc " __VERSION__;
#endif
  m.def("supported", &supported);
  m.def("first_not_finite", &first_not_finite, "a"_a);
  m.def("first_above", &first_above, "a"_a, "limit"_a);
  bind_rows(m);
  bind_ids(m);
  nb::class_<AnyMemory>(m, "Memory");
  nb::class_<AnyEngine>(m, "Engine");
  nb::dict engines;
#define OMKL_BIND(NAME, TEXT)                       \
  engines[TEXT] = bind<NAME::Problem, NAME::State>( \
      m, #NAME, [](const std::string &isa) -> const auto & { return table(isa).NAME; });
  OMKL_ALGORITHMS(OMKL_BIND)
#undef OMKL_BIND
  m.attr("engines") = engines;
}
