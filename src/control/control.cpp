// The type-erased half of cond, while_loop, fori_loop and scan.
#include <tessera/control.hpp>
#include <tessera/jit.hpp>

#include <algorithm>
#include <cstring>
#include <optional>

#include "control/counted_loop.hpp"
#include "ops/build.hpp"
#include "ops/collective/axis_env.hpp"
#include "ops/effect/effect.hpp"
#include "types/extents.hpp"

namespace tessera::detail {
namespace {

// Short loops are unrolled, since their steps can overlap and fuse with each other.
constexpr std::int64_t longest_unrolled_loop = 8;

LoopCall call_of(const LoopSite& site) { return {site.call, site.leaf_names}; }

bool same_bytes(const Output& a, const Output& b) {
  return a.stored && b.stored && !a.sharding && !b.sharding && a.type == b.type &&
         a.stored->buffer.bytes() == b.stored->buffer.bytes() &&
         std::memcmp(a.stored->buffer.data(), b.stored->buffer.data(), a.stored->buffer.bytes()) == 0;
}

// Steps of a loop whose body takes i as a number, traced on the same arrays, if their graphs differ only in
// numbers.
class AlikeSteps {
 public:
  AlikeSteps(const CarriedValues& first, int steps) : steps_(steps), before_(first.before) {
    graph_ = graph_of(first.results);
    form_.emplace(graph_);
    values_.resize(graph_.leaves.size());
  }

  // Adds step n (from 1); false if its graph differs from step 0's in more than numbers.
  bool add(std::size_t n, const std::vector<Array>& results) {
    const Graph graph = graph_of(results);
    if (!form_->is_of(graph)) return false;
    for (std::size_t l = 0; l < graph.leaves.size(); ++l)
      if (!add_leaf(n, l, graph.leaves[l])) return false;
    return true;
  }

  std::vector<Array> run(const LoopCall& call, const std::vector<Array>& parameters,
                         std::vector<Array> init) const {
    std::vector<Array> stacks;
    std::vector<std::size_t> varied;
    for (std::size_t l = 0; l < values_.size(); ++l) {
      if (values_[l].empty()) continue;
      const Array& leaf = graph_.leaves[l];
      stacks.push_back(array_from_host(
          values_[l].data(), with_dim(leaf.shape(), 0, static_cast<std::int64_t>(steps_)), leaf.dtype()));
      varied.push_back(l);
    }
    const StepFunction step = [&](const std::vector<Array>& carried, const std::vector<Array>& entries) {
      ArrayMap values;
      for (std::size_t i = 0; i < parameters.size(); ++i) values[key_of_array(parameters[i])] = carried[i];
      for (std::size_t e = 0; e < entries.size(); ++e)
        values[key_of_array(graph_.leaves[varied[e]])] = entries[e];
      return replayed(graph_, std::move(values));
    };
    return record_counted_loop(call, step, std::move(init), std::move(stacks),
                               static_cast<std::int64_t>(steps_));
  }

 private:
  Graph graph_of(const std::vector<Array>& results) const {
    return cut(results, [this](const NodePtr& node) {
      return node->serial <= before_ || node->is_evaluated() || is_parameter(*node);
    });
  }

  bool add_leaf(std::size_t n, std::size_t l, const Array& leaf) {
    const Array& first = graph_.leaves[l];
    const auto &a = output_of(first), &b = output_of(leaf);
    const bool same = first.node() == leaf.node() || same_bytes(a, b);
    if (same && values_[l].empty()) return true;
    const bool is_number =
        a.stored && b.stored && !a.sharding && !b.sharding && a.type == b.type && first.size() == 1;
    if (!is_number) return false;
    const auto bytes = itemsize(first.dtype());
    if (values_[l].empty()) {  // the first differing step: all before it had the same number
      values_[l].resize(steps_ * bytes);
      for (std::size_t step = 0; step < n; ++step)
        std::memcpy(values_[l].data() + step * bytes, a.stored->buffer.data(), bytes);
    }
    std::memcpy(values_[l].data() + n * bytes, b.stored->buffer.data(), bytes);
    return true;
  }

