#include "ops/collective/axis_env.hpp"

#include "base/session.hpp"
#include "ops/build.hpp"

namespace tessera {
namespace {

struct AxisNames {
  std::vector<AxisBinding> bound;
  std::uint64_t frames = 0, replayed = 0;
  ShapeLog* shape_log = nullptr;
};
AxisNames& names() { return state<AxisNames>(); }

}  // namespace

AxisScope::AxisScope(std::vector<AxisBinding> bindings) {
  check_thread("vmap, pmap or shard_map");
  before_ = names().bound.size();
  for (auto& b : bindings) names().bound.push_back(std::move(b));
}
AxisScope::~AxisScope() { names().bound.resize(before_); }

std::span<const AxisBinding> bound_axes() { return names().bound; }

const AxisBinding& find_axis(const std::string& name) {
  const auto& bound = names().bound;
  for (std::size_t i = bound.size(); i-- > 0;)
    if (bound[i].name == name && !name.empty()) return bound[i];
  std::string known;
  for (std::size_t i = bound.size(); i-- > 0;)
    if (!bound[i].name.empty())
      known +=
          (known.empty() ? "" : ", ") + ("'" + bound[i].name + "' (size " + std::to_string(bound[i].size) +
                                         ", by " + bound[i].bound_by + ")");
  throw AxisNameError(call_text() + ": no axis is called '" + name + "' here; " +
                      (known.empty() ? "no axis name is bound" : "bound are " + known) +
                      ". Names are bound by shard_map (the manual axes of its mesh), pmap and vmap (option "
                      "axis_name), while they run the mapped function");
}

RegionPtr current_region() {
  const auto& bound = names().bound;
  for (std::size_t i = bound.size(); i-- > 0;)
    if (bound[i].region) return bound[i].region;
  return nullptr;
}

std::uint64_t next_frame() { return ++names().frames; }
std::uint64_t replayed_frame() { return names().replayed; }
ReplayScope::ReplayScope(std::uint64_t frame) : before_(std::exchange(names().replayed, frame)) {}
ReplayScope::~ReplayScope() { names().replayed = before_; }

ShapeLog::ShapeLog() : before_(std::exchange(names().shape_log, this)) {}
ShapeLog::~ShapeLog() { names().shape_log = before_; }
void ShapeLog::note(const Shape& shape) {
  for (ShapeLog* log = names().shape_log; log != nullptr; log = log->before_)
    log->shapes.push_back({call_text(), shape});
}
std::size_t ShapeLog::size() { return names().shape_log ? names().shape_log->shapes.size() : 0; }
void ShapeLog::note_loop(std::size_t begin, std::int64_t steps) {
  if (size() == begin) return;
  for (ShapeLog* log = names().shape_log; log != nullptr; log = log->before_)
    log->shapes.push_back({call_text() + " with " + std::to_string(steps) + " steps", Shape{}});
}

}  // namespace tessera
