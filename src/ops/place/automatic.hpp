// The layouts that P::automatic stands for while a function is traced.
//
// The search of src/advise traces the function again with other choices. Each occurrence of P::automatic asks
// for its layout by a name: the first trace collects the names, later traces get the layouts chosen for them.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "graph/node.hpp"

namespace tessera {

class AutomaticLayouts {
 public:
  struct Place {
    std::string name;  // "argument 0", "with_sharding_constraint at train.cpp:12"
    Type type;
    Mesh mesh;
    bool may_stay_open;  // whether imposing no layout is one of the choices
  };
  // mesh: used if neither P::automatic nor the array has one.
  explicit AutomaticLayouts(std::function<Mesh()> mesh) : mesh_(std::move(mesh)) {}

  // The layout chosen for this name; nullopt if none is imposed, as in the first trace. Occurrences on the
  // same line with the same type share one choice.
  std::optional<Sharding> layout_of(const std::string& name, const Array& x, const Sharding& asked,
                                    bool may_stay_open);
  const std::vector<Place>& places() const { return places_; }
  void choose(std::size_t place, std::optional<Sharding> layout) { chosen_[place] = std::move(layout); }
  const std::optional<Sharding>& chosen(std::size_t place) const { return chosen_[place]; }

 private:
  std::function<Mesh()> mesh_;
  std::map<std::string, std::size_t> number_of_;
  std::vector<Place> places_;
  std::vector<std::optional<Sharding>> chosen_;
};

// The automatic layouts of the open trace; nullptr outside of a trace.
AutomaticLayouts* open_layouts();
class AutomaticScope {
 public:
  explicit AutomaticScope(AutomaticLayouts*);
  ~AutomaticScope();
  AutomaticScope(const AutomaticScope&) = delete;
  AutomaticScope& operator=(const AutomaticScope&) = delete;

 private:
  AutomaticLayouts* outer_;
};

}  // namespace tessera
