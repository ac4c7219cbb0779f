// The role of each node of a graph when the program is streamed along a class of dims.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "stream/dims.hpp"
#include "stream/moments.hpp"

namespace tessera::stream {

struct Role {
  enum Kind {
    memory,   // made of no file: an operand in memory, or computed from such
    slab,     // has the streamed dim: a slab of it is there at a time
    partial,  // reduced over the streamed dim: whole after a pass, made of the slabs' parts
    whole,    // made of results of earlier passes or stages, or of a file without the streamed dim
  };
  Kind kind = memory;
  int pass =
      0;  // slab, partial: the first pass that can compute it; whole: that which must be over is pass - 1
};

struct Roles {
  int dim_class = -1;
  std::map<const Node*, Role> of;
  std::map<const Node*, CentredSum> centred;  // partial values that are made in the pass of their total
  int passes = 0;
  bool keeps_parts_apart = true;  // of ranks, until the end of a pass (has_parts_of_ranks)
  std::string refusal;            // why the program cannot be streamed along this class; "" if it can
  const Node* refused_by = nullptr;
  const Role& role(const Array& x) const { return of.at(x.node().get()); }
};
Roles roles_in(const Graph&, const DimClasses&, int dim_class);
// A sum or product of a ReproducibleScope: slabs of 2^k indices make nodes of its tree.
bool is_tree(const Node&);

// The link of a node that carries the streamed dim in all its operands; nullopt if the node mixes positions.
std::optional<DimLink> link_in(const Node&, const DimClasses&, int dim_class);

}  // namespace tessera::stream
