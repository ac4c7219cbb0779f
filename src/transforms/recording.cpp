// One differentiated call: watches the arguments, runs the function, and records the backward pass.
#include <tessera/grad.hpp>

#include "ops/build.hpp"
#include "ops/create/scalar.hpp"
#include "ops/functions.hpp"
#include "transforms/backward.hpp"
#include "transforms/vjp.hpp"
#include "transforms/vmap.hpp"
#include "types/extents.hpp"

namespace tessera::detail {
namespace {

// The gradient in its operand's layout.
Array placed_like(const Array& gradient, const Array& operand) {
  const auto& wanted = output_of(operand).sharding;
  if (!wanted || gradient.node()->region != operand.node()->region) return gradient;
  const auto& given = output_of(gradient).sharding;
  if (given && given->mesh() == wanted->mesh() &&
      given->dim_axes(operand.ndim()) == wanted->dim_axes(operand.ndim()))
    return gradient;
  return device_put(gradient, *wanted);
}

}  // namespace

Recording::Recording(const char* call, std::source_location where) : call_(call), where_(where) {}

Array Recording::watch(const Array& leaf, int argument, bool strict) {
  const Call call(call_, where_);
  check_usable(leaf);
  const bool inexact = is_inexact(leaf.dtype());
  if (strict && !inexact)
    throw DtypeError(call_text() + ": argument " + std::to_string(argument) + " holds " + describe(leaf) +
                     ", and integers and bools have no gradient; convert it with astype(x, float32), or "
                     "differentiate with respect to "
                     "other arguments by argnums");
  leaves_.push_back(leaf);
  watched_.push_back(inexact ? make_alias(leaf) : leaf);
  return watched_.back();
}

void Recording::finish(std::vector<Array> results, const std::vector<Array>& others) {
  const Call call(call_, where_);
  for (const auto& x : results) check_usable(x);
  tape_ = std::make_shared<const Tape>(aliases(), results, others, call_);
  results_ = std::move(results);
}

std::vector<Array> Recording::aliases() const {
  std::vector<Array> aliases;
  for (const auto& x : watched_)
    if (is_inexact(x.dtype())) aliases.push_back(x);
  return aliases;
}

void Recording::check_scalar() const {
  const Call call(call_, where_);
  const Array& value = results_[0];
  if (value.ndim() != 0)
    throw ShapeError(call_text() + ": the function returns " + describe(value) +
                     ", but only a scalar (an array without dimensions) has a gradient; reduce it with sum "
                     "or mean, or use vjp or jacrev");
  if (!is_floating(value.dtype()))
    throw DtypeError(call_text() + ": the function returns " + describe(value) +
                     ", but the gradient is that of a real number; " +
                     (is_complex(value.dtype()) ? "take real, imag or abs of it, or use vjp"
                                                : "convert it with astype(x, float32)"));
}

std::vector<Array> Recording::gradient() const {
  const Call call(call_, where_);
  return pull_back({make_scalar({1.0, 0, false}, results_[0].dtype(), false)});
}

std::vector<Array> Recording::pull_back(std::vector<Array> cotangents, Form form) const {
  const Call call(call_, where_);
  const BackwardPass pass;
  for (std::size_t i = 0; i < results_.size(); ++i)
    cotangents[i] =
        is_inexact(results_[i].dtype()) ? fitted(cotangents[i], results_[i], "the cotangent") : Array();
  const auto found = tape_->pull_back(cotangents);
  std::vector<Array> gradients;
  std::size_t next = 0;
  for (const auto& leaf : leaves_) {
    if (!is_inexact(leaf.dtype())) {
      gradients.push_back(form == as_cotangents ? Array() : zeros_for(leaf));
      continue;
    }
    const Array& gradient = found[next++];
    if (form == as_cotangents)
      gradients.push_back(gradient);
    else
      gradients.push_back(gradient.node() ? placed_like(gradient, leaf) : zeros_for(leaf));
  }
  return gradients;
}

std::vector<Array> Recording::push_forward(std::vector<Array> tangents) const {
  const Call call(call_, where_);
  std::vector<Array> directions;
  for (std::size_t i = 0; i < leaves_.size(); ++i)
    if (is_inexact(leaves_[i].dtype())) directions.push_back(fitted(tangents[i], leaves_[i], "the tangent"));
  auto pushed = tape_->push_forward(directions);
  for (std::size_t i = 0; i < results_.size(); ++i)
    if (!is_inexact(results_[i].dtype()) || !pushed[i].node()) pushed[i] = zeros_for(results_[i]);
  return pushed;
}

// The pullback of one cotangent, applied to all rows of the identity matrix at once.
std::vector<Array> Recording::jacobian(std::size_t result) const {
  const Call call(call_, where_);
  const Array& y = results_[result];
  if (!is_floating(y.dtype()))
    throw DtypeError(call_text() + ": the function returns " + describe(y) +
                     "; jacobians are those of real functions: take real and imag of it");
  const Array row =
      make_placeholder(type_of(y), output_of(y).sharding, y.node()->region, output_of(y).varying);
  std::vector<Array> cotangents;
  for (std::size_t i = 0; i < results_.size(); ++i)
    cotangents.push_back(i == result ? row : zeros_for(results_[i]));
  const auto gradients = pull_back(std::move(cotangents));
  const Array identity = reshape(eye(y.size(), y.dtype()), with_dim(y.shape(), 0, y.size()));
  const auto rows = replay_batched(gradients, {row}, {{identity, 0}}, y.size(), 0);
  std::vector<Array> jacobians;
  for (std::size_t i = 0; i < leaves_.size(); ++i) {
    Shape shape = join(y.shape(), leaves_[i].shape());
    if (rows[i].dim == not_batched)
      jacobians.push_back(zeros(
          std::move(shape), leaves_[i].dtype()));  // independent of the row: y does not depend on this leaf
    else
      jacobians.push_back(reshape(batch_first(rows[i].value, rows[i].dim), std::move(shape)));
  }
  return jacobians;
}

void throw_structure_mismatch(const char* name, std::source_location where, const char* what,
                              const std::string& expected, const std::string& given) {
  const Call call(name, where);
  throw ArgumentError(call_text() + ": " + what + " has the structure " + given + ", but " + expected +
                      " is needed (* stands for an array); build it from the value by tree_map");
}

}  // namespace tessera::detail
