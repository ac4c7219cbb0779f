// Control flow whose decisions may depend on values (API section 5). Outside a trace these are plain C++ loops and branches on values;
// inside jit they become part of the compiled program.
#pragma once
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/ops.hpp>
#include <tessera/tree.hpp>

namespace tessera {
namespace detail {

bool is_unknown(const Array& x);  // depends on an argument of a traced function: has no value yet
bool any_unknown(const std::vector<Array>& leaves);
void check_predicate(const Array& predicate, const char* call);
std::vector<Array> select_leaves(const Array& predicate, const std::vector<Array>& a, const std::vector<Array>& b);
using LeafFunction = std::function<std::vector<Array>(const std::vector<Array>&)>;
std::vector<Array> record_while(const LeafFunction& condition, const LeafFunction& body, const std::vector<Array>& init,
                                std::source_location where);
std::vector<Array> stack_leaves(const std::vector<std::vector<Array>>& rows);
std::int64_t leading_size(const std::vector<Array>& leaves);
Array leading_entry(const Array& x, std::int64_t i);

}  // namespace detail

// body(i, value) for i in [lo, hi). The loop is unrolled into the graph: it can be differentiated and mapped.
template <class F, class T> T fori_loop(int lo, int hi, F body, T init) {
  for (int i = lo; i < hi; ++i) init = body(i, std::move(init));
  return init;
}

// f(carry, x) -> pair{carry, y} along the leading dim of xs; returns the last carry and the ys stacked. Unrolled like fori_loop.
// ShapeError when the leading sizes of xs differ.
template <class F, class C, class X> std::invoke_result_t<F&, C, X> scan(F f, C init, X xs) {
  using Result = std::invoke_result_t<F&, C, X>;
  const auto leaves = tree_leaves(xs);
  const auto steps = detail::leading_size(leaves);
  std::vector<std::vector<Array>> rows;
  auto carry = std::move(init);
  std::optional<Result> last;
  for (std::int64_t i = 0; i < steps; ++i) {
    std::vector<Array> entries;
    for (const auto& x : leaves) entries.push_back(detail::leading_entry(x, i));
    last.emplace(f(std::move(carry), detail::with_leaves(xs, entries)));
    carry = last->first;
    rows.push_back(tree_leaves(last->second));
  }
  if (!last) throw ArgumentError("scan: the leading dimension is 0, so the type of the stacked results is not known");
  return Result{std::move(carry), detail::with_leaves(last->second, detail::stack_leaves(rows))};
}

// pred ? f(args...) : g(args...). Where pred has a value only one of them runs. Inside a trace both are computed and one is selected
// (gradients flow through the selected one); their results must have the same shapes and dtypes.
template <class F, class G, class... A> std::invoke_result_t<F&, const A&...> cond(const Array& predicate, F f, G g, const A&... args) {
  detail::check_predicate(predicate, "cond");
  if (!detail::is_unknown(predicate)) return item<bool>(predicate) ? f(args...) : g(args...);
  auto a = f(args...);
  const auto b = g(args...);
  return detail::with_leaves(a, detail::select_leaves(predicate, tree_leaves(a), tree_leaves(b)));
}

// value = init; while (condition(value)) value = body(value). body keeps shapes and dtypes. Inside a trace one loop instruction is
// compiled, whose condition is evaluated at run time; it has no gradient (use fori_loop or scan) and cannot be mapped over.
template <class C, class F, class T> T while_loop(C condition, F body, T init) {
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
  const auto results = detail::record_while(
      [&](const std::vector<Array>& values) { return std::vector<Array>{Array(condition(detail::with_leaves(init, values)))}; },
      [&](const std::vector<Array>& values) { return tree_leaves(body(detail::with_leaves(init, values))); }, tree_leaves(init),
      std::source_location::current());
  return detail::with_leaves(init, results);
}

}  // namespace tessera
