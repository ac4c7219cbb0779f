// Control flow whose decisions may depend on values (API section 5). Outside a trace these are plain C++
// loops and branches on values. Inside jit, vmap and the like they are one instruction of the compiled
// program that owns its body: a loop of 10,000 steps is as large as one of ten, and of a branch one side
// runs. Loops of up to 8 steps are unrolled there.
//
// What a loop carries keeps its structure, shapes, dtypes and layout; the error that says otherwise names
// the leaf. A carried value without a layout gets that in which the body leaves it; a body that leaves one
// elsewhere than it was moves it back in every step, if that moves less than carrying it there (see
// explain). Arrays that a body reads from around it are gradients' and vmap's operands like all others; what
// does not change from step to step is computed once.
#pragma once
#include <functional>
#include <optional>
#include <source_location>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera {
namespace detail {

bool is_unknown(const Array& x);  // depends on an argument of a traced function, or is each rank's own: there
                                  // is no value to look at
bool any_unknown(const std::vector<Array>& leaves);
void check_predicate(const Array& predicate, const char* call);
std::int64_t leading_size(const std::vector<Array>& leaves);
std::vector<Array> stack_leaves(const std::vector<std::vector<Array>>& rows);
Array leading_entry(const Array& x, std::int64_t i);
// A loop in a trace that is long enough for an instruction of its own.
bool is_compiled_loop(std::int64_t steps, const std::vector<Array>& leaves);

struct LoopSite {
  const char* call;
  std::source_location where;
  std::vector<std::string> leaf_names;  // of what is carried
};
using Leaves = std::vector<Array>;
using LeafFunction = std::function<Leaves(const Leaves&)>;
Leaves compiled_scan(const LoopSite&,
                     const std::function<Leaves(const Leaves& carried, const Leaves& entries)>& step,
                     const Leaves& init, const Leaves& xs);
Leaves compiled_fori(const LoopSite&, int lo, int hi,
                     const std::function<Leaves(const Array& i, const Leaves&)>& body, const Leaves& init);
// For a body that wants i as a number: nullopt when its steps do not record the same ops.
std::optional<Leaves> compiled_alike(const LoopSite&, int lo, int hi,
                                     const std::function<Leaves(int i, const Leaves&)>& body,
                                     const Leaves& init);
Leaves compiled_while(const LoopSite&, const LeafFunction& condition, const LeafFunction& body,
                      const Leaves& init);
Leaves compiled_cond(const Array& predicate, const std::function<Leaves()>& where_true,
                     const std::function<Leaves()>& where_false);
void check_same_structure(const LoopSite&, const std::string& given, const std::string& returned);

// A body whose first parameter is an Array. One with `auto` is called with a number, as outside a trace.
template <class F> struct IsPlainCallable : std::bool_constant < requires { &F::operator(); } > {};
template <class R, class... A> struct IsPlainCallable<R (*)(A...)> : std::true_type {};
template <class F, class T> constexpr bool takes_array_index() {
  if constexpr (IsPlainCallable<F>::value)
    return std::is_invocable_v<F&, const Array&, T>;
  else
    return false;
}

// Where the leaves of a tree stand: "[0]", ".first", "['bias']" after one another, "" for an Array by itself.
template <class T>
void append_leaf_names(const T& tree, const std::string& path, std::vector<std::string>& names) {
  if constexpr (std::is_same_v<T, Array>) {
    names.push_back(path);
  } else if constexpr (IsVector<T>::value || IsStdArray<T>::value) {
    std::size_t n = 0;
    for (const auto& child : tree) append_leaf_names(child, path + "[" + std::to_string(n++) + "]", names);
  } else if constexpr (IsMap<T>::value) {
    for (const auto& [key, child] : tree) append_leaf_names(child, path + "['" + key + "']", names);
  } else if constexpr (IsOptional<T>::value) {
    if (tree) append_leaf_names(*tree, path, names);
  } else if constexpr (TupleLike<T>) {
    std::size_t n = 0;
    std::apply(
        [&](const auto&... child) {
          (append_leaf_names(child, path + "[" + std::to_string(n++) + "]", names), ...);
        },
        tree);
  } else {
    std::size_t n = 0;  // an aggregate: its members by number
    for (const auto& leaf : tree_leaves(tree))
      static_cast<void>(leaf), names.push_back(path + "[" + std::to_string(n++) + "]");
  }
}
template <class T> LoopSite site_of_loop(const char* call, std::source_location where, const T& init) {
  LoopSite site{call, where, {}};
  append_leaf_names(init, "", site.leaf_names);
  return site;
}
// The leaves of what a body returned, which must be a tree like what it was given.
template <class T> Leaves leaves_like(const LoopSite& site, const T& given, const T& returned) {
  check_same_structure(site, structure_of(given), structure_of(returned));
  return tree_leaves(returned);
}

}  // namespace detail

