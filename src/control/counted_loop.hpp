// The op of scan and fori_loop, between its files.
#pragma once
#include "control/control_flow.hpp"
#include "transforms/forward.hpp"

namespace tessera {

struct CountedParams {
  FunctionPtr body;  // (carried, entries, captures) -> (carried, entries)
  std::string name;  // "scan", "fori_loop"
  std::int64_t carried, stacks, length;
  bool reverse;
  std::optional<Mesh> mesh;  // nullopt: nothing is committed
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
  }
};

Cotangents vjp_of_counted_loop(const VjpArgs&);
std::vector<Array> jvp_of_counted_loop(const JvpArgs&);

}  // namespace tessera
