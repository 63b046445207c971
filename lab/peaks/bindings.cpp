// The module omkl_lab._peaks: runs the benchmark loops.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "isa.hpp"
#include "loops.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace omkl {

OMKL_DECLARE_ISA(const Peaks peaks)

namespace {

// Runs one of the loops of peaks.hpp `times` over; returns how much it did.
long peak(const std::string &isa, const std::string &what, long times) {
  const Peaks &loops = OMKL_SELECT_ISA(isa, peaks);
  Peaks::Run run = what == "sincos"          ? loops.sincos
                   : what == "multiply_adds" ? loops.multiply_adds
                   : what == "bytes_read"    ? loops.bytes_read
                   : what == "least_squares" ? loops.least_squares
                                             : nullptr;
  if (!run) throw nb::value_error(("there is no peak '" + what + "'").c_str());
  static std::vector<double> memory(LEAST_SQUARES_SIZE + LANES);
  auto address = reinterpret_cast<uintptr_t>(memory.data());
  return run(memory.data() + (64 - address % 64) % 64 / 8, times);
}

}  // namespace
}  // namespace omkl

NB_MODULE(_peaks, m) { m.def("peak", &omkl::peak, "isa"_a, "what"_a, "times"_a); }
