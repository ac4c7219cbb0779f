// Implementation of maps.hpp's templates.
#pragma once
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/maps.hpp>

namespace tessera {

template <class F> template <class... A>
std::invoke_result_t<F&, const A&...> Mapped<F>::operator()(const A&... args) const {
  if constexpr (detail::returns_something<F, A...>()) {
    using Result = std::decay_t<std::invoke_result_t<F&, const A&...>>;
    std::optional<Result> result;
    detail::MappedCall call;
    (detail::append_leaves(args, call.leaves), ...);
    (call.args.children.push_back(detail::shape_of_tree(args)), ...);
    (detail::structure_text(args, call.structure), ...);
    call.body = [&](const std::vector<Array>& leaves) {
      std::size_t next = 0;
      const std::tuple<A...> replaced{detail::with_leaves(args, leaves, next)...};
      result.emplace(std::apply(
          [&](const A&... a) -> std::invoke_result_t<F&, const A&...> { return function_(a...); }, replaced));
      call.result = detail::shape_of_tree(*result);
      return tree_leaves(*result);
    };
    auto leaves = rule_->apply(call);
    return detail::with_leaves(std::move(*result), leaves);
  }
}

}  // namespace tessera
