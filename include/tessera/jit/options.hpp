// Options of jit.
#pragma once
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <tessera/sharding.hpp>

namespace tessera {

// None (leave it to the planner), one sharding, or a list with one entry per argument (or member of the
// result), which may be lists again; an entry stands for all arrays below it.
class ShardingTree {
 public:
  ShardingTree() = default;
  ShardingTree(NoneType) {}
  ShardingTree(Sharding sharding) : sharding_(std::move(sharding)) {}
  ShardingTree(PositionalSharding sharding) : sharding_(Sharding(sharding)) {}
  ShardingTree(std::initializer_list<ShardingTree> children) : children_(children) {}
  ShardingTree(std::vector<ShardingTree> children) : children_(std::move(children)) {}
  bool is_leaf() const { return children_.empty(); }
  const std::optional<Sharding>& value() const { return sharding_; }
  const std::vector<ShardingTree>& children() const { return children_; }

 private:
  std::optional<Sharding> sharding_;
  std::vector<ShardingTree> children_;
};

struct JitOptions {
  ShardingTree in_shardings =
      {};  // a committed argument with another sharding is refused; an uncommitted one is placed there
  ShardingTree out_shardings = {};
  std::vector<int> donate_argnums =
      {};  // their memory may be reused; they are deleted by the call. Negative ones count from the end
  std::vector<int> static_argnums =
      {};  // numbers are static anyhow; named here for documentation and checked
};

}  // namespace tessera
