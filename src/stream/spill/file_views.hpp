// Arrays that are read from a file although an op stands above it: slices, joins, pads, rolls, flips and
// reshapes of files, and a sorted vector, or the order of one, made of sorted runs. A box of such an array is
// read in place, also along the streamed dim.
#pragma once
#include <optional>
#include <vector>

#include "ops/index/remap_op.hpp"
#include "stream/spill/spill_file.hpp"

namespace tessera::stream {

// FileNumbers for arrays in files that a plan makes, which tell them apart from those of other plans.
class FileNumbers {
 public:
  explicit FileNumbers(std::int64_t plan) : next_(-4096 * plan) {}
  std::int64_t take() { return --next_; }

 private:
  std::int64_t next_;
};

Array record_source(FileSourcePtr, FileNumbers&);
bool is_slice(const RemapParams&);  // with steps above 0
// The node's result as an array in a file if its operands are files; nullopt for other nodes.
std::optional<Array> as_file(const Node&, const std::vector<Array>& inputs, FileNumbers&);
// The vector of the elements of `runs` in ascending order: the file has sorted runs of `length`, the last one
// may be shorter.
FileSourcePtr merged_source(const SpillFilePtr& runs, std::int64_t length);
// The positions of these elements before they were sorted; the other file has, for each element of the runs,
// its position in its run.
FileSourcePtr merged_positions(const SpillFilePtr& runs, const SpillFilePtr& positions, std::int64_t length);

}  // namespace tessera::stream
