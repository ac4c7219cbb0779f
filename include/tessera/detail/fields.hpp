// The members of a tree class: those that TESSERA_TREE names, or those of a plain aggregate through
// structured bindings, in place of reflection, which C++20 lacks.
#pragma once
#include <cstddef>
#include <tuple>
#include <type_traits>

#include <tessera/detail/standard.hpp>

namespace tessera::detail {

// Converts to any type, so that T{AnyField{}, ...} compiles for up to as many members as T has.
struct AnyField {
  template <class T> operator T() const;
};
// The number of members; 0 if there are more than 16.
template <class T, class... Fields> constexpr std::size_t field_count() {
  if constexpr (sizeof...(Fields) > 16)
    return 0;
  else if constexpr (!requires { T{Fields{}..., AnyField{}}; })
    return sizeof...(Fields);
  else
    return field_count<T, Fields..., AnyField>();
}

// Accesses the member that TESSERA_TREE adds to a class.
struct TreeAccess {
  template <class T> static constexpr bool named = requires { typename T::TesseraTree; };
  template <class T> static auto members(T& value) {
    static_assert(
        std::is_same_v<typename T::TesseraTree, std::remove_const_t<T>>,
        "TESSERA_TREE of the base class does not know this class's members: write one in this class, "
        "with the inherited members");
    return value.tessera_members();
  }
};
// Reports each error about a type only once.
template <class T> struct TreeNode {
  static constexpr bool is_named = TreeAccess::named<T>;
  static_assert(
      is_named || std::is_aggregate_v<T>,
      "this class is no tree: trees are Array, numbers, tuple, pair, vector, array, map<string, tree> "
      "and plain aggregates of those. In a class with private members or constructors write "
      "TESSERA_TREE(Class, member, member)");
  static constexpr std::size_t size() {
    if constexpr (is_named || !std::is_aggregate_v<T>)
      return 0;
    else
      return field_count<T>();
  }
  static_assert(
      is_named || !std::is_aggregate_v<T> || (size() >= 1 && size() <= 16),
      "this struct is no tree: it has more than 16 members. Write TESSERA_TREE(Class, member, member) "
      "in it, or group the members");
};

// Calls visit(member, member, ...). One branch per number of members, since a structured binding must name
// each.
template <class T, class F> void with_fields(T& value, F&& visit) {
  using Checked = TreeNode<std::remove_const_t<T>>;
  constexpr std::size_t n = Checked::size();
  if constexpr (Checked::is_named) {
    std::apply(visit, TreeAccess::members(value));
  } else if constexpr (n == 1) {
    auto& [a] = value;
    visit(a);
  } else if constexpr (n == 2) {
    auto& [a, b] = value;
    visit(a, b);
  } else if constexpr (n == 3) {
    auto& [a, b, c] = value;
    visit(a, b, c);
  } else if constexpr (n == 4) {
    auto& [a, b, c, d] = value;
    visit(a, b, c, d);
  } else if constexpr (n == 5) {
    auto& [a, b, c, d, e] = value;
    visit(a, b, c, d, e);
  } else if constexpr (n == 6) {
    auto& [a, b, c, d, e, f] = value;
    visit(a, b, c, d, e, f);
  } else if constexpr (n == 7) {
    auto& [a, b, c, d, e, f, g] = value;
    visit(a, b, c, d, e, f, g);
  } else if constexpr (n == 8) {
    auto& [a, b, c, d, e, f, g, h] = value;
    visit(a, b, c, d, e, f, g, h);
  } else if constexpr (n == 9) {
    auto& [a, b, c, d, e, f, g, h, i] = value;
    visit(a, b, c, d, e, f, g, h, i);
  } else if constexpr (n == 10) {
    auto& [a, b, c, d, e, f, g, h, i, j] = value;
    visit(a, b, c, d, e, f, g, h, i, j);
  } else if constexpr (n == 11) {
    auto& [a, b, c, d, e, f, g, h, i, j, k] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k);
  } else if constexpr (n == 12) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l);
  } else if constexpr (n == 13) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m);
  } else if constexpr (n == 14) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, o);
  } else if constexpr (n == 15) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p);
  } else if constexpr (n == 16) {
    auto& [a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q] = value;
    visit(a, b, c, d, e, f, g, h, i, j, k, l, m, o, p, q);
  }
}

}  // namespace tessera::detail
