// sort by the program's comparison, and the largest elements.
//
// A comparison is understood as keys: "a before b" is key(a) < key(b), or, of equal first keys, the same of
// second ones. A key is computed from the elements by the comparison's own operations, on whole arrays.
#include <tessera/ops.hpp>

#include <algorithm>
#include <cmath>
#include <set>

#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/custom_calls.hpp"
#include "stablehlo/rules/moves.hpp"
#include "stablehlo/rules/numbers.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

struct Key {
  int value = -1;  // of the comparison's function: computed from elements of the left side
  bool is_descending = false, is_total = false;
  bool is_bare = false;      // the element itself
  bool keeps_order = false;  // the element, but for one zero and one NaN in place of all
  std::size_t operand = 0;
};

class Comparison {
 public:
  Comparison(const CallFrame& frame, const RegionText& region) : frame_(frame), region_(region) {}

  // Whether the value is "left before right" by these keys.
  bool read(int value, std::vector<Key>& keys, int depth = 0) const {
    const Operation* op = maker_in(region_, value);
    if (op == nullptr || depth > 64) return false;
    if (op->name == "stablehlo.compare") return read_less(*op, keys);
    if (op->name != "stablehlo.or" || op->operands.size() != 2) return false;
    for (const auto& [first, rest] : {std::pair{0, 1}, std::pair{1, 0}}) {
      std::vector<Key> found;
      const Operation* less = maker_in(region_, op->operands[static_cast<std::size_t>(first)]);
      if (less == nullptr || less->name != "stablehlo.compare" || !read_less(*less, found)) continue;
      if (!read_equal_and(op->operands[static_cast<std::size_t>(rest)], *less, found, depth)) continue;
      keys.insert(keys.end(), found.begin(), found.end());
      return true;
    }
    return false;
  }

 private:
  bool read_less(const Operation& op, std::vector<Key>& keys) const {
    if (op.operands.size() != 2) return false;
    const auto [direction, type] = comparison_of(op);
    if (direction != "LT" && direction != "GT") return false;
    int left = op.operands[0], right = op.operands[1];
    bool is_descending = direction == "GT";
    std::set<int> of_left, of_right;
    elements(left, of_left, 0), elements(right, of_right, 0);
    if (of_left.size() != 1 || of_right.size() != 1) return false;
    if (*of_left.begin() % 2 == 1)
      std::swap(left, right), std::swap(of_left, of_right), is_descending = !is_descending;
    if (*of_left.begin() % 2 != 0 || *of_right.begin() != *of_left.begin() + 1 || !alike(left, right, 0))
      return false;
    const bool is_bare = maker_in(region_, left) == nullptr;
    keys.push_back({left, is_descending, type == "TOTALORDER", is_bare, is_bare || keeps_order(left, 0),
                    static_cast<std::size_t>(*of_left.begin()) / 2});
    return true;
  }

  // equal keys & what decides then
  bool read_equal_and(int value, const Operation& less, std::vector<Key>& keys, int depth) const {
    const Operation* both = maker_in(region_, value);
    if (both == nullptr || both->name != "stablehlo.and" || both->operands.size() != 2) return false;
    for (const auto& [first, rest] : {std::pair{0, 1}, std::pair{1, 0}}) {
      const Operation* same = maker_in(region_, both->operands[static_cast<std::size_t>(first)]);
      if (same == nullptr || same->name != "stablehlo.compare" || comparison_of(*same).first != "EQ")
        continue;
      auto a = same->operands, b = less.operands;
      std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
      if (a == b && read(both->operands[static_cast<std::size_t>(rest)], keys, depth + 1)) return true;
    }
    return false;
  }

  // The arguments that a value is computed from, by number; -1 stands for too deep a computation.
  void elements(int value, std::set<int>& into, int depth) const {
    const auto found = std::find(region_.arguments.begin(), region_.arguments.end(), value);
    if (found != region_.arguments.end()) {
      into.insert(static_cast<int>(found - region_.arguments.begin()));
      return;
    }
    const Operation* op = maker_in(region_, value);
    if (op == nullptr) return;
    if (depth > 16 || !op->regions.empty()) {
      into.insert(-1);
      return;
    }
    for (const int operand : op->operands) elements(operand, into, depth + 1);
  }

