// The passes over the files: the same walk plans a program and runs it.
//
//   pass 1   slab 0: sum(x) -> total        slab 1: total + sum(x) -> total        ...
//   between  mean = total / n
//   pass 2   slab 0: write (x - mean)       ...
#pragma once
#include <functional>
#include <vector>

#include "stream/recorder.hpp"

namespace tessera::stream {

// The values that are asked for, and where those with the streamed dim go.
struct Wanted {
  std::vector<Array> values;
  bool is_stored = false;  // slabs are written; otherwise they are kept and joined
};

// The work of a walk on what it records.
class Walker {
 public:
  virtual ~Walker() = default;
  // The values of whole arrays.
  virtual std::vector<Array> compute(const std::vector<Array>& roots) = 0;
  // A pass over these files and operands begins: parts of them are asked for, slab by slab.
  virtual void begin_pass(const std::vector<Array>& cut, const std::vector<int>& dims) = 0;
  // Those parts, in the same order.
  virtual std::vector<Array> leaves(const Range& slab) = 0;
  // The values of one slab; those from `first_stored` on go to the file, or are kept.
  virtual std::vector<Array> compute_slab(const std::vector<Array>& roots, std::size_t first_stored,
                                          const Range& slab) = 0;
  // The slabs to walk through, of at most `length`.
  virtual std::vector<Range> slabs(std::int64_t extent, std::int64_t length) = 0;
};

struct Streamed {
  const Graph& graph;
  const DimClasses& dims;
  const Roles& roles;
  std::int64_t extent = 0, length = 0;  // of the streamed dim, of a slab
};
// The wanted values; of a stored one with the streamed dim nothing is kept, its entry holds nothing.
std::vector<Array> walk(const Streamed&, const Wanted&, Walker&);
// The placeholder of a part of x.
Array placeholder_of_part(const Array& x, int dim, std::int64_t length);
// The layout of a slab: the streamed dim is split over all devices.
Sharding slab_layout(int ndim, int dim);

}  // namespace tessera::stream
