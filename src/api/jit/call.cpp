// Calls of compiled programs: checks of the arguments, agreement of the ranks, donated memory.
#include <tessera/runtime.hpp>

#include <algorithm>
#include <iterator>
#include <optional>
#include <sstream>

#include "api/evaluate.hpp"
#include "api/failures.hpp"
#include "api/jit/core.hpp"
#include "api/learned_values.hpp"
#include "base/log.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/watch/agreement.hpp"
#include "ops/functions.hpp"
#include "run/replicas.hpp"

namespace tessera::detail {
namespace {

// ArgumentError if an argument does not fit the program.
void check_argument(const CompiledCore& core, const std::vector<Array>& leaves, std::size_t i) {
  const auto& expected = output_of(core.traced->placeholders[i]);
  const auto& given = output_of(leaves[i]);
  const bool same_type = expected.type.shape == given.type.shape && expected.type.dtype == given.type.dtype;
  const bool same_place =
      !given.sharding ||
      (expected.sharding && *expected.sharding == *given.sharding);  // an uncommitted argument is placed
  if (same_type && same_place) return;
  std::ostringstream text;
  text << "the compiled function of " << call_text() << " was made for argument array " << i << " as "
       << to_string(expected.type);
  if (expected.sharding)
    text << " " << expected.sharding->spec() << " over " << expected.sharding->mesh();
  else
    text << " (uncommitted)";
  text << ", but was called with " << describe(leaves[i])
       << ". Call the jitted function itself, which compiles once per signature, or convert the argument "
          "with astype/device_put";
  if (same_type) throw ShardingError(text.str());
  throw ArgumentError(text.str());
}

// Warns about donated arguments whose memory no result or temporary can reuse: a donation needs one of equal
// size on each rank.
void report_unusable_donations(const CompiledCore& core, const std::vector<bool>& donated) {
  const auto bytes_of = [](const Type& type, const Sharding& layout) {
    return layout.shard_shape(type.shape).elements() * static_cast<std::int64_t>(itemsize(type.dtype));
  };
  for (std::size_t i = 0; i < donated.size(); ++i) {
    if (!donated[i]) continue;
    const auto& argument = core.traced->placeholders[i];
    const auto bytes = bytes_of(type_of(argument), argument.sharding());
    bool usable = false;
    for (const auto& instruction : core.program.instructions)
      for (const int v : instruction.outputs)
        usable |= bytes_of(core.program.values[v].type, core.program.values[v].layout) == bytes;
    if (!usable)
      log_once(LogLevel::warn,
               call_text() + ": the donated argument array " + std::to_string(i) + " (" +
                   to_string(type_of(argument)) +
                   ") cannot be reused: no result or temporary has its size. It is deleted all the same");
  }
}

std::vector<Buffer> memory_of_arguments(const CompiledCore& core, const std::vector<Array>& placed) {
  std::vector<Buffer> buffers;
  buffers.reserve(core.source.size());
  for (std::size_t i = 0; i < core.source.size(); ++i) {
    const auto& x = core.source[i] >= 0 ? placed[core.source[i]] : core.constants[i];
    buffers.push_back(output_of(x).stored->buffer);
  }
  return buffers;
}

std::vector<Array> with_constants(const CompiledCore& core, const std::vector<Array>& placed) {
  auto operands = placed;
  std::copy_if(core.constants.begin(), core.constants.end(), std::back_inserter(operands),
               [](const Array& constant) { return constant.node() != nullptr; });
  return operands;
}

void delete_donated(const std::vector<Array>& leaves, const std::vector<bool>& donated) {
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!donated[i]) continue;
    Array argument = leaves[i];
    if (!argument.is_deleted()) argument.delete_();
  }
}

struct PlacedArguments {
  std::vector<Array> arrays;
  bool constants_matter = false;  // to the agreement: by their contents or a failure
};
// Checks the arguments, and evaluates them and the program's constants, in the layouts of the program.
PlacedArguments place_arguments(const CompiledCore& core, const std::vector<Array>& leaves) {
  const auto& placeholders = core.traced->placeholders;
  if (leaves.size() != placeholders.size())
    throw ArgumentError("the compiled function of " + call_text() + " takes " +
                        format_count(placeholders.size(), "array") + ", but was called with " +
                        std::to_string(leaves.size()));
  std::vector<Array> pending;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    check_usable(leaves[i]);
    check_argument(core, leaves, i);
    if (!leaves[i].node()->is_evaluated()) pending.push_back(leaves[i]);
  }
  PlacedArguments placed{leaves};
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    const auto& expected = output_of(placeholders[i]).sharding;
    if (expected && !output_of(leaves[i]).sharding)
      placed.arrays[i] = device_put(leaves[i], *expected), pending.push_back(placed.arrays[i]);
  }
  for (const auto& constant : core.constants) {
    if (!constant.node()) continue;
    if (const auto& stored = output_of(constant).stored)
      placed.constants_matter |= stored->content != 0 || stored->failure;
    else
      pending.push_back(constant);
  }
  if (!pending.empty()) evaluate(pending, with_constants(core, placed.arrays));
  return placed;
}

}  // namespace

