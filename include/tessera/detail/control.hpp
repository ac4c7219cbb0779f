// Implementation of control.hpp's templates.
#pragma once
#include <cstdint>
#include <optional>
#include <source_location>
#include <utility>
#include <vector>

#include <tessera/control.hpp>
#include <tessera/detail/loops.hpp>

namespace tessera {

namespace detail {
template <class T> inline constexpr bool is_pair = false;
template <class A, class B> inline constexpr bool is_pair<std::pair<A, B>> = true;
// A loop that starts with a plain number and whose body returns an array.
template <class T, class Returned> inline constexpr bool turns_into_array =
    std::is_arithmetic_v<T>&& std::is_same_v<Returned, Array>;
}  // namespace detail

namespace detail {

template <class F, class T> T fori_of_values(int lo, int hi, F body, T init, std::source_location where) {
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
  if (lo >= hi) return init;
  const auto site = detail::site_of_loop("fori_loop", where, init);
  auto carried = detail::carried_leaves(leaves);
  for (int i = lo; i < hi; ++i) init = detail::settled_step<T>(site, carried, body(i, std::move(init)));
  return init;
}

template <class F, class C, class X>
std::invoke_result_t<F&, C, X> scan_of_pairs(F f, C init, X xs, std::source_location where) {
  using Result = std::invoke_result_t<F&, C, X>;
  const auto leaves = tree_leaves(xs), carried = tree_leaves(init);
  const auto steps = detail::leading_size(leaves, where);
  std::optional<Result> last;
  auto both = carried;
  both.insert(both.end(), leaves.begin(), leaves.end());
  if (steps == 0 ||
      detail::is_compiled_loop(steps, both)) {  // also with no steps: recording one gives the result types
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
  const auto site = detail::site_of_loop("scan", where, init);
  auto kinds = detail::carried_leaves(carried);
  std::vector<std::vector<Array>> rows;
  auto carry = std::move(init);
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<Array> entries;
    for (const auto& x : leaves) entries.push_back(detail::leading_entry(x, i, where));
    last.emplace(f(std::move(carry), detail::with_leaves(xs, entries)));
    carry = detail::settled_step<C>(site, kinds, last->first);
    rows.push_back(tree_leaves(last->second));
  }
  return Result{std::move(carry),
                detail::with_leaves(last->second, detail::stack_leaves(rows, leaves, where))};
}

template <class F, class G, class... A>
std::invoke_result_t<F&, const A&...> cond_of_values(const Operand& predicate, F f, G g, const A&... args) {
  using Result = std::invoke_result_t<F&, const A&...>;
  detail::check_predicate(predicate.array, "cond", predicate.where);
  if (!detail::is_unknown(predicate.array)) {
    const bool holds = item<bool>(predicate.array, predicate.where);
    Result result = holds ? f(args...) : g(args...);
    const auto leaves = detail::chosen_branch(predicate, holds, tree_leaves(result), [&] {
      return holds ? tree_leaves(g(args...)) : tree_leaves(f(args...));
    });
    return detail::with_leaves(std::move(result), leaves);
  }
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

template <class C, class F, class T>
T while_of_values(C condition, F body, T init, std::source_location where) {
  const auto leaves = tree_leaves(init);
  const auto site = detail::site_of_loop("while_loop", where, init);
  if (!detail::any_unknown(leaves)) {
    auto carried = detail::carried_leaves(leaves);
    while (true) {
      const Array go_on = condition(init);
      detail::check_condition(go_on, where);
      if (detail::is_unknown(go_on)) break;  // the condition closes over a traced value: compiled below
      if (!item<bool>(go_on, where)) return init;
      init = detail::settled_step<T>(site, carried, body(std::move(init)));
    }
  }
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

}  // namespace detail

template <class F, class T> T fori_loop(int lo, int hi, F body, T init, std::source_location where) {
  if constexpr (detail::turns_into_array<T, std::invoke_result_t<F&, int, T>>)
    static_assert(
        detail::never<F>,
        "the body of fori_loop returns an Array and init is a number: write Array(0), or Array(0.f), "
        "as init");
  else
    return detail::fori_of_values(lo, hi, std::move(body), std::move(init), where);
}

template <class F, class C, class X>
std::invoke_result_t<F&, C, X> scan(F f, C init, X xs, std::source_location where) {
  using Result = std::invoke_result_t<F&, C, X>;
  if constexpr (detail::is_pair<Result>)
    return detail::scan_of_pairs(std::move(f), std::move(init), std::move(xs), where);
  else
    static_assert(
        detail::never<F>,
        "the body of scan returns a pair: write return std::pair{carry, y}, where both may be trees");
}

template <class F, class G, class... A>
std::invoke_result_t<F&, const A&...> cond(const Operand& predicate, F f, G g, const A&... args) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&, const A&...>>)
    static_assert(
        detail::never<F>,
        "the branches of cond return what they compute, and these return nothing: return an array, or "
        "write if (item<bool>(predicate)) outside of jit");
  else
    return detail::cond_of_values(predicate, std::move(f), std::move(g), args...);
}

template <class C, class F, class T> T while_loop(C condition, F body, T init, std::source_location where) {
  if constexpr (detail::turns_into_array<T, std::invoke_result_t<F&, T>>)
    static_assert(detail::never<F>,
                  "the body of while_loop returns an Array and init is a number: write Array(0), or "
                  "Array(0.f), as init");
  else
    return detail::while_of_values(std::move(condition), std::move(body), std::move(init), where);
}

}  // namespace tessera
