// The collectives as op records, and the declarations that their files share.
//
// Each applies to one step of an axis: a vmap frame, or manual axes of a region. All move data in the tiled
// form, which keeps the number of dims; collectives.cpp adds and removes dims for the untiled forms.
#pragma once
#include <tessera/collectives.hpp>

#include "graph/op.hpp"

namespace tessera {

struct CollectiveParams {
  std::uint64_t frame = 0;                 // frame of a vmap; 0: manual axes
  std::vector<int> axes;                   // manual mesh axes, first major
  std::int64_t size = 1;                   // ranks (or examples) along them
  std::string names;                       // 'x', 'y'
  Groups groups;                           // empty: all ranks are one group
  int dim = 0, other = 0;                  // gathered, scattered or split dim; all_to_all: concatenated dim
  std::vector<std::pair<int, int>> pairs;  // ppermute: (source, destination); pbroadcast: (source, -1)
  Array index = {};  // index in the frame: a second operand, so that the op depends on the frame

  std::int64_t group_size() const {
    return groups.empty() ? size : static_cast<std::int64_t>(groups[0].size());
  }
  template <class V> void fields(V&& visit) const {
    visit("axis", names);
    visit("axes", axes);
    visit("size", size);
    visit("frame", frame);
    visit("groups", groups);
    visit("dim", dim);
    visit("other", other);
    visit("pairs", pairs);
  }
};

extern const OpDef psum_op, pmax_op, pmin_op;                       // over all ranks of the axes
extern const OpDef psum_groups_op, pmax_groups_op, pmin_groups_op;  // group by group
extern const OpDef all_gather_op, psum_scatter_op, all_to_all_op, ppermute_op, pbroadcast_op;

// Records the op on x (and the frame's index).
Array record_collective(const OpDef&, const CollectiveParams&, const Array& x);
// The sum of x over manual axes of its region; a value that does not vary over an axis is multiplied by the
// axis size.
Array sum_over(const Array& x, const std::vector<int>& axes);
// The int32 position of this rank along manual axes.
Array place_along(const RegionPtr&, const std::vector<int>& axes);

// Batch rule: over the frame that is replayed, arithmetic of one rank on the batch dim; over other frames the
// batch dim is passed through.
Batched batch_collective(const BatchArgs&);

// The devices of the group of `me`, in its order, and the position of `me` in it.
struct GroupOf {
  std::vector<int> ids;
  int me = 0;
};
GroupOf group_of(const Mesh&, const CollectiveParams&, int me);

}  // namespace tessera
