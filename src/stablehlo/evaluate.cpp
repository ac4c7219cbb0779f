#include "stablehlo/evaluate.hpp"

#include <tessera/error.hpp>
#include <tessera/ops.hpp>

#include <set>

#include "base/call.hpp"
#include "base/text.hpp"
#include "base/text/foreign_line.hpp"
#include "stablehlo/rules/rules.hpp"

namespace tessera::stablehlo {
namespace {

bool returns(const Operation& op) { return op.name.ends_with("return"); }

}  // namespace

std::source_location Evaluator::line(TextPlace place) const {
  return location_of(foreign_line(module.file, place.line));
}

void Evaluator::refuse(TextPlace place, const std::string& text) const {
  refuse_text(module.file, place, text);
}

const Function& Evaluator::function(std::string_view name, TextPlace from) const {
  const auto found = module.functions.find(std::string(name));
  if (found == module.functions.end()) refuse(from, "the module has no function " + shown(name));
  return found->second;
}

Arrays Evaluator::call(const Function& function, Arrays arguments, TextPlace from) {
  constexpr int deepest_calls = 200;
  if (depth_ >= deepest_calls)
    refuse(from, "calls are nested more than 200 deep: a function that calls itself?");
  if (arguments.size() != function.body.arguments.size())
    refuse(from, "the function " + shown(function.name) + " takes " +
                     format_count(static_cast<std::int64_t>(function.body.arguments.size()), "argument") +
                     ", and is given " + std::to_string(arguments.size()));
  struct Depth {
    int& depth;
    ~Depth() { --depth; }
  } const depth{++depth_};
  CallFrame frame{function, makers_.at(&function), Arrays(function.values.size())};
  return region(frame, function.body, arguments);
}

Arrays Evaluator::region(CallFrame& frame, const RegionText& region, const Arrays& arguments) {
  if (arguments.size() != region.arguments.size())
    refuse(region.operations.front().place,
           "a region of " + format_count(static_cast<std::int64_t>(region.arguments.size()), "argument") +
               " is given " + std::to_string(arguments.size()));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto value = static_cast<std::size_t>(region.arguments[i]);
    const TensorType& type = frame.function.values[value];
    if (!type.is_token &&
        (arguments[i].dtype() != type.dtype || (!is_lifted_ && arguments[i].shape() != type.shape)))
      refuse(region.operations.front().place,
             "argument " + std::to_string(i) + " of the region is " + name(arguments[i].dtype()) +
                 tessera::to_string(arguments[i].shape()) + " and not " + to_string(type));
    frame.values[value] = arguments[i];
  }
  // Operations in a region are cited by their own lines; those of a scalar function by the line that
  // calls it.
  std::optional<UserCode> inside;
  if (!is_lifted_) inside.emplace();
  for (const auto& op : region.operations)
    if (!returns(op)) run(frame, op);
  Arrays results;
  for (const int value : region.operations.back().operands)
    results.push_back(frame.values[static_cast<std::size_t>(value)]);
  return results;
}

Arrays Evaluator::elementwise(CallFrame& frame, const RegionText& body, const Arrays& arguments) {
  struct Lifted {
    bool& is_lifted;
    bool before;
    ~Lifted() { is_lifted = before; }
  } const scope{is_lifted_, is_lifted_};
  is_lifted_ = true;
  Arrays results = region(frame, body, arguments);
  // A result that no argument entered has no dims yet.
  for (auto& result : results)
    if (!arguments.empty() && result.shape() != arguments[0].shape())
      result = broadcast_to(result, arguments[0].shape());
  return results;
}

// In a region of scalars shapes are those of the arrays that it is applied to.
Arrays Evaluator::lifted(OpCall& step) {
  const auto& name = step.op.name;
  if (name == "stablehlo.broadcast_in_dim" || name == "stablehlo.reshape") {
    if (step.type().shape.ndim() == 0) return step.x;
  }
  if (!is_elementwise(name))
    refuse(step.op.place,
           name + " in a region of scalars: only operations element by element have a counterpart there");
  return rules().find(name)->second(step);
}

void Evaluator::run(CallFrame& frame, const Operation& op) {
  constexpr std::int64_t most_operations = 2'000'000;
  if (++recorded_ > most_operations)
    refuse(op.place, "the program expands to more than 2,000,000 operations");
  const auto found = rules().find(op.name);
  if (found == rules().end()) refuse(op.place, op.name + " has no counterpart" + why_left_out(op.name));
  OpCall step{*this, frame, op, {}, is_lifted_};
  for (const int value : op.operands) step.x.push_back(frame.values[static_cast<std::size_t>(value)]);
  Arrays results;
  {
    const Call call(found->first.c_str(), line(op.place));
    results = is_lifted_ ? lifted(step) : found->second(step);
  }
  if (results.size() != op.results.size())
    refuse(op.place, op.name + " gives " + format_count(static_cast<std::int64_t>(results.size()), "result") +
                         ", and the text names " + std::to_string(op.results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TensorType& type = step.type(i);
    if (!type.is_token &&
        (results[i].dtype() != type.dtype || (!is_lifted_ && results[i].shape() != type.shape)))
      refuse(op.place, op.name + " gives " + name(results[i].dtype()) +
                           tessera::to_string(results[i].shape()) + ", and the text says " + to_string(type));
    frame.values[static_cast<std::size_t>(op.results[i])] = std::move(results[i]);
  }
}

}  // namespace tessera::stablehlo
