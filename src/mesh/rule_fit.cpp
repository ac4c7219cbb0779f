// A sharding rule on operands of given shapes.
#include <tessera/error.hpp>

#include <algorithm>

#include "mesh/rule.hpp"

namespace tessera {

class RuleText::Fit {
 public:
  Fit(const RuleText& text, std::span<const Shape> in, std::span<const Shape> out, const RuleReading& reading)
      : text_(text),
        reading_(reading),
        in_{text.in_, in, repeats(text.in_, in, out), &reading.order, &rule_.inputs},
        out_{text.out_, out, repeats(text.out_, out, in), nullptr, &rule_.outputs} {}

  // For results_of, where the shapes of the results are not known yet.
  Fit(const RuleText& text, std::span<const Shape> in, const RuleReading& reading)
      : text_(text),
        reading_(reading),
        in_{text.in_, in, repeats(text.in_, in, {}), &reading.order, &rule_.inputs},
        out_{no_operands, {}, 0, nullptr, &rule_.outputs},
        is_exact_(true) {}

  void be_exact() { is_exact_ = true; }

  std::vector<Shape> results() {
    count_dims();
    number_factors();
    write_dims(in_);
    find_sizes_of_operands();
    std::vector<Shape> shapes;
    for (const auto& operand : text_.out_) {
      if (operand.is_repeated) fail("how many results there are does not follow from the operands");
      std::vector<std::int64_t> extents;
      each_dim(operand, [&](const Term& term, std::int64_t i) { extents.push_back(extent_of(term, i)); });
      shapes.emplace_back(std::move(extents));
    }
    return shapes;
  }

  DimNames names() {
    count_dims();
    return {names_of(in_), names_of(out_)};
  }

  FactorRule rule() {
    count_dims();
    number_factors();
    rule_.reduce_kind = text_.reduce_kind_;
    write_dims(in_);
    write_dims(out_);
    find_sizes();
    if (text_.has_compound_) drop_single_digits();
    if (text_.has_compound_ || extents_differ_ || is_exact_) drop_broadcast(in_), drop_broadcast(out_);
    return std::move(rule_);
  }

 private:
  struct Side {
    const std::vector<Operand>& operands;
    std::span<const Shape> shapes;
    std::size_t repeats;  // how often the operand in braces is repeated
    const std::vector<std::vector<int>>* order;
    std::vector<std::vector<DimFactors>>* dims;

    std::size_t dim(std::size_t operand, std::size_t place) const {
      if (order == nullptr || operand >= order->size() || (*order)[operand].empty()) return place;
      return (*order)[operand][place];
    }
  };

  [[noreturn]] void fail(const std::string& why) const { fail_on(in_.shapes, out_.shapes, why); }
  [[noreturn]] void fail_on(std::span<const Shape> in, std::span<const Shape> out,
                            const std::string& why) const {
    std::string shapes;
    for (const auto& shape : in) shapes += " " + to_string(shape);
    if (!out.empty()) shapes += " ->";
    for (const auto& shape : out) shapes += " " + to_string(shape);
    throw InternalError("sharding rule \"" + shortened(text_.text_) + "\" on" + shortened(shapes) + ": " +
                        shortened(why));
  }
  std::string letter(int factor) const {
    for (std::size_t s = 0; s < text_.symbols_.size(); ++s)
      if (factor >= first_[s] && factor < first_[s] + count_[s]) return text_.symbols_[s].name;
    return "?";
  }

  std::size_t repeats(const std::vector<Operand>& list, std::span<const Shape> shapes,
                      std::span<const Shape> others) const {
    std::size_t once = 0;
    for (const auto& operand : list) once += !operand.is_repeated;
    if (shapes.size() < once || (shapes.size() > once && once == list.size()))
      fail_on(shapes, others,
              std::to_string(list.size()) + " operands in the text, " + std::to_string(shapes.size()) +
                  " shapes");
    return shapes.size() - once;
  }

