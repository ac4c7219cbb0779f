// Recording a graph again for a slab: the nodes that have the streamed dim, with a part of its extent.
#pragma once
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "stream/roles.hpp"

namespace tessera::stream {

using ValueId = std::pair<const Node*, int>;
inline ValueId id_of(const Array& x) { return {x.node().get(), x.output()}; }

// Values that are whole: results of earlier passes. Recorded when they are first asked for.
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

// One slab of the values of a graph.
class SlabRecorder {
 public:
  // Parts of file arrays and of operands in memory, which become leaves of the slab's graph.
  using Cut = std::function<Array(const Array& whole, int dim)>;
  SlabRecorder(const Roles& roles, const DimClasses& dims, WholeValues& wholes, std::int64_t length, Cut cut)
      : roles_(roles), dims_(dims), wholes_(wholes), length_(length), cut_(std::move(cut)) {}
  // The value's slab; the whole of a value without the streamed dim.
  Array of(const Array& x);
  // The slab's part of a partial value.
  Array part_of(const Array& x);

 private:
  Array leaf(const Array& x, int dim);
  bool follows(const Array& x) const;
  std::vector<Array> recorded(const Node&, bool is_partial);

  const Roles& roles_;
  const DimClasses& dims_;
  WholeValues& wholes_;
  std::int64_t length_;
  Cut cut_;
  std::map<ValueId, Array> slabs_;
};

}  // namespace tessera::stream
