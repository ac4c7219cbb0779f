// The passes over the files: the same walk plans a program and runs it.
//
//   pass 1   slab 0: sum(x) -> total        slab 1: total + sum(x) -> total        ...
//   between  mean = total / n
//   pass 2   slab 0: write (x - mean)       ...
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "stream/recorder.hpp"

namespace tessera::stream {

// The extents of a chunk of a target; {}: the blocks of the slabs are chunks.
struct TargetChunks {
  std::vector<std::int64_t> extents;
};
// A value that is asked for, and where it goes if it has the streamed dim.
struct Wanted {
  Array value;
  bool is_stored = false;                   // slabs are written; otherwise they are kept and joined
  NodePtr sorted = nullptr;                 // slabs are sorted as this node sorts all of it
  std::optional<TargetChunks> chunks = {};  // of a target in chunks
};

// A value that a pass takes in parts along a dim, each split over the devices along that dim or another.
struct CutValue {
  Array of;
  int dim = 0, split = 0;
};

// The work of a walk on what it records.
class Walker {
 public:
  virtual ~Walker() = default;
  // The values of whole arrays.
  virtual std::vector<Array> compute(const std::vector<Array>& roots) = 0;
  // A pass over these files and operands begins: parts of them are asked for, slab by slab.
  virtual void begin_pass(const std::vector<CutValue>& cut) = 0;
  // Those parts, in the same order.
  virtual std::vector<Array> leaves(const Range& slab) = 0;
  // The values of `roots` in one slab, the last of which belong to the values numbered `wanted`.
  virtual std::vector<Array> compute_slab(const std::vector<Array>& roots,
                                          const std::vector<std::size_t>& wanted, const Range& slab) = 0;
  // So many values like this one stay until the end of the pass.
  virtual void hold(const Array&, std::int64_t /*copies*/) {}
  // The slabs to walk through, of at most `length`.
  virtual std::vector<Range> slabs(std::int64_t extent, std::int64_t length) = 0;
};

struct Streamed {
  const Graph& graph;
  const DimClasses& dims;
  const Roles& roles;
  std::int64_t extent = 0, length = 0;    // of the streamed dim, of a slab
  int split_class = -1;                   // of the dims that ranks share, if not the streamed one
  const std::map<ValueId, Array>& known;  // what placeholders stand for
};
// The wanted values; of a stored one with the streamed dim nothing is kept, its entry holds nothing.
std::vector<Array> walk(const Streamed&, const std::vector<Wanted>&, Walker&);
Array placeholder_of_part(const CutValue&, std::int64_t length);
// One dim is split over all devices, of a slab usually the streamed one.
Sharding slab_layout(int ndim, int dim);

}  // namespace tessera::stream