  // select(x == 0, 0, x) and select(x != x, NaN, x), in each other: how JAX makes zeros and NaNs equal.
  bool keeps_order(int value, int depth) const {
    const Operation* op = maker_in(region_, value);
    if (op == nullptr) return true;
    if (depth > 2 || op->name != "stablehlo.select" || op->operands.size() != 3) return false;
    const Operation* when = maker_in(region_, op->operands[0]);
    if (when == nullptr || when->name != "stablehlo.compare" || when->operands.size() != 2) return false;
    const int x = when->operands[0], beside = when->operands[1];
    if (maker_in(region_, x) != nullptr) return false;
    const auto [direction, type] = comparison_of(*when);
    const auto number = number_in(op->operands[1]);
    const bool is_zero = direction == "EQ" && number == 0 && number_in(beside) == 0;
    const bool is_nan = direction == "NE" && beside == x && number && std::isnan(*number);
    return (is_zero || is_nan) && keeps_order(op->operands[2], depth + 1);
  }
  std::optional<double> number_in(int value) const { return constant_of(frame_, value); }

  // Whether b is the computation of a with right elements in place of left ones.
  bool alike(int a, int b, int depth) const {
    const Operation *of_a = maker_in(region_, a), *of_b = maker_in(region_, b);
    if (of_a == nullptr || of_b == nullptr) {
      const auto number = [&](int value) {
        return std::find(region_.arguments.begin(), region_.arguments.end(), value) -
               region_.arguments.begin();
      };
      const auto n = static_cast<std::ptrdiff_t>(region_.arguments.size());
      return of_a == of_b && (number(a) == n ? a == b : number(b) == number(a) + 1);
    }
    if (of_a == of_b) return true;  // a value of neither
    if (depth > 16 || of_a->name != of_b->name || of_a->words != of_b->words ||
        of_a->operands.size() != of_b->operands.size() || comparison_of(*of_a) != comparison_of(*of_b))
      return false;
    if (of_a->name == "stablehlo.constant") return same_constant(*of_a, *of_b);
    for (std::size_t i = 0; i < of_a->operands.size(); ++i)
      if (!alike(of_a->operands[i], of_b->operands[i], depth + 1)) return false;
    return true;
  }

  static bool same_constant(const Operation& a, const Operation& b) {
    const auto &one = *a.attributes.find("value")->dense, &two = *b.attributes.find("value")->dense;
    return one.type == two.type && one.values.nbytes() == two.values.nbytes() &&
           std::equal(one.values.bytes(), one.values.bytes() + one.values.nbytes(), two.values.bytes());
  }

  const CallFrame& frame_;
  const RegionText& region_;
};

Array sortable(const Array& key, bool is_total) {
  if (is_bool(key.dtype())) return astype(key, uint8);
  return is_total && is_floating(key.dtype()) ? total_order_key(key) : key;
}

// The values alone, sorted by themselves.
Array sorted_alone(const Array& x, const Key& key, int d) {
  const SortOptions options{key.is_descending, true};
  if (is_bool(x.dtype())) return astype(sort(astype(x, uint8), d, options), bool_);
  if (!key.is_total || !key.is_bare || !is_floating(x.dtype())) return sort(x, d, options);
  return from_total_order_key(sort(total_order_key(x), d, options), x.dtype());
}

