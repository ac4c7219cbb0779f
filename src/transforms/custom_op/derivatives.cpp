// Derivatives of custom ops, and the ops under vmap. The user's rules handle one example; for batches they
// are recorded on one example and replayed on all.
#include <tessera/detail/recording.hpp>
#include <tessera/error.hpp>

#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "transforms/custom_op/definition.hpp"
#include "transforms/forward.hpp"
#include "transforms/vjp.hpp"
#include "transforms/vmap.hpp"
#include "types/extents.hpp"

namespace tessera::custom {
namespace {

// Operands, results and directions of a rule.
struct RuleCall {
  std::vector<Array> operands, results, directions;
};

std::vector<Array> called(const DerivativeRule& rule, const RuleCall& c) {
  const UserCode users;
  return rule(c.operands, c.results, c.directions);
}

// The rule's arrays, one for each of `like`, checked.
std::vector<Array> checked(std::vector<Array> given, std::span<const Array> like, const char* rule,
                           const char* what) {
  if (given.size() != like.size())
    throw ArgumentError(call_text() + ": its " + rule + " gives " + std::to_string(given.size()) +
                        " arrays; return " + std::to_string(like.size()) + ", an Array() for zeros");
  const std::string each = std::string("a ") + what + " returned by " + rule;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (!given[i].node()) continue;
    given[i] = is_inexact(like[i].dtype()) ? detail::fitted(given[i], like[i], each.c_str()) : Array();
  }
  return given;
}

std::vector<Array> one_vjp(const CustomOp::Definition& op, const RuleCall& c) {
  if (op.options.vjp) return checked(called(op.options.vjp, c), c.operands, "vjp", "cotangent");
  // The transpose of jvp, at any tangents: it is linear in them.
  detail::Recording recording(op.name, current_call().where);
  RuleCall forward{c.operands, c.results, {}};
  for (const auto& x : c.operands)
    forward.directions.push_back(is_inexact(x.dtype()) ? recording.watch(zeros_like(x), 0, false)
                                                       : zeros_like(x));
  auto tangents = checked(called(op.options.jvp, forward), c.results, "jvp", "tangent");
  for (std::size_t i = 0; i < tangents.size(); ++i)
    if (!tangents[i].node()) tangents[i] = detail::zeros_for(c.results[i]);
  recording.finish(tangents);
  const auto found = recording.pull_back(c.directions, detail::Recording::as_cotangents);
  std::vector<Array> cotangents;
  std::size_t next = 0;
  for (const auto& x : c.operands) cotangents.push_back(is_inexact(x.dtype()) ? found[next++] : Array());
  return cotangents;
}

std::vector<Array> one_jvp(const CustomOp::Definition& op, const RuleCall& c) {
  return checked(called(op.options.jvp, c), c.results, "jvp", "tangent");
}

// ---- on batches ----

class Examples {
 public:
  // One example of x where it has a batch dim in front, and x itself otherwise.
  Array of(const Array& x, bool is_batched) {
    if (!is_batched) return x;
    placeholders_.push_back(example_of(x, 0));
    values_.push_back({x, 0});
    return placeholders_.back();
  }
  std::vector<Array> of(const std::vector<Array>& all, const BatchLevel& is_batched) {
    std::vector<Array> examples;
    for (std::size_t i = 0; i < all.size(); ++i) examples.push_back(of(all[i], is_batched[i]));
    return examples;
  }
  std::vector<BatchedValue> replay(const std::vector<Array>& results, std::int64_t size) const {
    std::vector<Array> roots;
    for (const auto& x : results)
      if (x.node()) roots.push_back(x);
    const auto replayed = replay_batched(roots, placeholders_, values_, size, 0);
    std::vector<BatchedValue> all(results.size());
    for (std::size_t i = 0, next = 0; i < results.size(); ++i)
      if (results[i].node()) all[i] = replayed[next++];
    return all;
  }

