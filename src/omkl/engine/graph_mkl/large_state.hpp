// As algorithms/graph_mkl/large.py: the state of the large experts.
#pragma once
#include "graph_mkl/archive.hpp"
#include "graph_mkl/trees_state.hpp"
#include "graph_mkl/wide_state.hpp"

namespace omkl::graph_mkl {

struct Large {
  Archive archive;
  Trees trees;
  Wide wide;
  double *loss;  // [large + 1]  means of the losses of the large experts, and of the prediction
  int64_t rounds;

  template <class Visitor>
  void visit(const Problem &p, Visitor &visitor) {
    visitor.part("archive", archive, p);
    visitor.part("trees", trees, p);
    visitor.part("wide", wide, p);
    visitor.array("loss", loss, {p.large + 1});
    visitor.number("rounds", rounds);
  }
  bool has_room(const Problem &p) const {
    return archive.has_room(p) && trees.has_room(p, archive) && wide.has_room(p, archive);
  }
  bool valid(const Problem &p) const { return archive.valid(p) && trees.valid(p, archive) && wide.valid(p, archive); }
};

}  // namespace omkl::graph_mkl
