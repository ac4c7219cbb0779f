// Implementation of grad.hpp's templates.
#pragma once
#include <source_location>

#include <tessera/grad.hpp>

namespace tessera {

template <class F, class... A> auto vjp(F f, const A&... args) {
  detail::AllArguments<A...> arguments;
  detail::Recording recording("vjp", std::source_location());
  auto result = arguments.call(f, recording, false, args...);
  recording.finish(tree_leaves(result));
  using R = decltype(result);
  Pullback<R, A...> pullback(arguments, std::move(recording), result, args...);
  return std::pair<R, Pullback<R, A...>>(std::move(result), std::move(pullback));
}

template <class F, class... A, class... T>
auto jvp(F f, std::tuple<A...> primals, std::tuple<T...> tangents, std::source_location where) {
  static_assert(sizeof...(A) == sizeof...(T), "jvp: as many tangents as primals");
  std::vector<Array> directions;
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    const auto add = [&](const auto& primal, const auto& tangent) {
      const auto expected = detail::structure_without_numbers(primal),
                 given = detail::structure_without_numbers(tangent);
      if (expected != given) detail::throw_structure_mismatch("jvp", where, "a tangent", expected, given);
      detail::append_leaves(tangent, directions);
    };
    (add(detail::Differentiated<A>(std::get<i>(primals)), detail::Differentiated<T>(std::get<i>(tangents))),
     ...);
  }
  (std::index_sequence_for<A...>{});
  detail::AllArguments<A...> arguments;
  detail::Recording recording("jvp", where);
  auto result =
      std::apply([&](const A&... primal) { return arguments.call(f, recording, false, primal...); }, primals);
  recording.finish(tree_leaves(result));
  auto tangent = detail::with_leaves(result, recording.push_forward(std::move(directions)));
  return std::pair<decltype(result), decltype(result)>(std::move(result), std::move(tangent));
}

}  // namespace tessera
