#include "stablehlo/rules/known.hpp"

#include <tessera/ops.hpp>
#include <tessera/random.hpp>

#include <algorithm>
#include <array>

#include "kernels/move/content_hash.hpp"
#include "ops/factor/functions.hpp"
#include "stablehlo/rules/bodies.hpp"
#include "stablehlo/rules/numbers.hpp"

namespace tessera::stablehlo {
namespace {

// A region with all functions that it calls as one text: values by number, no names, no extents. Integers
// that stand for an extent become a letter.
class WholeText {
 public:
  WholeText(const Evaluator& run, std::map<std::int64_t, char> extents)
      : run_(run), extents_(std::move(extents)) {}

  // Empty for what is too large to be known, or reads a value from outside.
  std::string of(const Function& function, const RegionText& region, int depth = 0) {
    constexpr int most_operations = 500;
    std::map<int, int> numbers;
    for (const int argument : region.arguments) number(numbers, argument);
    std::string text;
    for (const auto& op : region.operations) {
      if (op.name == "stablehlo.constant") continue;  // stands where it is read
      if (depth > 4 || ++operations_ > most_operations) is_known_ = false;
      if (!is_known_) return "";
      text += op.name.ends_with("return") ? "return" : op.name;
      for (const auto& word : op.words) text += " " + word;
      add_attributes(op.attributes, text);
      add_window(function, op, text);
      for (const int operand : op.operands) add_operand(function, numbers, operand, text);
      for (const auto& inner : op.regions) text += "{" + of(function, inner, depth + 1) + "}";
      add_callee(op, text, depth);
      for (const int result : op.results) {
        number(numbers, result);
        text += ":" + name(function.values[static_cast<std::size_t>(result)].dtype);
      }
      text += "\n";
    }
    return is_known_ ? text : "";
  }

 private:
  static void number(std::map<int, int>& numbers, int value) {
    numbers.emplace(value, static_cast<int>(numbers.size()));
  }

  void add_operand(const Function& function, const std::map<int, int>& numbers, int operand,
                   std::string& text) {
    const auto found = numbers.find(operand);
    const Operation* maker = run_.makers_of(function)[static_cast<std::size_t>(operand)];
    if (found != numbers.end())
      text += " %" + std::to_string(found->second);
    else if (maker != nullptr && maker->name == "stablehlo.constant")
      text += " ", add(*maker->attributes.find("value"), text);
    else
      is_known_ = false;
  }

  void add_callee(const Operation& op, std::string& text, int depth) {
    if (op.name != "call" && op.name != "func.call") return;
    const Attribute* callee = op.attributes.find("callee");
    const auto found =
        callee == nullptr ? run_.module.functions.end() : run_.module.functions.find(callee->text);
    if (found == run_.module.functions.end())
      is_known_ = false;
    else
      text += "(" + of(found->second, found->second.body, depth + 1) + ")";
  }

  void add_attributes(const Attribute& attributes, std::string& text) {
    for (const auto& [name, value] : attributes.entries) {
      if (name == "callee" || name == window) continue;
      text += " " + name + "=";
      add(value, text);
    }
  }

  // A gather's window in parts of its operand: "all" of a dim, or a number of elements.
  void add_window(const Function& function, const Operation& op, std::string& text) {
    const Attribute* sizes = op.attributes.find(window);
    if (sizes == nullptr) return;
    const Shape& whole = function.values[static_cast<std::size_t>(op.operands.at(0))].shape;
    if (sizes->kind != Attribute::Kind::list || sizes->items.size() != whole.size()) is_known_ = false;
    for (std::size_t d = 0; is_known_ && d < whole.size(); ++d)
      text += sizes->items[d].text == std::to_string(whole[d]) ? " all" : " " + sizes->items[d].text;
  }

  void add(const Attribute& value, std::string& text) {
    if (value.kind == Attribute::Kind::dictionary) return add_attributes(value, text);
    if (value.kind == Attribute::Kind::list) {
      for (const auto& item : value.items) text += ",", add(item, text);
    } else if (value.kind == Attribute::Kind::dense) {
      add_values(*value.dense, text);
    } else {
      text += value.text;
    }
  }

