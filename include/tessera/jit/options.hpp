/// @file
/// Options of jit.
#pragma once
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/sharding.hpp>

namespace tessera {

/// None (leave it to the planner), one sharding, or a list with one entry per argument (or member of the
/// result), which may be lists again; an entry stands for all arrays below it.
class ShardingTree {
 public:
  ShardingTree() = default;
  /// None, a sharding, or a list in braces or a vector.
  ShardingTree(NoneType) {}
  ShardingTree(Sharding sharding) : sharding_(std::move(sharding)) {}
  ShardingTree(PositionalSharding sharding) : sharding_(Sharding(sharding)) {}
  ShardingTree(std::initializer_list<ShardingTree> children) : children_(children) {}
  ShardingTree(std::vector<ShardingTree> children) : children_(std::move(children)) {}
  bool is_leaf() const { return children_.empty(); }                       ///< whether it is no list
  const std::optional<Sharding>& value() const { return sharding_; }       ///< of a leaf; nothing for None
  const std::vector<ShardingTree>& children() const { return children_; }  ///< of a list

 private:
  std::optional<Sharding> sharding_;
  std::vector<ShardingTree> children_;
};

/// Options of jit.
struct JitOptions {
  ShardingTree in_shardings = {};   ///< committed arguments must lie there, uncommitted ones are placed there
  ShardingTree out_shardings = {};  ///< where results are left
  /// Arguments whose memory may be reused: deleted by the call. Negative: from the end.
  std::vector<int> donate_argnums = {};
  /// Numbers are static anyhow; named here for documentation, and checked.
  std::vector<int> static_argnums = {};
};

}  // namespace tessera
