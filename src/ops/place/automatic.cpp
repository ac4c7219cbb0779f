#include "ops/place/automatic.hpp"

#include <utility>

#include "base/session.hpp"

namespace tessera {
namespace {
struct OpenLayouts {
  AutomaticLayouts* layouts = nullptr;
};
}  // namespace

std::optional<Sharding> AutomaticLayouts::layout_of(const std::string& name, const Array& x,
                                                    const Sharding& asked, bool may_stay_open) {
  const auto& own = output_of(x).sharding;
  const Mesh mesh = !asked.has_mesh_to_find() ? asked.mesh() : own ? own->mesh() : mesh_();
  const auto [at, is_new] = number_of_.try_emplace(
      name + " " + to_string(type_of(x)) + std::to_string(mesh.hash()), places_.size());
  if (is_new) {
    places_.push_back({name, type_of(x), mesh, may_stay_open});
    chosen_.push_back(may_stay_open ? std::nullopt : std::optional(Sharding::replicated(mesh)));
  }
  return chosen_[at->second];
}

AutomaticLayouts* open_layouts() { return state<OpenLayouts>().layouts; }
AutomaticScope::AutomaticScope(AutomaticLayouts* layouts)
    : outer_(std::exchange(state<OpenLayouts>().layouts, layouts)) {}
AutomaticScope::~AutomaticScope() { state<OpenLayouts>().layouts = outer_; }

}  // namespace tessera
