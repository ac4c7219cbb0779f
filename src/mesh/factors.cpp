#include "mesh/factors.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "mesh/sharding_impl.hpp"

namespace tessera {
namespace {

const std::vector<std::vector<DimFactors>>& operands(const FactorRule& rule, bool is_output) {
  return is_output ? rule.outputs : rule.inputs;
}

}  // namespace

FactorAxes factors_of(const FactorRule& rule, const Sharding& sharding, int operand, bool is_output) {
  const auto& dims = operands(rule, is_output)[operand];
  const Sharding::Impl& impl = *sharding.identity();
  FactorAxes axes(rule.factors.size());
  for (std::size_t d = 0; d < std::min(dims.size(), impl.parts.size()); ++d) {
    int next = impl.first[d];
    const int end = impl.first[d + 1];
    for (int f : dims[d]) {
      const Factor& factor = rule.factors[f];
      if (factor.kind == FactorKind::whole) break;
      std::int64_t parts = 1;
      for (; next < end; ++next) {
        const AxisDigit& digit = impl.digits[next];
        if (dims[d].size() > 1 && (factor.size == 0 || factor.size % (parts * digit.size) != 0)) break;
        parts *= digit.size;
        axes[f].push_back(digit.axis);
      }
      if (parts != factor.size)
        break;  // a minor factor can be split only if the major ones have blocks of one index
    }
  }
  return axes;
}

Sharding sharding_of(const FactorRule& rule, const FactorAxes& factor_axes, const Mesh& mesh, int operand,
                     bool is_output) {
  const auto& dims = operands(rule, is_output)[operand];
  std::vector<std::vector<int>> dim_axes(dims.size());
  for (std::size_t d = 0; d < dims.size(); ++d)
    for (int f : dims[d]) {
      const auto& axes = factor_axes[f];
      dim_axes[d].insert(dim_axes[d].end(), axes.begin(), axes.end());
    }
  return Sharding::from_dim_axes(mesh, dim_axes);
}

bool is_allowed(const FactorRule& rule, const FactorAxes& factor_axes, const Mesh& mesh) {
  for (std::size_t f = 0; f < rule.factors.size(); ++f)
    if (rule.factors[f].kind == FactorKind::whole && !factor_axes[f].empty()) return false;
  for (const auto* list : {&rule.inputs, &rule.outputs})
    for (const auto& dims : *list)
      for (const auto& dim : dims) {
        if (dim.size() < 2) continue;
        bool majors_are_single = true;
        for (int f : dim) {
          const std::int64_t size = rule.factors[f].size;
          const auto parts = devices_along(mesh, factor_axes[f]);
          if (parts > 1 && (!majors_are_single || size == 0 || size % parts != 0)) return false;
          majors_are_single = majors_are_single && parts == size;
        }
      }
  return true;
}

FactorRule elementwise_rule(std::span<const Shape> in, std::span<const Shape> out) {
  FactorRule rule;
  const Shape& result = out[0];
  rule.factors.reserve(result.size());
  for (const auto extent : result) rule.factors.push_back({extent, FactorKind::pass});
  const auto dims_of = [&](const Shape& shape) {
    std::vector<DimFactors> dims(shape.size());
    const std::size_t lead = result.size() - shape.size();
    for (std::size_t d = 0; d < shape.size(); ++d)
      if (shape[d] == result[lead + d]) dims[d] = {static_cast<int>(lead + d)};
    return dims;
  };
  rule.inputs.reserve(in.size());
  for (const auto& shape : in) rule.inputs.push_back(dims_of(shape));
  rule.outputs.reserve(out.size());
  for (const auto& shape : out) rule.outputs.push_back(dims_of(shape));
  return rule;
}

namespace {

// Factors of one group of dims with equal products, such as (4, 6) and (8, 3): the row-major index has a
// digit boundary wherever either shape cuts it (24 | 6 and 24 | 3 give 24 | 6 | 3 | 1), provided that each
// cut divides the one before.
struct Group {
  std::size_t in_begin, in_end, out_begin, out_end;
};

std::vector<std::int64_t> cuts_of(const Shape& shape, std::size_t begin, std::size_t end) {
  std::vector<std::int64_t> cuts = {1};
  for (std::size_t d = end; d-- > begin;) cuts.push_back(cuts.back() * shape[d]);
  return cuts;
}

std::int64_t gcd(std::int64_t a, std::int64_t b) { return b == 0 ? a : gcd(b, a % b); }

class ReshapeFactors {
 public:
  ReshapeFactors(const Shape& in, const Shape& out) : in_(in), out_(out) {
    rule_.inputs.assign(1, std::vector<DimFactors>(in.size()));
    rule_.outputs.assign(1, std::vector<DimFactors>(out.size()));
  }