  std::int64_t multiplied(std::int64_t extent, std::int64_t size) const {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(extent, size, &product))
      fail("the factors of a dim, " + std::to_string(extent) + " and " + std::to_string(size) +
           ", multiply to 2^63 or more");
    return product;
  }
  void find_sizes_of_operands() {
    each_extent(in_, [&](const DimFactors& dim, std::int64_t extent) { take_extent(dim, extent); });
    for (std::size_t round = 0; text_.has_compound_ && round <= rule_.factors.size(); ++round)
      each_extent(in_, [&](const DimFactors& dim, std::int64_t extent) { find_digit(dim, extent); });
  }
  std::int64_t extent_of(const Term& term, std::int64_t number) const {
    std::int64_t extent = 1;
    for (const int s : term.symbols) {
      const std::int64_t size = rule_.factors[first_[s] + (is_one_factor_per_dim(term) ? number : 0)].size;
      if (size < 0)
        fail("the extent of " + text_.symbols_[s].name + " in the results does not follow from the operands");
      extent = multiplied(extent, size);
    }
    return extent;
  }
  std::vector<std::vector<DimName>> names_of(const Side& side) const {
    std::vector<std::vector<DimName>> names;
    each_operand(side, [&](const Operand& operand, std::size_t n) {
      auto& dims = names.emplace_back(side.shapes[n].size());
      std::size_t place = 0;
      each_dim(operand, [&](const Term& term, std::int64_t) {
        if (place == dims.size()) fail_dims(operand, n);
        if (is_one_factor_per_dim(term) && !text_.symbols_[term.symbols[0]].is_group)
          dims[side.dim(n, place)] = {text_.symbols_[term.symbols[0]].name, term.kind == Dim::about};
        ++place;
      });
    });
    return names;
  }

  static bool is_one_factor_per_dim(const Term& term) {
    return term.kind != Dim::compound && !term.symbols.empty();
  }
  // Calls visit(operand of the rule, index of the shape) once per shape; an operand in braces repeats.
  template <class Visit> static void each_operand(const Side& side, Visit visit) {
    std::size_t number = 0;
    for (const auto& operand : side.operands)
      for (std::size_t i = 0; i < (operand.is_repeated ? side.repeats : 1); ++i) visit(operand, number++);
  }
  // Calls visit(term, index of the dim within the term's group).
  template <class Visit> void each_dim(const Operand& operand, Visit visit) const {
    for (const auto& term : operand.terms) {
      const auto count = is_one_factor_per_dim(term) ? count_[term.symbols[0]] : 1;
      for (std::int64_t i = 0; i < count; ++i) visit(term, i);
    }
  }
  // Calls visit(factors of the dim, its extent), except for dims marked with ~.
  template <class Visit> void each_extent(const Side& side, Visit visit) const {
    each_operand(side, [&](const Operand& operand, std::size_t n) {
      std::size_t place = 0;
      each_dim(operand, [&](const Term& term, std::int64_t) {
        const std::size_t d = side.dim(n, place++);
        if (term.kind != Dim::about) visit((*side.dims)[n][d], side.shapes[n][d]);
      });
    });
  }