  std::size_t steps_;
  std::uint64_t before_;
  Graph graph_;
  std::optional<GraphForm> form_;
  std::vector<std::vector<std::byte>> values_;  // per leaf: the number of each step, if they differ
};

}  // namespace

namespace {

// Records a loop whose body may have effects; their token is carried after the user's values. Effects show
// only when the body is called: `record` runs without a token first, and then again with one.
using RecordLoop = std::function<Leaves(const LoopCall&, const StepFunction&, Leaves init)>;
Leaves record_with_effects(LoopCall call, const StepFunction& step, Leaves init, const RecordLoop& record) {
  const auto n = static_cast<std::ptrdiff_t>(init.size());
  bool has_effects = false;
  const StepFunction watched = [&](const Leaves& carried, const Leaves& entries) {
    const EffectScope effects;
    auto results = step(carried, entries);
    has_effects |= effects.has_effects();
    return results;
  };
  auto results = record(call, watched, init);
  if (!has_effects) return results;
  const StepFunction carrying = [&](const Leaves& carried, const Leaves& entries) {
    const EffectScope effects(carried[n]);
    auto made = step({carried.begin(), carried.begin() + n}, entries);
    made.insert(made.begin() + n, effects.token());
    return made;
  };
  init.push_back(effect_token());
  call.leaf_names.emplace_back(" effects");
  results = record(call, carrying, std::move(init));
  hand_on_effects(results[n]);
  results.erase(results.begin() + n);
  return results;
}

}  // namespace

bool is_unknown(const Array& x) { return x.node()->has_placeholder || x.node()->region; }
bool any_unknown(const std::vector<Array>& leaves) {
  return std::any_of(leaves.begin(), leaves.end(), is_unknown);
}

bool is_compiled_loop(std::int64_t steps, const std::vector<Array>& leaves) {
  for (const auto& x : leaves)
    if (!x.node()) return false;  // an error for the body to report
  // The ranks' blocks may have different numbers of steps: one op stands for all of them.
  if (const auto region = current_region(); region && region->uneven) return true;
  if (steps <= longest_unrolled_loop) return false;
  return inside_trace({}) ||
         std::any_of(leaves.begin(), leaves.end(), [](const Array& x) { return x.node()->has_placeholder; });
}

void check_predicate(const Array& predicate, const char* name, std::source_location where) {
  const Call call(name, where);
  check_usable(predicate);
  if (predicate.ndim() != 0)
    throw ShapeError(call_text() + ": the predicate must be a scalar, not " + describe(predicate) +
                     "; reduce it with all or any");
}
void check_condition(const Array& condition, std::source_location where) {
  check_predicate(condition, "while_loop", where);
  const Call call("while_loop", where);
  if (!is_bool(condition.dtype()))
    throw DtypeError(call_text() + ": the condition returns " + describe(condition) +
                     "; it must be bool: compare it, as x > 0");
}

std::vector<CarriedLeaf> carried_leaves(const Leaves& init) {
  std::vector<CarriedLeaf> carried;
  for (const auto& x : init)
    carried.push_back(x.node() ? CarriedLeaf{x.shape(), x.dtype(), x.is_weakly_typed(), true}
                               : CarriedLeaf{});
  return carried;
}

bool settle_step(const LoopSite& site, std::vector<CarriedLeaf>& carried, Leaves& returned) {
  const auto refuse = [&](std::size_t i) {
    const Call call(site.call, site.where);
    throw_type_mismatch(call_of(site), i, {carried[i].shape, carried[i].dtype}, "", returned[i]);
  };
  if (returned.size() != carried.size()) {
    const Call call(site.call, site.where);
    throw ArgumentError(call_text() +
                        ": the body must return what it is given: " + std::to_string(carried.size()) +
                        " arrays go in, " + std::to_string(returned.size()) + " come back");
  }
  bool changed = false;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    auto& kind = carried[i];
    if (!returned[i].node()) continue;
    if (!kind.is_known) kind = carried_leaves({returned[i]})[0];
    if (returned[i].shape() != kind.shape) refuse(i);
    const auto dtype = returned[i].dtype();
    const bool is_weak = returned[i].is_weakly_typed();
    if (dtype == kind.dtype) {
      kind.is_weak = kind.is_weak && is_weak;
      continue;
    }
    const auto both = promote({kind.dtype, kind.is_weak}, {dtype, is_weak}).dtype;
    if (is_weak && both == kind.dtype) {
      returned[i] = cast_to(returned[i], kind.dtype);
      changed = true;
    } else if (kind.is_weak && both == dtype) {
      kind.dtype = dtype, kind.is_weak = is_weak;
    } else {
      refuse(i);
    }
  }
  return changed;
}

