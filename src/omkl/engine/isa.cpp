// All rounds for one instruction set; compiled once for each with OMKL_ISA its name.
#include "graph_mkl.hpp"
#include "omkl_gf.hpp"
#include "omkr.hpp"
#include "peaks.hpp"
#include "raker.hpp"
#include "rfomkr.hpp"
#include "sfg_mkl.hpp"
#include "sfg_mkl_r.hpp"

namespace omkl {
namespace OMKL_ISA {

// Four registers at a time; what is not a number is not within.
static bool within(const double *values, long n, double limit) {
  veci out[4] = {};
  long i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (long b = 0; b < 4; ++b) {
      vec v;
      __builtin_memcpy(&v, values + i + b * W, sizeof v);
      out[b] |= ~(magnitude(v) <= limit);
    }
  bool all = total((out[0] | out[1]) | (out[2] | out[3])) == 0;
  for (; i < n; ++i) all = all && fabs(values[i]) <= limit;
  return all;
}

extern const Table table;
const Table table = {
    {OmkrRound::predict, OmkrRound::run},
    {RfomkrRound::predict, RfomkrRound::run},
    {RakerRound::predict, RakerRound::run},
    {OmklGfRound::predict, OmklGfRound::run},
    {SfgMklRound::predict, SfgMklRound::run},
    {SfgMklRRound::predict, SfgMklRRound::run},
    {GraphMklRound::predict, GraphMklRound::run},
    {PeakLoops::sincos_pairs, PeakLoops::multiply_adds, PeakLoops::bytes_read, PeakLoops::least_squares_steps},
    within,
};

}  // namespace OMKL_ISA
}  // namespace omkl