  // Finds the sizes of groups: given by the reading, or the remaining number of an operand's dims.
  void count_dims() {
    int unknown = 0;
    for (std::size_t s = 0; s < text_.symbols_.size(); ++s) {
      count_[s] = text_.symbols_[s].is_group ? -1 : 1;
      unknown += text_.symbols_[s].is_group;
    }
    for (const auto& [name, size] : reading_.sizes)
      if (name != 0)
        if (const int s = text_.symbol(name); text_.symbols_[s].is_group) count_[s] = size, --unknown;
    for (int before = -1; unknown > 0 && unknown != before;) {
      before = unknown;
      for (const Side* side : {&in_, &out_})
        each_operand(*side, [&](const Operand& operand, std::size_t n) {
          if (unknown > 0 && count_last(operand, side->shapes[n])) --unknown;
        });
    }
    if (unknown > 0) fail_open_group();
  }
  [[noreturn]] void fail_open_group() const {
    for (std::size_t s = 0;; ++s)
      if (count_[s] < 0)
        fail("how many dims group " + text_.symbols_[s].name + " has does not follow from the shapes");
  }
  bool count_last(const Operand& operand, const Shape& shape) {
    int unknown = -1;
    std::int64_t left = shape.ndim();
    for (const auto& term : operand.terms) {
      if (!is_one_factor_per_dim(term)) {
        --left;
      } else if (const int s = term.symbols[0]; count_[s] >= 0) {
        left -= count_[s];
      } else {
        if (unknown >= 0) return false;
        unknown = s;
      }
    }
    if (unknown < 0) return false;
    if (left < 0) fail("an operand of shape " + to_string(shape) + " has too few dims");
    count_[unknown] = left;
    return true;
  }

  void number_factors() {
    std::int64_t next = 0;
    for (std::size_t s = 0; s < text_.symbols_.size(); ++s) first_[s] = next, next += count_[s];
    rule_.factors.reserve(next);
    for (std::size_t s = 0; s < text_.symbols_.size(); ++s)
      for (std::int64_t i = 0; i < count_[s]; ++i) rule_.factors.push_back({-1, text_.symbols_[s].kind});
    for (const auto& [name, size] : reading_.sizes)
      if (name != 0)
        if (const int s = text_.symbol(name); !text_.symbols_[s].is_group)
          rule_.factors[first_[s]].size = size;
  }

  void write_dims(const Side& side) const {
    side.dims->resize(side.shapes.size());
    each_operand(side, [&](const Operand& operand, std::size_t n) {
      auto& dims = (*side.dims)[n];
      dims.resize(side.shapes[n].size());
      std::size_t place = 0;
      each_dim(operand, [&](const Term& term, std::int64_t i) {
        if (place == dims.size()) fail_dims(operand, n);
        auto& dim = dims[side.dim(n, place++)];
        if (is_one_factor_per_dim(term))
          dim.assign(1, static_cast<int>(first_[term.symbols[0]] + i));
        else
          for (const int s : term.symbols) dim.push_back(static_cast<int>(first_[s]));
      });
      if (place != dims.size()) fail_dims(operand, n);
    });
  }
  [[noreturn]] void fail_dims(const Operand& operand, std::size_t n) const {
    std::int64_t dims = 0;
    each_dim(operand, [&](const Term&, std::int64_t) { ++dims; });
    fail("operand " + std::to_string(n) + " has " + std::to_string(dims) + " dims in the text");
  }

  // Finds the sizes of factors: a factor alone in a dim has the dim's extent (1 yields to anything larger);
  // the last unknown factor of a compound dim follows by division.
  void find_sizes() {
    for (const Side* side : {&in_, &out_})
      each_extent(*side, [&](const DimFactors& dim, std::int64_t extent) { take_extent(dim, extent); });
    if (text_.has_compound_)
      for (std::size_t round = 0; round <= rule_.factors.size(); ++round)
        for (const Side* side : {&in_, &out_})
          each_extent(*side, [&](const DimFactors& dim, std::int64_t extent) { find_digit(dim, extent); });
    for (std::size_t f = 0; f < rule_.factors.size(); ++f)
      if (rule_.factors[f].size < 0)
        fail("the size of factor " + letter(static_cast<int>(f)) + " does not follow from the shapes");
  }
  void take_extent(const DimFactors& dim, std::int64_t extent) {
    if (dim.size() != 1) return;
    auto& size = rule_.factors[dim[0]].size;
    if (size >= 0 && (is_exact_ || (size != 1 && extent != 1)) && size != extent)
      fail("factor " + letter(dim[0]) + " is " + std::to_string(size) + " and " + std::to_string(extent));
    extents_differ_ = extents_differ_ || (size >= 0 && size != extent);
    if (size < 0 || size == 1) size = extent;
  }
  void find_digit(const DimFactors& dim, std::int64_t extent) {
    if (dim.size() < 2) return;
    std::int64_t known = 1;
    int unknown = -1, unknowns = 0;
    for (const int f : dim) {
      const std::int64_t size = rule_.factors[f].size;
      if (size < 0)
        unknown = f, ++unknowns;
      else
        known = multiplied(known, size);
    }
    if (unknowns != 1) return;
    if (known == 0 || extent % known != 0)
      fail("extent " + std::to_string(extent) + " of a compound dim is not a multiple of " +
           std::to_string(known));
    rule_.factors[unknown].size = extent / known;
  }