void check_same_structure(const LoopSite& site, const std::string& given, const std::string& returned) {
  if (given == returned) return;
  const Call call(site.call, site.where);
  throw ArgumentError(call_text() + ": the body must return what it is given, but a value of the structure " +
                      given + " goes in and " + returned +
                      " comes back (* stands for an array). Numbers belong to the structure: what changes "
                      "from step to step must be an Array");
}

std::vector<Array> compiled_scan(const LoopSite& site,
                                 const std::function<Leaves(const Leaves&, const Leaves&)>& step,
                                 const Leaves& init, const Leaves& xs) {
  const Call call(site.call, site.where);
  const StepFunction users_step = [&](const Leaves& carried, const Leaves& entries) {
    const UserCode users;
    return step(carried, entries);
  };
  const auto steps = leading_size(xs, site.where);
  return record_with_effects(call_of(site), users_step, init,
                             [&](const LoopCall& loop, const StepFunction& body, Leaves carried) {
                               return record_counted_loop(loop, body, std::move(carried), xs, steps);
                             });
}

std::vector<Array> compiled_fori(const LoopSite& site, int lo, int hi,
                                 const std::function<Leaves(const Array&, const Leaves&)>& body,
                                 const Leaves& init) {
  const Call here(site.call, site.where);
  auto call = call_of(site);
  call.leaf_names.insert(call.leaf_names.begin(), " i");
  const StepFunction step = [&](const std::vector<Array>& carried, const std::vector<Array>&) {
    std::vector<Array> out{carried[0] + 1};
    const UserCode users;
    const auto results = body(carried[0], {carried.begin() + 1, carried.end()});
    out.insert(out.end(), results.begin(), results.end());
    return out;
  };
  std::vector<Array> with_index{Array(lo)};
  with_index.insert(with_index.end(), init.begin(), init.end());
  auto results = record_with_effects(
      call, step, std::move(with_index), [&](const LoopCall& loop, const StepFunction& f, Leaves carried) {
        return record_counted_loop(loop, f, std::move(carried), {}, std::int64_t{hi} - lo);
      });
  results.erase(results.begin());
  return results;
}

std::optional<Leaves> compiled_alike(const LoopSite& site, int lo, int hi,
                                     const std::function<Leaves(int, const Leaves&)>& body,
                                     const Leaves& init) {
  const Call here(site.call, site.where);
  const auto call = call_of(site);
  const auto users_body = [&](int i, const Leaves& values) {
    const UserCode users;
    return body(i, values);
  };
  const EffectScope effects;  // a loop with effects is unrolled
  const auto first = settle_carried(call, init, [&](const Leaves& values) { return users_body(lo, values); });
  if (effects.has_effects()) return std::nullopt;
  AlikeSteps steps(first, hi - lo);
  for (int i = lo + 1; i < hi; ++i)
    if (!steps.add(i - lo, users_body(i, first.parameters))) return std::nullopt;
  return steps.run(call, first.parameters, first.init);
}

std::vector<Array> compiled_while(const LoopSite& site, const LeafFunction& condition,
                                  const LeafFunction& body, const Leaves& init) {
  const Call call(site.call, site.where);
  const auto users = [](const LeafFunction& f) -> LeafFunction {
    return [&f](const Leaves& values) {
      const UserCode users_lines;
      return f(values);
    };
  };
  const auto users_condition = users(condition), users_body = users(body);
  const LeafFunction only_reads = [&](const Leaves& values) {
    const EffectScope effects;
    auto verdict =
        users_condition({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(init.size())});
    if (effects.has_effects())
      throw ArgumentError(call_text() + ": the condition prints, or calls back; let the body do that");
    return verdict;
  };
  const StepFunction step = [&](const Leaves& values, const Leaves&) { return users_body(values); };
  return record_with_effects(
      call_of(site), step, init, [&](const LoopCall& loop, const StepFunction& f, Leaves carried) {
        return record_until_loop(
            loop, only_reads, [&f](const Leaves& values) { return f(values, {}); }, std::move(carried));
      });
}

