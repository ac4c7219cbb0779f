// Choosing the streamed dim and the length of a slab within the memory limit, before anything is read.
#pragma once
#include <tessera/io/stream.hpp>

#include <memory>

#include "stream/passes.hpp"

namespace tessera::stream {

struct Request {
  Wanted wanted;
  std::int64_t memory_limit = 0;  // 0: this rank's share
  std::int64_t slab = 0;          // extent of a slab; 0: chosen
};

struct Plan {
  Graph graph;
  std::unique_ptr<DimClasses> dims;
  Roles roles;
  std::int64_t extent = 0, length = 0;
  io::StreamPlan facts;
  Streamed streamed() const { return {graph, *dims, roles, extent, length}; }
};
// The bytes that a rank may use for arrays besides those that live now.
std::int64_t free_share();
// Whether some file stands below the values: otherwise there is nothing to stream.
bool reads_files(const Graph&);
// MemoryError with what the program would need, ArgumentError where no dim can be streamed.
Plan plan_of(const Request&);

}  // namespace tessera::stream
