// Type-erased calls of mapped functions: the implementation of maps.hpp.
#pragma once
#include <functional>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/detail/tree.hpp>

namespace tessera {

class SpecTree;
struct VmapOptions;
struct PmapOptions;
struct ShardMapOptions;

namespace detail {

// One type-erased call of a mapped function.
struct MappedCall {
  std::vector<Array> leaves;  // leaves of the arguments
  TreeShape args;             // a child per argument
  std::string structure;      // structure of the arguments, numbers included
  TreeShape result;           // set by body
  std::function<std::vector<Array>(const std::vector<Array>& leaves)> body;
};
class MapRule {
 public:
  virtual ~MapRule() = default;
  virtual std::vector<Array> apply(MappedCall& call) const = 0;  // the leaves of the result
};

std::shared_ptr<const MapRule> vmap_rule(VmapOptions, std::source_location);
std::shared_ptr<const MapRule> pmap_rule(PmapOptions, std::source_location);
std::shared_ptr<const MapRule> shard_map_rule(Mesh, SpecTree in_specs, SpecTree out_specs, ShardMapOptions,
                                              std::source_location);

}  // namespace detail
}  // namespace tessera