std::vector<Array> compiled_cond(const Operand& predicate, const std::function<Leaves()>& where_true,
                                 const std::function<Leaves()>& where_false) {
  const Call call("cond", predicate.where);
  const auto users = [](const std::function<Leaves()>& branch) -> Thunk {
    return [&branch] {
      const UserCode users_lines;
      return branch();
    };
  };
  const auto on_true = users(where_true), on_false = users(where_false);
  bool has_effects = false;
  const auto watched = [&has_effects](const Thunk& branch) -> Thunk {
    return [&has_effects, &branch] {
      const EffectScope effects;
      auto results = branch();
      has_effects |= effects.has_effects();
      return results;
    };
  };
  auto results = record_branch(predicate.array, watched(on_true), watched(on_false));
  if (!has_effects) return results;
  const Array before = effect_token();
  const auto carrying = [&before](const Thunk& branch) -> Thunk {
    return [&before, &branch] {
      const EffectScope effects(before);
      auto made = branch();
      made.push_back(effects.token());
      return made;
    };
  };
  results = record_branch(predicate.array, carrying(on_true), carrying(on_false));
  hand_on_effects(results.back());
  results.pop_back();
  return results;
}

Leaves chosen_branch(const Operand& predicate, bool holds, Leaves taken,
                     const std::function<Leaves()>& other) {
  const Call call("cond", predicate.where);
  auto dropped = [&] {
    const InlinedTrace only_recorded;
    const EffectScope effects;
    const UserCode users;
    return other();
  }();
  if (holds)
    join_branches(taken, dropped);
  else
    join_branches(dropped, taken);
  return taken;
}

namespace {

// Splits the stack of a step-by-step loop along the steps, as a compiled loop would.
Array split_along_steps(const Array& stack, const std::optional<SplitSteps>& split) {
  const auto& sharding = output_of(stack).sharding;
  if (!sharding || !sharding->dim_axes(stack.ndim())[0].empty()) return stack;
  const Sharding entry = without_first_dim(*sharding, stack.ndim());
  const auto& over = steps_made_over(split, entry, stack.ndim() - 1);
  return over.empty() ? stack : device_put(stack, tessera::stacked(entry, stack.ndim() - 1, over));
}

}  // namespace

std::vector<Array> stack_leaves(const std::vector<std::vector<Array>>& rows, const std::vector<Array>& xs,
                                std::source_location where) {
  const Call call("scan", where);
  const auto split = split_steps_of(xs);
  std::vector<Array> stacked;
  for (std::size_t leaf = 0; leaf < rows[0].size(); ++leaf) {
    std::vector<Array> column;
    for (const auto& row : rows) column.push_back(row[leaf]);
    stacked.push_back(split_along_steps(stack(std::move(column), 0), split));
  }
  return stacked;
}

std::int64_t leading_size(const std::vector<Array>& leaves, std::source_location where) {
  const Call call("scan", where);
  if (leaves.empty()) throw ArgumentError(call_text() + ": xs holds no arrays");
  for (const auto& x : leaves) {
    check_usable(x);
    if (x.ndim() == 0)
      throw ShapeError(call_text() + ": " + describe(x) +
                       " is a scalar; every array of xs needs a leading dimension to step along");
    if (x.shape()[0] != leaves[0].shape()[0])
      throw ShapeError(call_text() + ": the leading sizes of xs differ: " + describe(leaves[0]) + " and " +
                       describe(x));
  }
  return leaves[0].shape()[0];
}

Array leading_entry(const Array& x, std::int64_t i, std::source_location where) {
  const Call call("scan", where);
  return x(i);
}

}  // namespace tessera::detail
