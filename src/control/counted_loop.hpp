// The op of scan and fori_loop, shared by its files.
#pragma once
#include "control/control_flow.hpp"
#include "transforms/forward.hpp"

namespace tessera {

// The mesh axes that split the steps of stacks. A stack that is read with such a split is broadcast block by
// block (Walk in program/program.hpp).
struct SplitSteps {
  Mesh mesh;
  std::vector<MeshAxes> read;  // for each stack that is read
  MeshAxes made;               // for stacks made, unless their entries are split over one of these axes
  friend bool operator==(const SplitSteps&, const SplitSteps&) = default;
};
inline std::uint64_t field_hash(const SplitSteps& s) {
  return mix(field_hash(s.mesh), mix(field_hash(s.read), field_hash(s.made)));
}
std::string field_text(const SplitSteps&);
// The split of the read stacks along the steps; nullopt if none is split. The first split stack determines
// the split of the stacks that are made.
std::optional<SplitSteps> split_steps_of(const std::vector<Array>& stacks);
// The mesh axes that split the steps of a stack that the loop makes of such entries; none if the entries are
// already split over one of them.
const MeshAxes& steps_made_over(const std::optional<SplitSteps>&, const Sharding& entry, int entry_ndim);

struct CountedParams {
  FunctionPtr body;  // (carried, entries, captures) -> (carried, entries)
  std::string name;  // "scan", "fori_loop"
  std::int64_t carried, stacks, length;
  bool reverse;
  std::optional<Mesh> mesh;  // nullopt: all operands are uncommitted
  std::optional<SplitSteps> split_steps = {};
  std::size_t n_carried() const { return static_cast<std::size_t>(carried); }
  bool is_stack(std::size_t operand) const {
    return operand >= n_carried() && operand < static_cast<std::size_t>(carried + stacks);
  }
  std::uint64_t agreed_hash() const {
    return mix(body->key().agreed, mix(field_hash(length), mix(field_hash(carried), field_hash(stacks))));
  }
  template <class V> void fields(V&& visit) const {
    visit("steps", length), visit("carried", carried), visit("stacks", stacks), visit("reverse", reverse),
        visit("body", body);
    if (split_steps) visit("steps_over", *split_steps);
  }
};

Cotangents vjp_of_counted_loop(const VjpArgs&);
std::vector<Array> jvp_of_counted_loop(const JvpArgs&);

}  // namespace tessera
