// Implementation of jit.hpp's templates.
#pragma once
#include <optional>
#include <source_location>
#include <tuple>
#include <utility>
#include <vector>

#include <tessera/jit.hpp>

namespace tessera {

template <class F> template <class... A>
std::invoke_result_t<F&, const A&...> Jitted<F>::operator()(const A&... args) const {
  using R = std::invoke_result_t<F&, const A&...>;
  using Args = detail::TraceArgs<F, A...>;
  if constexpr (detail::returns_something<F, A...>()) {
    const Args converted(args...);
    auto request = detail::request_of(converted, options_, where_);
    if (detail::inside_trace(request.leaves)) {
      const detail::InlinedTrace inlined(options_.reproducible);
      return std::apply(*f_, converted);
    }
    auto& programs = programs_of<R, Args>();
    std::string signature = structure_key(converted);
    detail::signature_of(request, signature);
    auto program = programs.find(signature);
    if (!program) {
      detail::report_miss(signature, programs.last_signature);
      program = programs.add(signature, trace(converted, request).compile());
    }
    return program->run(request.leaves);
  }
}
template <class F> template <class... A>
Lowered<std::invoke_result_t<F&, const A&...>> Jitted<F>::lower(const A&... args) const {
  const detail::TraceArgs<F, A...> converted(args...);
  return trace(converted, detail::request_of(converted, options_, where_));
}

// The programs of one signature type, which is identified by an address.
template <class F> template <class R, class Args>
detail::Programs<Compiled<R>>& Jitted<F>::programs_of() const {
  static const char tag = 0;
  auto& slot = (*programs_)[&tag];
  if (!slot) slot = std::make_shared<detail::Programs<Compiled<R>>>();
  return *static_cast<detail::Programs<Compiled<R>>*>(slot.get());
}
template <class F> template <class Args> std::string Jitted<F>::structure_key(const Args& args) {
  if constexpr (detail::only_arrays<Args>)
    return {};
  else
    return detail::structure_of(args);
}
template <class F> template <class Args>
auto Jitted<F>::trace(const Args& args, const detail::TraceRequest& request) const {
  using Result = std::remove_cvref_t<decltype(std::apply(*f_, std::declval<Args&>()))>;
  std::optional<Result> result;
  auto core = detail::trace_with_layouts(request, [&] {
    const auto placeholders = detail::start_trace(request, detail::shape_of_tree(args));
    const detail::TraceEnd end;
    std::size_t next = 0;
    Args traced = detail::with_leaves(args, placeholders, next);
    result.emplace(std::apply(*f_, traced));
    return detail::finish_trace(request, placeholders, tree_leaves(*result), detail::shape_of_tree(*result));
  });
  std::vector<bool> donated;
  for (const int argument : request.leaf_argument)
    donated.push_back(detail::names_argument(options_.donate_argnums, argument, std::tuple_size_v<Args>));
  return Lowered<Result>(std::move(core), std::move(*result), std::move(donated));
}

namespace detail {
// The arguments with other layouts of their arrays, whose values do not matter.
template <class Tuple> Tuple with_layouts(Tuple args, const std::vector<Sharding>& shardings) {
  std::size_t i = 0;
  walk_tree(
      args,
      [&](Array& x) {
        x = device_put(zeros(x.shape(), x.dtype()), shardings[i]);
        ++i;
      },
      [](const auto&) {});
  return args;
}
template <class Tuple> std::vector<Leaf> leaves_of(const Tuple& args) {
  std::vector<Leaf> leaves;
  walk_tree(
      args, [&](const Array& x) { leaves.push_back(leaf_of(x)); }, [](const auto&) {});
  return leaves;
}
}  // namespace detail

template <class F, class... A> Explanation explain(const Jitted<F>& f, const A&... args) {
  const std::tuple<A...> given(args...);
  return detail::with_hint(f.lower(args...).compile().explanation(), detail::leaves_of(given),
                           [&](const std::vector<Sharding>& shardings) {
                             return std::apply(
                                 [&](const auto&... x) { return f.lower(x...).compile().explanation(); },
                                 detail::with_layouts(given, shardings));
                           });
}
template <class F, class... A> Explanation explain(F f, const A&... args) {
  return explain(jit(std::move(f), {}, std::source_location()), args...);
}

template <class F, class... A> auto eval_shape(F f, const A&... args) {
  const detail::TraceArgs<F, A...> converted(args...);
  const auto request = detail::request_of(converted, {}, std::source_location());
  const auto placeholders = detail::start_trace(request, detail::shape_of_tree(converted));
  const detail::TraceEnd end;
  std::size_t next = 0;
  const auto result = std::apply(f, detail::with_leaves(converted, placeholders, next));
  if constexpr (std::is_same_v<std::remove_const_t<decltype(result)>, Array>) {
    return ShapeDtype{result.shape(), result.dtype()};
  } else {
    std::vector<ShapeDtype> shapes;
    for (const auto& x : tree_leaves(result)) shapes.push_back({x.shape(), x.dtype()});
    return shapes;
  }
}

}  // namespace tessera
