// The benchmark loops for one instruction set; compiled once for each, with OMKL_ISA its name and the engine's flags.
#include "peaks.hpp"

namespace omkl {
namespace OMKL_ISA {

extern const Peaks peaks;
const Peaks peaks = {sincos_pairs, multiply_adds, bytes_read, least_squares_steps};

}  // namespace OMKL_ISA
}  // namespace omkl
