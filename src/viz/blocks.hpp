// How a sharding splits an array: the grid of distinct blocks and the devices that hold each.
#pragma once
#include <string>
#include <vector>

#include <tessera/shape.hpp>
#include <tessera/sharding.hpp>

namespace tessera::viz {

// Blocks are numbered row-major over the grid that has ranges[d].size() blocks along dimension d.
struct BlockGrid {
  Shape shape;
  std::vector<std::vector<Range>> ranges;  // [dim][index along the dim]; includes uneven and empty ones
  std::vector<std::vector<int>> holders;   // [block]: device ids, ascending: the replicas of the block

  int blocks() const { return static_cast<int>(holders.size()); }
  int blocks_along(int dim) const { return static_cast<int>(ranges[dim].size()); }
  int block_at(const std::vector<int>& numbers) const;  // one index per dim
  std::vector<int> numbers_of(int block) const;         // the inverse of block_at
  Index box(int block) const;
  Shape block_shape(int block) const;
  bool is_even(int dim) const;  // all blocks along dim have the same nonzero size
};

// ShardingError, naming the call, if the array cannot have the sharding.
BlockGrid block_grid(const Shape&, const Sharding&, const char* call);

// Printable objects as text.
std::string text_of(const Sharding&);
std::string text_of(const Mesh&);

}  // namespace tessera::viz