 private:
  std::vector<Array> placeholders_;
  std::vector<BatchedValue> values_;
};

enum class Mode { vjp, jvp };

// The rule applied below the batch levels: recorded for one example of level `level` (and of the levels
// inside it), and replayed on all examples.
std::vector<Array> apply(const CustomOpParams& p, std::size_t level, Mode mode, const RuleCall& c) {
  if (level == p.batches.size()) return mode == Mode::vjp ? one_vjp(*p.op, c) : one_jvp(*p.op, c);
  const auto& has = p.batches[level];
  const BatchLevel all(c.results.size(), true);
  const auto size = c.results[0].shape()[0];
  Examples examples;
  RuleCall one;
  one.operands = examples.of(c.operands, has);
  one.results = examples.of(c.results, all);
  one.directions = examples.of(c.directions, mode == Mode::vjp ? all : has);
  std::vector<Array> results;
  const auto replayed = examples.replay(apply(p, level + 1, mode, one), size);
  for (std::size_t i = 0; i < replayed.size(); ++i) {
    const auto& [value, dim] = replayed[i];
    if (!value.node())
      results.emplace_back();
    else if (mode == Mode::jvp || has[i])
      results.push_back(batched_in_front(value, dim, size));
    else if (dim != not_batched)  // an operand shared by all examples gets the sum of their cotangents
      results.push_back(sum(value, dim));
    else
      results.push_back(value * static_cast<double>(size));
  }
  return results;
}

std::vector<Array> filled(std::span<const Array> directions, std::span<const Array> like) {
  std::vector<Array> all;
  for (std::size_t i = 0; i < directions.size(); ++i)
    all.push_back(directions[i].node() ? directions[i] : detail::zeros_for(like[i]));
  return all;
}

std::vector<Array> jvp(const JvpArgs& a) {
  return apply(params_of(*a.node.params), 0, Mode::jvp,
               {{a.in.begin(), a.in.end()}, {a.out.begin(), a.out.end()}, filled(a.tangents, a.in)});
}

// The user's batching rule for operands without batch dims of their own.
Batched by_rule(const CustomOp::Definition& op, const BatchArgs& a) {
  std::vector<Array> out;
  {
    const UserCode users;
    out = op.options.batch(a.in, a.dims, a.size);
  }
  if (out.size() != a.node.outputs.size())
    throw ArgumentError(call_text() + ": its batch gives " + std::to_string(out.size()) + " arrays; return " +
                        std::to_string(a.node.outputs.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const Shape wanted = with_dim(a.node.outputs[i].type.shape, 0, a.size);
    check_usable(out[i]);
    if (out[i].shape() != wanted || !(out[i].dtype() == a.node.outputs[i].type.dtype))
      throw ShapeError(call_text() + ": its batch gives " + to_string(type_of(out[i])) + " as result " +
                       std::to_string(i) + "; it must be " +
                       to_string(Type{wanted, a.node.outputs[i].type.dtype}) + ", the batch dim in front");
  }
  return {std::move(out), std::vector<int>(a.node.outputs.size(), 0)};
}

}  // namespace

Cotangents vjp(const VjpArgs& v) {
  return apply(params_of(*v.node.params), 0, Mode::vjp,
               {{v.in.begin(), v.in.end()}, {v.out.begin(), v.out.end()}, filled(v.cotangents, v.out)});
}

Batched batch(const BatchArgs& a) {
  auto p = params_of(*a.node.params);
  if (p.op->options.batch) return by_rule(*p.op, a);
  const bool is_repeated = p.op->options.rule.find('{') != std::string::npos;
  BatchLevel level;
  std::vector<Array> in;
  for (std::size_t i = 0; i < a.in.size(); ++i) {
    level.push_back(is_repeated || a.dims[i] != not_batched);
    in.push_back(level[i] ? batched_in_front(a, i) : a.in[i]);
  }
  p.batches.insert(p.batches.begin(), level);
  const OpDef& record = record_of(*p.op, p.batches);
  auto out = record_all(record, make_params(std::move(p)), std::move(in));
  std::vector<int> dims(out.size(), 0);
  return {std::move(out), std::move(dims)};
}

void add_jvp(const OpDef& record) { set_jvp_rule(record, jvp); }

}  // namespace tessera::custom