void set_apart(const std::vector<Array*>& handles) {
  std::vector<Array> pending;
  for (const Array* x : handles)
    if (x->node() && !output_of(*x).deleted && !x->node()->is_evaluated()) pending.push_back(*x);
  if (!pending.empty()) evaluate(pending);
  for (Array* x : handles) {
    if (!x->node() || output_of(*x).deleted || x->node().use_count() == 1) continue;
    const auto& output = output_of(*x);
    Array own =
        make_leaf(output.type, output.stored->layout, output.stored->buffer, output.sharding.has_value());
    mutable_output_of(own) = output;
    own.node()->where = x->node()->where;
    *x = std::move(own);
  }
}

namespace {

// Nothing if the ranks' programs differ, perhaps in what they have computed of the values that the function
// captures: such a value is a constant of the program, or is computed by it.
std::optional<std::vector<Array>> call_as_known(CompiledCore& core, const std::vector<Array>& leaves,
                                                const std::vector<bool>& donated, bool may_learn) {
  PlacedArguments arguments = place_arguments(core, leaves);
  auto& placed = arguments.arrays;
  const bool is_ready = core.bound && core.bound_in == session_number();
  auto all = arguments.constants_matter ? with_constants(core, placed) : std::vector<Array>();
  const auto& operands = arguments.constants_matter ? all : placed;
  Asked asked{core.traced->graph,
              core.key,
              core.plan_key,
              core.participants,
              is_ready ? core.bound.get() : nullptr,
              operands,
              content_of(operands)};
  const Agreed agreed = agree_on(asked, may_learn);
  if (agreed == Agreed::unlike) return std::nullopt;
  if (agreed == Agreed::failed) {
    const auto failure = share_failures(core.participants, with_constants(core, placed));
    delete_donated(leaves, donated);
    raise(*failure);
  }
  if (agreed == Agreed::not_ready || !is_ready) {
    const auto make = [&] { return core.program; };
    auto bound = make_ready(is_ready ? std::function<Program()>() : make, asked.plan,
                            agreed == Agreed::later ? std::vector<int>() : core.participants,
                            [] { return "the compiled function of " + call_text(); });
    if (!is_ready) core.bound = std::move(bound), core.bound_in = session_number();
    asked.plan = core.bound.get();
    if (agreed == Agreed::not_ready) after_agreement(core.participants, [&] { allow_later(asked); });
  }
  auto buffers = after_agreement(core.participants, [&] {
    auto taken = memory_of_arguments(core, placed);
    if (!core.bound_once) report_unusable_donations(core, donated);
    core.bound_once = true;
    delete_donated(leaves, donated);
    return taken;
  });
  all.clear();
  placed.clear();
  compare_replicas(*core.bound, buffers, process_index());
  auto result = core.bound->run(std::move(buffers));
  if (result.failure) raise(*result.failure);
  auto& results = result.outputs;
  std::vector<Array> arrays;
  arrays.reserve(results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    const auto& value = core.program.values[core.program.outputs[i]];
    arrays.push_back(
        make_leaf(value.type, value.layout, std::move(results[i]), core.traced->committed_roots[i]));
  }
  return arrays;
}

}  // namespace

std::vector<Array> call_compiled(CompiledCore& core, const std::vector<Array>& leaves,
                                 const std::vector<bool>& donated) {
  const Call call("jit", core.traced->where);
  for (bool may_learn = true;;) {
    if (auto results = call_as_known(core, leaves, donated, may_learn)) return *std::move(results);
    auto& graph = core.traced->graph;
    may_learn = learn_values(core.participants, graph.roots);
    after_agreement(core.participants, [&] {
      graph = collect(std::vector<Array>(graph.roots), false);
      make_program(core);
    });
  }
}

}  // namespace tessera::detail