  // Drops digits with one value, which do not affect the index: (g c) with g = 1 is c, which may be split
  // unevenly.
  void drop_single_digits() {
    std::vector<bool> single(rule_.factors.size());
    for (const Side* side : {&in_, &out_})
      each_extent(*side, [&](const DimFactors& dim, std::int64_t) {
        for (const int f : dim) single[f] = single[f] || (dim.size() > 1 && rule_.factors[f].size == 1);
      });
    for (const Side* side : {&in_, &out_})
      for (auto& operand : *side->dims)
        for (auto& dim : operand) std::erase_if(dim, [&](int f) { return single[f]; });
  }

  void drop_broadcast(const Side& side) const {
    each_extent(side, [&](DimFactors& dim, std::int64_t extent) {
      std::int64_t product = 1;
      for (const int f : dim) product = multiplied(product, rule_.factors[f].size);
      if (product == extent) return;
      if (extent != 1 || is_exact_)
        fail("a dim of extent " + std::to_string(extent) + " has factors of product " +
             std::to_string(product));
      dim.clear();
    });
  }

  static inline const std::vector<Operand> no_operands;
  const RuleText& text_;
  const RuleReading& reading_;
  FactorRule rule_;
  Side in_, out_;
  bool extents_differ_ = false;                               // some are 1: an operand is broadcast
  bool is_exact_ = false;                                     // nothing may be broadcast
  std::array<std::int64_t, most_symbols> count_{}, first_{};  // by symbol: its dims, and its first factor
};

std::vector<Shape> RuleText::results_of(std::span<const Shape> in) const {
  const RuleReading none;
  return Fit(*this, in, none).results();
}

void RuleText::check_exact(std::span<const Shape> in, std::span<const Shape> out) const {
  const RuleReading none;
  Fit fit(*this, in, out, none);
  fit.be_exact();
  fit.rule();
}

RuleText::DimNames RuleText::dim_names(std::span<const Shape> in, std::span<const Shape> out) const {
  const RuleReading none;
  return out.empty() ? Fit(*this, in, none).names() : Fit(*this, in, out, none).names();
}

FactorRule RuleText::on(std::span<const Shape> in, std::span<const Shape> out,
                        const RuleReading& reading) const {
  if (is_one_group_ && reading.order.empty()) {
    const auto has_more_dims = [&](const Shape& shape) { return shape.size() > out[0].size(); };
    if (out.empty() || std::any_of(in.begin(), in.end(), has_more_dims))
      fail_reading(text_, "an operand has more dims than the result");
    if (std::any_of(out.begin(), out.end(), has_more_dims))
      fail_reading(text_, "a result has more dims than the first");
    return elementwise_rule(in, out);
  }
  if (is_regrouping_) {
    if (in.size() != 1 || out.size() != 1 || in[0].elements() != out[0].elements())
      fail_reading(text_, "one operand and a result of as many elements");
    return reshape_rule(in[0], out[0]);
  }
  return Fit(*this, in, out, reading).rule();
}

}  // namespace tessera
