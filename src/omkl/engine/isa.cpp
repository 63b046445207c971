// All algorithms for one instruction set; compiled once for each, with OMKL_ISA its name.
#include "lanes.hpp"
#include "table.hpp"

namespace omkl {
namespace OMKL_ISA {

// Four registers at a time; NaN is above every limit.
static bool all_at_most(const double *values, long n, double limit) {
  veci above[4] = {};
  long i = 0;
  for (; i + 4 * W <= n; i += 4 * W)
    for (long b = 0; b < 4; ++b) {
      vec v;
      __builtin_memcpy(&v, values + i + b * W, sizeof v);
      above[b] |= ~(magnitude(v) <= limit);
    }
  bool all = total((above[0] | above[1]) | (above[2] | above[3])) == 0;
  for (; i < n; ++i) all = all && fabs(values[i]) <= limit;
  return all;
}

extern const Table table;
const Table table = {
#define OMKL_LOOP(NAME, TEXT) \
  {omkl::NAME::OMKL_ISA::predict, omkl::NAME::OMKL_ISA::run, omkl::NAME::OMKL_ISA::run_several},
    OMKL_ALGORITHMS(OMKL_LOOP)
#undef OMKL_LOOP
        all_at_most,
};

}  // namespace OMKL_ISA
}  // namespace omkl
