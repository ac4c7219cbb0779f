// The axis names bound at the current point of a trace: a stack that shard_map, pmap and vmap push to while
// they trace a function.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "graph/op.hpp"

namespace tessera {

struct AxisBinding {
  std::string name;
  std::int64_t size = 1;
  std::string bound_by;  // "vmap at train.cpp:12"
  // vmap: the frame's number and its index, a scalar placeholder. Collectives over the frame have it as
  // operand, so that they depend on the frame.
  std::uint64_t frame = 0;
  Array index;
  // shard_map, pmap: a manual axis of the region's mesh.
  RegionPtr region;
  int mesh_axis = -1;
};

class AxisScope {
 public:
  explicit AxisScope(std::vector<AxisBinding> bindings);
  ~AxisScope();
  AxisScope(const AxisScope&) = delete;
  AxisScope& operator=(const AxisScope&) = delete;

 private:
  std::size_t before_;
};

std::span<const AxisBinding> bound_axes();  // outermost first
// The innermost binding of a name; AxisNameError lists the bound names and the transformations that bind
// names.
const AxisBinding& find_axis(const std::string& name);
// The region of the innermost shard_map or pmap; nullptr if there is none.
RegionPtr current_region();

std::uint64_t next_frame();
// The vmap frame whose batch rules are being applied: collectives over it become arithmetic, collectives over
// other frames are kept.
std::uint64_t replayed_frame();
class ReplayScope {
 public:
  explicit ReplayScope(std::uint64_t frame);
  ~ReplayScope();
  ReplayScope(const ReplayScope&) = delete;
  ReplayScope& operator=(const ReplayScope&) = delete;

 private:
  std::uint64_t before_;
};

// Shapes that collectives see inside an uneven shard_map, in which each rank traces its own function: they
// must be equal on all ranks.
struct LoggedShape {
  std::string call;  // "psum at train.cpp:12"
  Shape shape;
};
class ShapeLog {
 public:
  ShapeLog();
  ~ShapeLog();
  ShapeLog(const ShapeLog&) = delete;
  ShapeLog& operator=(const ShapeLog&) = delete;
  std::vector<LoggedShape> shapes;
  static void note(const Shape&);
  // Notes that what was logged since `begin` is in a loop of so many steps, which must be equal, too.
  static void note_loop(std::size_t begin, std::int64_t steps);
  static std::size_t size();

 private:
  ShapeLog* before_;
};

}  // namespace tessera
