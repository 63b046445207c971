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
};

}  // namespace OMKL_ISA
}  // namespace omkl