// body(i, value) for i in [lo, hi). In a trace, a body that takes i as an Array is recorded once; one that
// takes a number is called for every i, and the loop is unrolled when the steps differ in more than the
// numbers that they use.
template <class F, class T>
T fori_loop(int lo, int hi, F body, T init, std::source_location where = std::source_location::current()) {
  const auto leaves = tree_leaves(init);
  if (!leaves.empty() && detail::is_compiled_loop(std::int64_t{hi} - lo, leaves)) {
    const auto site = detail::site_of_loop("fori_loop", where, init);
    const auto step = [&](const auto& i, const std::vector<Array>& values) {
      const T given = detail::with_leaves(init, values);
      const T returned = body(i, T(given));
      return detail::leaves_like(site, given, returned);
    };
    if constexpr (detail::takes_array_index<F, T>()) {
      return detail::with_leaves(init, detail::compiled_fori(site, lo, hi, step, leaves));
    } else if (const auto results = detail::compiled_alike(site, lo, hi, step, leaves)) {
      return detail::with_leaves(init, *results);
    }
  }
  for (int i = lo; i < hi; ++i) init = body(i, std::move(init));
  return init;
}

// f(carry, x) -> pair{carry, y} along the leading dim of xs; returns the last carry and the ys stacked. In a
// trace the leading dim of xs is made whole on every rank, once; the ys have it whole. ShapeError when the
// leading sizes of xs differ.
template <class F, class C, class X>
std::invoke_result_t<F&, C, X> scan(F f, C init, X xs,
                                    std::source_location where = std::source_location::current()) {
  using Result = std::invoke_result_t<F&, C, X>;
  const auto leaves = tree_leaves(xs), carried = tree_leaves(init);
  const auto steps = detail::leading_size(leaves);
  std::optional<Result> last;
  auto both = carried;
  both.insert(both.end(), leaves.begin(), leaves.end());
  if (steps == 0 ||
      detail::is_compiled_loop(steps, both)) {  // of no steps: recording one tells the types of the results
    const auto site = detail::site_of_loop("scan", where, init);
    const auto results = detail::compiled_scan(
        site,
        [&](const std::vector<Array>& values, const std::vector<Array>& entries) {
          last.emplace(f(detail::with_leaves(init, values), detail::with_leaves(xs, entries)));
          const C returned = last->first;
          auto all = detail::leaves_like(site, init, returned);
          detail::append_leaves(last->second, all);
          return all;
        },
        carried, leaves);
    std::size_t next = 0;
    C carry = detail::with_leaves(init, results, next);
    return Result{std::move(carry), detail::with_leaves(last->second, results, next)};
  }
  std::vector<std::vector<Array>> rows;
  auto carry = std::move(init);
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<Array> entries;
    for (const auto& x : leaves) entries.push_back(detail::leading_entry(x, i));
    last.emplace(f(std::move(carry), detail::with_leaves(xs, entries)));
    carry = last->first;
    rows.push_back(tree_leaves(last->second));
  }
  return Result{std::move(carry), detail::with_leaves(last->second, detail::stack_leaves(rows))};
}

// pred ? f(args...) : g(args...): only one of them runs. In a trace both are recorded and must return the
// same structure, shapes and dtypes; the predicate is made the same on all ranks, which enter the same
// branch together. Where a predicate differs from rank to rank of a mapped function, or from example to
// example of vmap, both branches run and the results are selected from.
template <class F, class G, class... A>
std::invoke_result_t<F&, const A&...> cond(const Array& predicate, F f, G g, const A&... args) {
  using Result = std::invoke_result_t<F&, const A&...>;
  detail::check_predicate(predicate, "cond");
  if (!detail::is_unknown(predicate)) return item<bool>(predicate) ? f(args...) : g(args...);
  std::optional<Result> a;
  const auto results = detail::compiled_cond(
      predicate,
      [&] {
        a.emplace(f(args...));
        return tree_leaves(*a);
      },
      [&] { return tree_leaves(g(args...)); });
  return detail::with_leaves(std::move(*a), results);
}

// value = init; while (condition(value)) value = body(value). In a trace the number of steps is not known:
// there is jvp, but no gradient (use fori_loop or scan). Mapped by vmap it runs until all examples are done,
// those that are keep their values.
template <class C, class F, class T>
T while_loop(C condition, F body, T init, std::source_location where = std::source_location::current()) {
  const auto leaves = tree_leaves(init);
  if (!detail::any_unknown(leaves)) {
    while (true) {
      const Array go_on = condition(init);
      detail::check_predicate(go_on, "while_loop");
      if (detail::is_unknown(go_on)) break;  // closes over a traced value: compiled below
      if (!item<bool>(go_on)) return init;
      init = body(std::move(init));
    }
  }
  const auto site = detail::site_of_loop("while_loop", where, init);
  const auto results = detail::compiled_while(
      site,
      [&](const std::vector<Array>& values) {
        return std::vector<Array>{Array(condition(detail::with_leaves(init, values)))};
      },
      [&](const std::vector<Array>& values) {
        const T given = detail::with_leaves(init, values);
        const T returned = body(T(given));
        return detail::leaves_like(site, given, returned);
      },
      tree_leaves(init));
  return detail::with_leaves(init, results);
}

}  // namespace tessera
