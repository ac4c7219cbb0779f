// One stage of a program: the dim that it streams, and the length of a slab within the memory limit.
#pragma once
#include <tessera/io/stream.hpp>

#include <memory>
#include <vector>

#include "stream/passes.hpp"

namespace tessera::stream {

struct Stage {
  Graph graph;
  std::unique_ptr<DimClasses> dims;
  Roles roles;
  std::vector<Wanted> wanted;
  std::int64_t extent = 0, length = 0;
  int split_class = -1;  // as of Streamed
  io::StreamPlan facts;
};
// The memory that a rank may use.
struct Room {
  std::int64_t bytes = 0;
  std::int64_t slab = 0;  // the extent of a slab that the user asks for; 0: chosen
  std::int64_t held = 0;  // bytes of values that earlier stages left
};
// A dim of a file that a stage may stream.
struct StreamableDim {
  const Node* file;
  int dim;
  std::int64_t extent;
};
std::vector<StreamableDim> candidates_in(const Graph&, const DimClasses&);
// The stage with the longest slab that fits, or with the shortest one.
// `split_class`: of the dims that ranks share, if not the streamed one.
Stage stage_along(const std::vector<Wanted>&, Graph, DimClasses, Roles, std::int64_t extent, const Room&,
                  int split_class = -1);

// The bytes that a rank may use for arrays besides those that live now.
std::int64_t free_share();
// Whether some file stands below the values: otherwise there is nothing to stream.
bool reads_files(const Graph&);

}  // namespace tessera::stream
