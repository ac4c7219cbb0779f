/// @file
/// Options of jit.
#pragma once
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/detail/tree_of.hpp>
#include <tessera/sharding.hpp>

namespace tessera {

/// None (by propagation), one sharding, P::automatic (the cheapest by search), or a list with one entry per
/// argument (or member of the result), possibly nested; an entry applies to all arrays below it.
class ShardingTree : public detail::TreeOf<ShardingTree, std::optional<Sharding>> {
 public:
  using TreeOf::TreeOf;
  ShardingTree() : TreeOf(std::optional<Sharding>()) {}
  /// None, or a sharding.
  ShardingTree(NoneType) : ShardingTree() {}
  ShardingTree(Sharding sharding) : TreeOf(std::optional(std::move(sharding))) {}
  ShardingTree(PositionalSharding sharding) : ShardingTree(Sharding(sharding)) {}
  ShardingTree(AutomaticSpec) : ShardingTree(Sharding::automatic()) {}
  ShardingTree(std::vector<ShardingTree> children) : TreeOf(std::move(children)) {}
  bool is_leaf() const { return children().empty(); }  ///< whether it is not a list
};

/// Options of jit.
///
/// P::automatic, as NamedSharding(mesh, P::automatic) or alone (then on the mesh of the committed arguments,
/// else of the named shardings, else one axis over all devices), is filled at the first call with a
/// signature: f is traced and planned with many layouts, as advise does, and the one of the least predicted
/// time is kept. Named layouts and committed arguments stay as they are. The search looks at shapes and rates
/// alone: all ranks find the same. explain shows what was chosen, and why.
struct JitOptions {
  ShardingTree in_shardings = {};   ///< required for committed arguments; uncommitted ones are placed there
  ShardingTree out_shardings = {};  ///< layouts of the results
  /// Arguments whose memory may be reused: the call deletes them. Negative numbers count from the end. What
  /// earlier calls read from them and is not computed yet keeps the value, and such memory is not reused.
  std::vector<int> donate_argnums = {};
  /// Numbers are always static; naming them here documents and checks it.
  std::vector<int> static_argnums = {};
  /// The trace is recorded in a ReproducibleScope: the same bits on any number of ranks.
  bool reproducible = false;
  /// For P::automatic: an upper bound of the busiest rank's peak memory, kept if a layout allows it; 0: no
  /// limit.
  std::int64_t memory_limit_bytes = 0;
};

}  // namespace tessera