  FactorRule build() {
    if (in_.elements() == 0) {
      make_whole({0, in_.size(), 0, out_.size()});
      return std::move(rule_);
    }
    std::size_t i = 0, o = 0;
    while (i < in_.size() || o < out_.size()) {
      Group group{i, i, o, o};
      std::int64_t in_product = 1, out_product = 1;
      do {
        if (group.in_end < in_.size() && (in_product <= out_product || group.out_end == out_.size()))
          in_product *= in_[group.in_end++];
        else
          out_product *= out_[group.out_end++];
      } while (in_product != out_product);
      add(group);
      i = group.in_end;
      o = group.out_end;
    }
    return std::move(rule_);
  }

 private:
  int factor(std::int64_t size, FactorKind kind) {
    rule_.factors.push_back({size, kind});
    return static_cast<int>(rule_.factors.size()) - 1;
  }
  void make_whole(const Group& group) {
    for (std::size_t d = group.in_begin; d < group.in_end; ++d)
      if (in_[d] != 1) rule_.inputs[0][d].push_back(factor(in_[d], FactorKind::whole));
    for (std::size_t d = group.out_begin; d < group.out_end; ++d)
      if (out_[d] != 1) rule_.outputs[0][d].push_back(factor(out_[d], FactorKind::whole));
  }

  void add(const Group& group) {
    if (group.in_end - group.in_begin == 1 && group.out_end - group.out_begin == 1) {
      rule_.inputs[0][group.in_begin] =
          rule_.outputs[0][group.out_begin] = {factor(in_[group.in_begin], FactorKind::pass)};
      return;
    }
    auto cuts = cuts_of(in_, group.in_begin, group.in_end);
    const auto out_cuts = cuts_of(out_, group.out_begin, group.out_end);
    cuts.insert(cuts.end(), out_cuts.begin(), out_cuts.end());
    std::sort(cuts.begin(), cuts.end(), std::greater<>());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c)
      if (cuts[c] % cuts[c + 1] != 0) return share_the_major_digit(group);
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
      const int f = factor(cuts[c] / cuts[c + 1], FactorKind::pass);
      give(rule_.inputs[0], in_, group.in_begin, group.in_end, cuts[c], f);
      give(rule_.outputs[0], out_, group.out_begin, group.out_end, cuts[c], f);
    }
  }

  // Adds the digit below `cut` to the dim whose digits include it.
  static void give(std::vector<DimFactors>& dims, const Shape& shape, std::size_t begin, std::size_t end,
                   std::int64_t cut, int f) {
    std::int64_t stride = 1;
    for (std::size_t d = end; d-- > begin; stride *= shape[d])
      if (stride < cut && cut <= stride * shape[d]) return dims[d].push_back(f);
  }

  // Without common digits, as in (4, 9) -> (6, 6), only the first dims share one, of size gcd(4, 6).
  void share_the_major_digit(const Group& group) {
    std::size_t i = group.in_begin, o = group.out_begin;
    while (in_[i] == 1) ++i;
    while (out_[o] == 1) ++o;
    const std::int64_t common = gcd(in_[i], out_[o]);
    if (common > 1) rule_.inputs[0][i] = rule_.outputs[0][o] = {factor(common, FactorKind::pass)};
    const auto whole_rest = [&](const Shape& shape, std::vector<DimFactors>& dims, std::size_t begin,
                                std::size_t end, std::size_t shared) {
      for (std::size_t d = begin; d < end; ++d) {
        const std::int64_t rest = d == shared ? shape[d] / common : shape[d];
        if (rest != 1) dims[d].push_back(factor(rest, FactorKind::whole));
      }
    };
    whole_rest(in_, rule_.inputs[0], group.in_begin, group.in_end, i);
    whole_rest(out_, rule_.outputs[0], group.out_begin, group.out_end, o);
  }

  const Shape &in_, &out_;
  FactorRule rule_;
};

}  // namespace

FactorRule reshape_rule(const Shape& in, const Shape& out) { return ReshapeFactors(in, out).build(); }

}  // namespace tessera
