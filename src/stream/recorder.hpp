// Recording a graph again for a slab: the nodes that have the streamed dim, with a part of its extent.
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "graph/same_bits.hpp"
#include "stream/roles.hpp"

namespace tessera::stream {

using ValueId = std::pair<const Node*, int>;
// The params for results with another extent along a dim (-1: none); unchanged if they hold no shape.
ParamsPtr params_for_part(const Node&, int dim, std::int64_t extent);
// a and b combined as parts of a reduction are.
Array combined(ReduceKind, const Array& a, const Array& b);
// The parts along dim 0 combined.
Array combined_along_first(ReduceKind, const Array& parts);
inline ValueId id_of(const Array& x) { return {x.node().get(), x.output()}; }

// Complete values: results of earlier passes. Recorded when they are first asked for.
class WholeValues {
 public:
  explicit WholeValues(const Roles& roles) : roles_(roles) {}
  // Operands in memory stand for themselves. InternalError for a partial value that was not set.
  Array of(const Array& x);
  void set(const ValueId& id, Array value) { known_[id] = std::move(value); }
  // Replaces the values that were recorded here by what `compute` gives for them.
  void compute_all(const std::function<std::vector<Array>(const std::vector<Array>&)>& compute);

 private:
  const Roles& roles_;
  std::map<ValueId, Array> known_;
  std::vector<ValueId> recorded_;
};

// Whether ranks keep their parts of this partial value apart until the end of a pass, so that they send it
// once and not with each slab: large ones.
bool has_parts_of_ranks(const Array& x);

// One slab of the values of a graph.
class SlabRecorder {
 public:
  // Parts of file arrays and of operands in memory, which become leaves of the slab's graph.
  using Cut = std::function<Array(const Array& whole, int dim)>;
  // The last elements of running sums along the streamed dim, of the slab before; of scatters into it, where
  // the slab begins.
  using Carries = std::map<const Node*, Array>;
  SlabRecorder(const Roles& roles, const DimClasses& dims, WholeValues& wholes, std::int64_t length, Cut cut,
               const Carries& carries)
      : roles_(roles),
        dims_(dims),
        wholes_(wholes),
        length_(length),
        cut_(std::move(cut)),
        carries_(carries) {}
  // Takes a value in place of a whole one.
  void set(const Array& x, Array value) { slabs_[id_of(x)] = std::move(value); }
  // The value's slab; the whole of a value without the streamed dim.
  Array of(const Array& x);
  // The slab's part of a partial value.
  Array part_of(const Array& x);
  // The same in parts that are to be added one after the other, of a product in order.
  std::vector<Array> parts_in_order(const Array& x);
  // The same before the ranks combine theirs: a first dim with a part of each device, split over them. For a
  // length that divides, and values of which has_parts_of_ranks is true.
  Array parts_of_ranks(const Array& x);
  // The running sums, products, extrema and scatters recorded in this slab, each with that from which the
  // next slab starts.
  const std::vector<std::pair<const Node*, Array>>& new_carries() const { return new_carries_; }

 private:
  Array continued(const Node&, int dim, const Array& slab) const;
  std::vector<Array> updated(const Node&, int index, std::vector<Array> inputs);
  void carry_on(const Node&, int dim, Array& result);
  Array leaf(const Array& x, int dim);
  bool follows(const Array& x) const;
  std::vector<Array> recorded(const Node&, bool is_partial);

  const Roles& roles_;
  const DimClasses& dims_;
  WholeValues& wholes_;
  std::int64_t length_;
  Cut cut_;
  const Carries& carries_;
  std::vector<std::pair<const Node*, Array>> new_carries_;
  std::map<ValueId, Array> slabs_;
};

}  // namespace tessera::stream
