// Type-erased loops and branches: the implementation of control.hpp.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <vector>

#include <tessera/tree.hpp>

namespace tessera::detail {

bool is_unknown(const Array& x);  // has no readable value: depends on a traced argument, or differs per rank
bool any_unknown(const std::vector<Array>& leaves);
void check_predicate(const Array& predicate, const char* call, std::source_location);
// Throws unless the condition of while_loop is a bool scalar.
void check_condition(const Array& condition, std::source_location);
std::int64_t leading_size(const std::vector<Array>& leaves, std::source_location);
// The stacked results of the steps; split along the steps as xs.
std::vector<Array> stack_leaves(const std::vector<std::vector<Array>>& rows, const std::vector<Array>& xs,
                                std::source_location);
Array leading_entry(const Array& x, std::int64_t i, std::source_location);
// Whether a loop in a trace is long enough for an instruction of its own.
bool is_compiled_loop(std::int64_t steps, const std::vector<Array>& leaves);

struct LoopSite {
  const char* call;
  std::source_location where;
  std::vector<std::string> leaf_names;  // names of the carried leaves
};
using Leaves = std::vector<Array>;
using LeafFunction = std::function<Leaves(const Leaves&)>;
Leaves compiled_scan(const LoopSite&,
                     const std::function<Leaves(const Leaves& carried, const Leaves& entries)>& step,
                     const Leaves& init, const Leaves& xs);
Leaves compiled_fori(const LoopSite&, int lo, int hi,
                     const std::function<Leaves(const Array& i, const Leaves&)>& body, const Leaves& init);
// For a body that takes i as a number: nullopt if its steps do not record the same ops.
std::optional<Leaves> compiled_alike(const LoopSite&, int lo, int hi,
                                     const std::function<Leaves(int i, const Leaves&)>& body,
                                     const Leaves& init);
Leaves compiled_while(const LoopSite&, const LeafFunction& condition, const LeafFunction& body,
                      const Leaves& init);
Leaves compiled_cond(const Operand& predicate, const std::function<Leaves()>& where_true,
                     const std::function<Leaves()>& where_false);
// Results of a branch selected by a value, with the types that both branches have in common. The other branch
// is recorded for its types only, and dropped.
Leaves chosen_branch(const Operand& predicate, bool holds, Leaves taken,
                     const std::function<Leaves()>& other);
// A leaf carried from step to step: its shape and dtype must be the same after each step, as in a compiled
// loop.
struct CarriedLeaf {
  Shape shape;
  Dtype dtype;
  bool is_weak = false, is_known = false;  // unknown: an empty handle, which the body may be about to set
};
std::vector<CarriedLeaf> carried_leaves(const Leaves& init);
// Checks a body's results. Returns true if a number took the carried dtype.
bool settle_step(const LoopSite&, std::vector<CarriedLeaf>& carried, Leaves& returned);
void check_same_structure(const LoopSite&, const std::string& given, const std::string& returned);

// Whether a body's first parameter is an Array. A body with `auto` is called with a number, as outside a
// trace.
template <class F> struct IsPlainCallable : std::bool_constant < requires { &F::operator(); } > {};
template <class R, class... A> struct IsPlainCallable<R (*)(A...)> : std::true_type {};
template <class F, class T> constexpr bool takes_array_index() {
  if constexpr (IsPlainCallable<F>::value)
    return std::is_invocable_v<F&, const Array&, T>;
  else
    return false;
}

// Paths of the leaves of a tree: "[0]", ".first", "['bias']" concatenated, "" for a lone Array.
template <class T>
void append_leaf_names(const T& tree, const std::string& path, std::vector<std::string>& names) {
  const auto numbered = [&](std::size_t n) { return path + "[" + std::to_string(n) + "]"; };
  std::size_t n = 0;
  if constexpr (std::is_same_v<T, Array>) {
    names.push_back(path);
  } else if constexpr (IsMap<T>::value) {
    for (const auto& [key, child] : tree) append_leaf_names(child, path + "['" + key + "']", names);
  } else if constexpr (IsOptional<T>::value) {
    if (tree) append_leaf_names(*tree, path, names);
  } else if constexpr (IsVector<T>::value || IsStdArray<T>::value || TupleLike<T>) {
    for_each_child(tree, [&](const auto& child) { append_leaf_names(child, numbered(n++), names); });
  } else {  // an aggregate: its leaves by number
    for (const auto count = tree_leaves(tree).size(); n < count; ++n) names.push_back(numbered(n));
  }
}
template <class T> LoopSite site_of_loop(const char* call, std::source_location where, const T& init) {
  LoopSite site{call, where, {}};
  append_leaf_names(init, "", site.leaf_names);
  return site;
}
template <class T> T settled_step(const LoopSite& site, std::vector<CarriedLeaf>& carried, T returned) {
  auto leaves = tree_leaves(returned);
  return settle_step(site, carried, leaves) ? with_leaves(returned, leaves) : std::move(returned);
}
// The leaves of a body's result, which must have the structure of its argument.
template <class T> Leaves leaves_like(const LoopSite& site, const T& given, const T& returned) {
  check_same_structure(site, structure_of(given), structure_of(returned));
  return tree_leaves(returned);
}

}  // namespace tessera::detail
