// The members of a plain aggregate, through structured bindings: what C++20 has in place of reflection.
#pragma once
#include <cstddef>
#include <type_traits>

namespace tessera::detail {

// Converts to anything, so that T{AnyField{}, ...} compiles for as many members as T has.
struct AnyField {
  template <class T> operator T() const;
};
// The number of members; 0 when there are more than 16.
template <class T, class... Fields> constexpr std::size_t field_count() {
  if constexpr (sizeof...(Fields) > 16)
    return 0;
  else if constexpr (!requires { T{Fields{}..., AnyField{}}; })
    return sizeof...(Fields);
  else
    return field_count<T, Fields..., AnyField>();
}

// visit(member, member, ...). One branch per number of members: a structured binding must name each.
template <class T, class F> auto with_fields(T& value, F&& visit) {
  constexpr std::size_t n = field_count<std::remove_const_t<T>>();
  static_assert(n >= 1 && n <= 16, "a tree may be an aggregate of 1 to 16 members");
  if constexpr (n == 1) {
    auto& [a] = value;
    return visit(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = value;
    return visit(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = value;
    return visit(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = value;
    return visit(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = value;
    return visit(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = value;
    return visit(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    return visit(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    return visit(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    return visit(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    return visit(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    return visit(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = value;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, o);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = value;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p);
  } else if constexpr (n == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = value;
    return visit(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q);
  }
}

}  // namespace tessera::detail