  void add_values(const Constant& dense, std::string& text) {
    text += name(dense.type.dtype);
    if (dense.values.nbytes() > 64) is_known_ = false;
    if (!is_known_) return;
    if (dense.type.dtype == int32 && dense.values.size() == 1) {
      const auto value = dense.values.as<std::int32_t>()[0];
      const auto found = extents_.find(value);
      text += found != extents_.end() ? std::string(1, found->second) : std::to_string(value);
      return;
    }
    constexpr const char* digits = "0123456789abcdef";
    for (std::int64_t i = 0; i < dense.values.nbytes(); ++i) {
      const auto byte = static_cast<unsigned>(dense.values.bytes()[i]);
      text += digits[byte / 16], text += digits[byte % 16];
    }
  }

  static constexpr const char* window = "slice_sizes";
  const Evaluator& run_;
  std::map<std::int64_t, char> extents_;
  int operations_ = 0;
  bool is_known_ = true;
};

std::uint64_t hash_of(const std::string& text) {
  return text.empty() ? 0 : kernels::content_hash(text.data(), text.size());
}

// Hashes of the texts that JAX 0.10 writes.
constexpr std::array<std::uint64_t, 1> threefry_texts{12811683170738940719u};
// For matrices of 0 to 3 batch dims: k = m, k < m.
constexpr std::array<std::uint64_t, 8> pivot_loops{
    17437191536745272541u, 14657059524016724814u, 1547702573619400642u,  4822954257155235460u,
    17860215864395869768u, 6073570847423858240u,  10395396214390355927u, 8233225791968070926u};

// ---- threefry ----

// Twenty rounds of additions, rotations and exclusive ors (Salmon et al., 2011).
Arrays threefry(const Array& k1, const Array& k2, const Array& high, const Array& low) {
  constexpr std::array<std::array<std::uint32_t, 4>, 2> rotations{{{13, 15, 26, 6}, {17, 29, 16, 24}}};
  const auto of = [](std::uint32_t value) { return full({}, value, uint32); };
  const std::array<Array, 3> keys{k1, k2, bitwise_xor(bitwise_xor(k1, k2), of(0x1BD11BDA))};
  Array a = add(high, keys[0]), b = add(low, keys[1]);
  for (std::uint32_t n = 0; n < 5; ++n) {
    for (const auto r : rotations[n % 2]) {
      a = add(a, b);
      b = bitwise_xor(a, bitwise_or(bitwise_left_shift(b, of(r)), bitwise_right_shift(b, of(32 - r))));
    }
    a = add(a, keys[(n + 1) % 3]);
    b = add(add(b, keys[(n + 2) % 3]), of(n + 1));
  }
  return {a, b};
}

// Adds the value's part of a sum of const * (index along dim d) to the factors; false: it is something else.
bool read_counters(const OpCall& s, int value, std::vector<std::int64_t>& factors, int depth) {
  const Operation* op = s.maker(value);
  if (op == nullptr || depth > 64) return false;
  if (op->name == "stablehlo.add" && op->operands.size() == 2)
    return read_counters(s, op->operands[0], factors, depth + 1) &&
           read_counters(s, op->operands[1], factors, depth + 1);
  std::int64_t factor = 1;
  if (op->name == "stablehlo.multiply" && op->operands.size() == 2) {
    const auto number = constant_of(s.frame, op->operands[0]);
    if (!number || *number < 1 || *number > 1e15) return false;
    factor = static_cast<std::int64_t>(*number);
    value = op->operands[1];
  }
  for (std::size_t d = 0; d < factors.size(); ++d)
    if (is_iota_along(s, value, static_cast<int>(d))) {
      factors[d] += factor;
      return true;
    }
  return false;
}

// Whether operands 2 and 3 are the high and low words of 0, 1, 2, ... in row-major order.
bool counts_in_order(const OpCall& s) {
  const Operation *high = s.maker(s.op.operands[2]), *low = s.maker(s.op.operands[3]);
  if (high == nullptr || low == nullptr || high->name != "stablehlo.convert" ||
      low->name != "stablehlo.convert")
    return false;
  const int counter = low->operands.at(0);
  const Operation* shift = s.maker(high->operands.at(0));
  if (shift == nullptr || shift->name != "stablehlo.shift_right_logical" ||
      shift->operands.at(0) != counter || constant_of(s.frame, shift->operands.at(1)) != 32)
    return false;
  const TensorType& type = s.frame.function.values[static_cast<std::size_t>(counter)];
  std::vector<std::int64_t> factors(type.shape.size());
  if (type.dtype != uint64 || factors.empty() || !read_counters(s, counter, factors, 0)) return false;
  std::int64_t stride = 1;
  for (std::size_t d = factors.size(); d-- > 0; stride *= type.shape[d])
    if (factors[d] != stride && type.shape[d] != 1) return false;
  return true;
}

std::pair<const Node*, int> key_of_draw(const Array& x) { return {x.node().get(), x.output()}; }

}  // namespace

std::optional<Arrays> known_call(OpCall& s, const Function& function) {
  if (s.is_lifted || s.x.size() != 4 || function.body.operations.size() > 40 ||
      s.x[2].shape() != s.x[3].shape())
    return std::nullopt;
  for (std::size_t i = 0; i < 4; ++i)
    if (s.x[i].dtype() != uint32 || (i < 2 && s.x[i].ndim() != 0)) return std::nullopt;
  const auto hash = hash_of(WholeText(s.run, {}).of(function, function.body));
  if (std::find(threefry_texts.begin(), threefry_texts.end(), hash) == threefry_texts.end())
    return std::nullopt;
  Arrays words = threefry(s.x[0], s.x[1], s.x[2], s.x[3]);
  if (counts_in_order(s)) s.run.draws[key_of_draw(words[0])] = {words[0], words[1], s.x[0], s.x[1]};
  return words;
}

std::optional<Array> known_xor(const OpCall& s) {
  const auto found = s.is_lifted ? s.run.draws.end() : s.run.draws.find(key_of_draw(s.x[0]));
  if (found == s.run.draws.end() || key_of_draw(found->second.low) != key_of_draw(s.x[1]))
    return std::nullopt;
  const auto& draw = found->second;
  return random::bits(random::wrap_key_data(stack({draw.key_1, draw.key_2}, 0)), s.x[0].shape(), uint32);
}

// while(pivots, 0, 0, 0..m-1): for each step two rows of the permutation are exchanged, for each matrix.
std::optional<Arrays> known_loop(const OpCall& s) {
  if (s.x.size() != 4 || s.x[0].ndim() == 0 || s.x[3].ndim() != s.x[0].ndim() ||
      !is_iota_along(s, s.op.operands[3], s.x[0].ndim() - 1))
    return std::nullopt;
  for (const auto& x : s.x)
    if (x.dtype() != int32) return std::nullopt;
  const auto k = s.x[0].shape().back(), m = s.x[3].shape().back();
  const bool starts_at_0 =
      constant_of(s.frame, s.op.operands[1]) == 0 && constant_of(s.frame, s.op.operands[2]) == 0;
  if (k < 3 || m < k || !starts_at_0) return std::nullopt;
  std::map<std::int64_t, char> extents{{k, 'k'}};
  extents.emplace(m, 'm');
  WholeText text(s.run, extents);
  const auto hash =
      hash_of(text.of(s.frame.function, s.op.regions[0]) + text.of(s.frame.function, s.op.regions[1]));
  if (std::find(pivot_loops.begin(), pivot_loops.end(), hash) == pivot_loops.end()) return std::nullopt;
  const Array steps = number_of(k, int32);
  return Arrays{s.x[0], steps, steps, factor::pivots_to_permutation(s.x[0], m)};
}

}  // namespace tessera::stablehlo
