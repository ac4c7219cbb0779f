/// @file
/// vmap, pmap, shard_map: functions written for one example, or one rank's block, of their arguments.
///
/// The mapped function takes and returns trees (tree.hpp); arrays are mapped, plain numbers are passed
/// unchanged. Its signature stays the same. Collectives by axis name (collectives.hpp) work inside. All three
/// nest with each other and work inside and outside jit and grad.
#pragma once
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/detail/mapped.hpp>
#include <tessera/detail/trace.hpp>
#include <tessera/detail/tree_of.hpp>
#include <tessera/tree.hpp>

namespace tessera {

/// For each argument, or for a whole subtree of arguments: the dim to map over (negative: from the end), None
/// for not mapped. A list is written in braces, or is a vector or a tuple.
/// 0   {0, None}   {0, {None, 1}}
class AxesTree : public detail::TreeOf<AxesTree, std::optional<int>> {
 public:
  using TreeOf::TreeOf;
  AxesTree(int axis) : TreeOf(std::optional(axis)) {}   ///< one dim for all
  AxesTree(NoneType) : TreeOf(std::optional<int>()) {}  ///< none is mapped
};
/// The same for specs: P("x")   {P("x"), P()}   {P("x"), {P(), P("x")}}
class SpecTree : public detail::TreeOf<SpecTree, PartitionSpec> {
 public:
  using TreeOf::TreeOf;
};

/// Options of vmap.
struct VmapOptions {
  AxesTree in_axes = 0;               ///< dims of the arguments
  AxesTree out_axes = 0;              ///< dims of the results that become the batch
  std::string axis_name = "";         ///< for collectives inside f; "": none
  std::optional<int> axis_size = {};  ///< required if nothing is mapped
};
/// Options of pmap.
struct PmapOptions {
  std::string axis_name = "";            ///< for collectives inside f; "": none
  AxesTree in_axes = 0;                  ///< dims of the arguments
  AxesTree out_axes = 0;                 ///< dims of the results that become the batch
  std::vector<Device> devices = {};      ///< empty: the first ones
  std::vector<int> donate_argnums = {};  ///< arguments that the call deletes
};
/// Options of shard_map.
struct ShardMapOptions {
  std::vector<std::string> axis_names = {};  ///< axes of which the function sees blocks; empty: all
  /// Refuses results that may differ between ranks along axes that their spec omits.
  bool check_vma = true;
};

/// A function with the signature of F that maps F over its arguments.
template <class F> class Mapped {
 public:
  /// For vmap, pmap and shard_map.
  Mapped(F function, std::shared_ptr<const detail::MapRule> rule)
      : function_(std::move(function)), rule_(std::move(rule)) {}

  /// f mapped over these arguments. Not collective: records.
  template <class... A> std::invoke_result_t<F&, const A&...> operator()(const A&... args) const;
  /// Arguments that the function does not accept: too few, too many, or of other types. Does not compile.
  template <class... A>
  requires(!std::is_invocable_v<F&, const A&...>) detail::WrongArguments operator()(const A&...) const {
    static_assert(detail::never<F, A...>,
                  "the transformed function is called with arguments that the function itself does not take: "
                  "too few, too many, or of other types");
    return {};
  }

 private:
  mutable F function_;
  std::shared_ptr<const detail::MapRule> rule_;
};

/// f on every example along the mapped dims at once. Not collective: calls record. f is called once; its ops
/// are then applied to whole batches. Results get the batch dim at out_axes. Errors: ArgumentError if mapped
/// sizes differ, if nothing is mapped and no axis_size is given, or if a result that depends on the example
/// has out_axes None.
template <class F>
Mapped<F> vmap(F f, VmapOptions options = {}, std::source_location where = std::source_location::current()) {
  return {std::move(f), detail::vmap_rule(std::move(options), where)};
}

/// Example i of the mapped dims on device i. Not collective: calls record. Devices are the first devices, or
/// options.devices. Arguments are moved there, results stay there. A pmap inside f maps over further devices.
/// Donated arguments are deleted after the call. Errors: as vmap; ShardingError if there are fewer devices
/// than examples.
template <class F>
Mapped<F> pmap(F f, PmapOptions options = {}, std::source_location where = std::source_location::current()) {
  return {std::move(f), detail::pmap_rule(std::move(options), where)};
}

/// f written for one rank. Not collective: calls record. f sees this rank's block of each argument, according
/// to its spec, and returns this rank's blocks of the results. Specs name axes of which f sees blocks
/// (options.axis_names) and may apply to whole subtrees. The planner handles the other axes of the mesh.
///
/// Arrays that f captures from outside appear whole. A size that the axes do not divide is allowed if no
/// block is empty, collectives get equal shapes on all ranks, and the blocks of the results are those of an
/// array; f is then called once more per block shape. Errors (ShardingError): specs that do not fit; results
/// that may differ between ranks although their spec promises one value.
template <class F> Mapped<F> shard_map(F f, Mesh mesh, SpecTree in_specs, SpecTree out_specs,
                                       ShardMapOptions options = {},
                                       std::source_location where = std::source_location::current()) {
  return {std::move(f), detail::shard_map_rule(std::move(mesh), std::move(in_specs), std::move(out_specs),
                                               std::move(options), where)};
}

}  // namespace tessera

#include <tessera/detail/maps.hpp>