Arrays sort_rule(OpCall& s) {
  if (s.op.regions.size() != 1 || s.x.empty() || s.op.regions[0].arguments.size() != 2 * s.x.size())
    s.refuse("takes arrays and a comparison of two elements of each");
  for (const auto& x : s.x)
    if (x.shape() != s.x[0].shape()) s.refuse("arrays of different shapes");
  const int ndim = s.x[0].ndim();
  if (ndim == 0) return s.x;
  const auto given = s.integer("dimension", -1);
  if (given < -ndim || given >= ndim)
    s.refuse("dimension = " + std::to_string(given) + " of " + std::to_string(ndim) + " dims");
  const int d = static_cast<int>(given < 0 ? given + ndim : given);
  const RegionText& body = s.op.regions[0];
  std::vector<Key> keys;
  constexpr std::size_t most_operations = 256;
  const auto& returned = body.operations.back().operands;
  if (returned.size() != 1 || body.operations.size() > most_operations ||
      !Comparison(s.frame, body).read(returned[0], keys))
    s.refuse(
        "its comparison is not by keys: less (greater) of one value of either side, and for equal ones of a "
        "next value");
  if (s.x[0].size() == 0) return s.x;
  if (s.x.size() == 1 && keys.size() == 1 && keys[0].keeps_order) return {sorted_alone(s.x[0], keys[0], d)};
  Arrays sides;
  for (const auto& x : s.x) sides.insert(sides.end(), {x, x});
  s.run.elementwise(s.frame, body, sides);
  Array order;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    Array by = key->is_bare ? s.x[key->operand] : s.frame.values[static_cast<std::size_t>(key->value)];
    by = sortable(by, key->is_total);
    if (order.node()) by = take_along_axis(by, order, d);
    const Array step = argsort(by, d, SortOptions{key->is_descending, true});
    order = order.node() ? take_along_axis(order, step, d) : step;
  }
  Arrays results;
  for (std::size_t i = 0; i < s.x.size(); ++i)
    results.push_back(is_iota_along(s, s.op.operands[i], d) ? astype(order, s.x[i].dtype())
                                                            : take_along_axis(s.x[i], order, d));
  return results;
}

Arrays top_k_rule(OpCall& s) {
  s.want_operands(1);
  const Array& x = s.x[0];
  const auto k = s.integer("k", -1);
  if (x.ndim() < 1 || k < 0 || k > x.shape().back())
    s.refuse("k = " + std::to_string(k) + " of " + tessera::to_string(x.shape()));
  if (!is_floating(x.dtype())) {
    auto [values, places] = top_k(is_bool(x.dtype()) ? astype(x, uint8) : x, static_cast<int>(k));
    return {astype(values, x.dtype()), astype(places, s.type(1).dtype)};
  }
  auto [values, places] = top_k(total_order_key(x), static_cast<int>(k));
  return {from_total_order_key(values, x.dtype()), astype(places, s.type(1).dtype)};
}

}  // namespace

// (x, places, first value, first place) -> the k largest (smallest) elements and their places, exactly.
Arrays approx_top_k(OpCall& s) {
  s.want_operands(4);
  const Attribute *config = s.find("mhlo.backend_config"), *called = s.find("called_computations");
  const auto number = [&](const char* name) {
    const Attribute* found = config == nullptr ? nullptr : config->find(name);
    return found == nullptr ? std::int64_t{-1} : integers_of(s, *found).at(0);
  };
  const Array& x = s.x[0];
  const auto d = number("reduction_dim"), k = number("top_k");
  if (d < 0 || d >= x.ndim() || k < 0 || k > x.shape()[static_cast<std::size_t>(d)] ||
      s.x[1].shape() != x.shape())
    s.refuse("top_k = " + std::to_string(k) + " along dim " + std::to_string(d) + " of " +
             tessera::to_string(x.shape()));
  if (called == nullptr || called->items.size() != 1) s.refuse("without its comparison");
  const auto& body = s.run.function(called->items[0].text, s.op.place).body;
  const Operation* less =
      maker_in(body, body.operations.back().operands.empty() ? -1 : body.operations.back().operands[0]);
  const auto direction =
      less == nullptr || less->name != "stablehlo.compare" ? "" : comparison_of(*less).first;
  if (direction != "GT" && direction != "LT") s.refuse("a comparison that is neither greater nor less");
  const int dim = static_cast<int>(d);
  const Array order = argsort(sortable(x, true), dim, SortOptions{direction == "GT", true});
  const Array places = part_along(order, dim, 0, k);
  return {take_along_axis(x, places, dim), take_along_axis(s.x[1], places, dim)};
}

void add_sorts(Rules& rules) {
  rules["stablehlo.sort"] = sort_rule;
  rules["chlo.top_k"] = top_k_rule;
}

}  // namespace tessera::stablehlo
