#include "ops/collective/axis_env.hpp"

#include "ops/build.hpp"

namespace tessera {
namespace {

thread_local std::vector<AxisBinding> bound;
thread_local std::uint64_t replayed = 0;
thread_local ShapeLog* shape_log = nullptr;

}  // namespace

AxisScope::AxisScope(std::vector<AxisBinding> bindings) : before_(bound.size()) {
  for (auto& b : bindings) bound.push_back(std::move(b));
}
AxisScope::~AxisScope() { bound.resize(before_); }

std::span<const AxisBinding> bound_axes() { return bound; }

const AxisBinding& find_axis(const std::string& name, const char* call, std::source_location where) {
  for (std::size_t i = bound.size(); i-- > 0;)
    if (bound[i].name == name && !name.empty()) return bound[i];
  std::string known;
  for (std::size_t i = bound.size(); i-- > 0;)
    if (!bound[i].name.empty())
      known +=
          (known.empty() ? "" : ", ") + ("'" + bound[i].name + "' (size " + std::to_string(bound[i].size) +
                                         ", by " + bound[i].bound_by + ")");
  throw AxisNameError(call_text(call, where) + ": no axis is called '" + name + "' here; " +
                      (known.empty() ? "no axis name is bound" : "bound are " + known) +
                      ". Names are bound by shard_map (the manual axes of its mesh), pmap and vmap (option "
                      "axis_name), while they run the mapped function");
}

RegionPtr current_region() {
  for (std::size_t i = bound.size(); i-- > 0;)
    if (bound[i].region) return bound[i].region;
  return nullptr;
}

std::uint64_t next_frame() {
  static std::uint64_t frame = 0;
  return ++frame;
}
std::uint64_t replayed_frame() { return replayed; }
ReplayScope::ReplayScope(std::uint64_t frame) : before_(replayed) { replayed = frame; }
ReplayScope::~ReplayScope() { replayed = before_; }

ShapeLog::ShapeLog() : before_(shape_log) { shape_log = this; }
ShapeLog::~ShapeLog() { shape_log = before_; }
void ShapeLog::note(const char* call, std::source_location where, const Shape& shape) {
  for (ShapeLog* log = shape_log; log != nullptr; log = log->before_)
    log->met.push_back({call_text(call, where), shape});
}

}  // namespace tessera
