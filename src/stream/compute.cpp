// compute, store, and their plans.
#include <tessera/array/read.hpp>
#include <tessera/io/stream.hpp>

#include <filesystem>
#include <set>
#include <sstream>

#include "base/call.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "ops/build.hpp"
#include "stream/run.hpp"
#include "stream/spill/spill_sink.hpp"
#include "stream/stages.hpp"
#include "stream/targets/store.hpp"
#include "types/buffer.hpp"
#include "types/other_memory.hpp"

namespace tessera::io {
namespace {

using stream::Plan;
using stream::Request;

std::vector<Array> usable(const std::vector<Array>& values) {
  for (const auto& x : values) check_usable(x);
  return values;
}

struct Plans {
  std::int64_t count = 0;
};

// The plan that all ranks make: within the least of their limits.
Plan agreed_plan(const Team& team, Request request) {
  std::int64_t limit = request.memory_limit > 0 ? request.memory_limit : stream::free_share();
  comm::all_reduce(comm::world(), ReduceKind::min, int64, &limit, &limit, 1);
  request.memory_limit = limit;
  request.number = ++state<Plans>().count;
  std::optional<Plan> plan;
  team.together([&] { plan.emplace(stream::plan_of(request)); });
  return std::move(*plan);
}

std::string agreed_call(const std::vector<Array>& values, const std::string& more) {
  return current_call().name + more + "\n" + graph_text(collect(values, false));
}

// The file of each result; nullptr: it is kept.
using Targets = std::vector<std::unique_ptr<stream::StoreTarget>>;

// Runs the stages of a plan; their temporary files lose their space when it ends.
class PlanRun {
 public:
  PlanRun(const Team& team, Plan& plan, std::size_t results, std::string folder)
      : team_(team), plan_(plan), results_(results), folder_(std::move(folder)) {}
  ~PlanRun() {
    for (const auto& stage : plan_.stages)
      for (const auto& outcome : stage.outcomes)
        if (outcome.spill) outcome.spill->close();
  }
  PlanRun(const PlanRun&) = delete;
  PlanRun& operator=(const PlanRun&) = delete;

  // The values; of one whose slabs go to its target nothing is kept. Freed blocks of other sizes do not come
  // on top of the slabs.
  std::vector<Array> run(const Targets& targets) && {
    const PoolBound bound(memory_use().live_bytes + plan_.facts.limit_bytes);
    for (const auto& planned : plan_.stages) run_stage(planned, targets);
    return std::move(results_);
  }

 private:
  void run_stage(const stream::PlannedStage& planned, const Targets& results) {
    const auto& stage = planned.stage;
    const auto target_of = [&](std::size_t i) {
      const int result = planned.outcomes[i].result;
      return result < 0 || results.empty() ? nullptr : results[static_cast<std::size_t>(result)].get();
    };
    if (planned.panels) return run_panels(planned, target_of(0));
    std::vector<std::unique_ptr<stream::SpillSink>> sinks;
    std::vector<stream::Runner::Target> targets(stage.wanted.size());
    for (std::size_t i = 0; i < targets.size(); ++i) {
      const auto& x = stage.wanted[i].value;
      if (stage.roles.role(x).kind == stream::Role::slab)
        targets[i] = {target_of(i), stage.dims->dim_in(stage.roles.dim_class, x)};
      if (const auto& spill = planned.outcomes[i].spill) {
        spill->open(team_, call_text(), folder_);
        sinks.push_back(std::make_unique<stream::SpillSink>(team_, spill));
        targets[i].sink = sinks.back().get();
      }
    }
    stream::Runner runner(team_, call_text(), std::move(targets));
    auto values = stream::walk(
        {stage.graph, *stage.dims, stage.roles, stage.extent, stage.length, stage.split_class, known_},
        stage.wanted, runner);
    for (const auto& sink : sinks) sink->finish();
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto& outcome = planned.outcomes[i];
      if (outcome.result >= 0) results_[static_cast<std::size_t>(outcome.result)] = values[i];
      if (outcome.placeholder.node()) known_[stream::id_of(outcome.placeholder)] = values[i];
    }
  }

  void run_panels(const stream::PlannedStage& planned, stream::SlabSink* target) {
    std::unique_ptr<stream::SpillSink> sink;
    if (const auto& spill = planned.outcomes[0].spill) {
      spill->open(team_, call_text(), folder_);
      sink = std::make_unique<stream::SpillSink>(team_, spill);
      target = sink.get();
    }
    const stream::Room room{plan_.facts.limit_bytes, planned.panels->slab, 0};
    for (const Box& box : stream::boxes_of(*planned.panels)) {
      const auto stage = *stream::stage_of_panel(*stream::panel_of(planned.panels->value, box), room);
      stream::Runner runner(team_, call_text(), {{}});
      Array panel = stream::walk(
          {stage.graph, *stage.dims, stage.roles, stage.extent, stage.length, stage.split_class, known_},
          stage.wanted, runner)[0];
      panel = target->placed(panel);
      eval({panel});
      stream::Place at;
      for (const auto& range : box) at.push_back(range.start);
      target->write(panel, at);
    }
    if (sink) sink->finish();
  }

  const Team& team_;
  Plan& plan_;
  std::vector<Array> results_;
  std::string folder_;
  std::map<stream::ValueId, Array> known_;
};

// The slabs of a result, if it has the streamed dim in the stage that computes it.
std::optional<stream::SlabShape> slabs_of_result(const Plan& plan, int result) {
  for (const auto& [stage, outcomes, panels] : plan.stages)
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Array& x = stage.wanted[i].value;
      if (panels && outcomes[i].result == result) return stream::SlabShape{0, panels->extents[0]};
      if (panels) continue;
      if (outcomes[i].result == result && stage.roles.role(x).kind == stream::Role::slab)
        return stream::SlabShape{stage.dims->dim_in(stage.roles.dim_class, x), stage.length};
    }
  return std::nullopt;
}

std::string seconds_text(double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << seconds << " s";
  return text.str();
}

StreamPlan explained(const Request& request) {
  if (!stream::reads_files(collect(request.values, false)))
    throw ArgumentError(
        call_text() + ": the expression reads no file that io::open gave; explain plans programs in memory");
  return stream::plan_of(request).facts;
}

// Results for files, checked.
struct Storing {
  Request request;
  std::vector<stream::StoreFormat> formats;
  Storing(const std::vector<StoredResult>& results, const ComputeOptions& options)
      : request{{}, true, options.memory_limit, options.slab}, results_(results) {
    if (results.empty()) throw ArgumentError(call_text() + ": there is no result; give at least one");
    std::set<std::string> paths;
    for (const auto& [path, value, own] : results) {
      request.values.push_back(usable({value})[0]);
      formats.push_back(stream::store_format(path, own, value));
      request.chunks.push_back(stream::chunks_of_target(formats.back(), own));
      if (!paths.insert(std::filesystem::path(path).lexically_normal().string()).second)
        throw ArgumentError(call_text() + ": " + in_quotes(path) +
                            " is given twice; a call writes one array to each file or store");
      if (own.memory_limit != 0 || own.slab != 0)
        throw ArgumentError(call_text() + ": the result for " + in_quotes(path) +
                            " has a memory_limit or a slab of its own; give those of the program");
    }
  }
  std::string text() const {
    std::string text =
        ", memory_limit " + std::to_string(request.memory_limit) + ", slab " + std::to_string(request.slab);
    for (const auto& one : results_) text += " to " + in_quotes(one.path) + stream::options_text(one.options);
    return text;
  }

 private:
  const std::vector<StoredResult>& results_;
};
std::vector<StoredResult> alone(const std::string& path, const Array& value, StoreOptions options) {
  options.memory_limit = options.slab = 0;
  return {{path, value, std::move(options)}};
}

}  // namespace

std::vector<Array> compute(const std::vector<Array>& values, const ComputeOptions& options,
                           std::source_location where) {
  const Call call("compute", where);
  usable(values);
  if (!stream::reads_files(collect(values, false))) {
    eval(values);
    return values;
  }
  const Team team(agreed_call(values, ", memory_limit " + std::to_string(options.memory_limit) + ", slab " +
                                          std::to_string(options.slab)));
  Plan plan = agreed_plan(team, {values, false, options.memory_limit, options.slab});
  return PlanRun(team, plan, values.size(), stream::spill_folder("")).run({});
}
Array compute(const Array& value, const ComputeOptions& options, std::source_location where) {
  const Call call("compute", where);
  return compute(std::vector<Array>{value}, options, where)[0];
}

void store(const std::vector<StoredResult>& results, const ComputeOptions& options,
           std::source_location where) {
  const Call call("store", where);
  const Storing storing(results, options);
  const auto& values = storing.request.values;
  const Team team(agreed_call(values, storing.text()));
  std::optional<Plan> plan;
  if (stream::reads_files(collect(values, false))) plan.emplace(agreed_plan(team, storing.request));
  Targets targets(results.size());
  for (std::size_t i = 0; plan && i < results.size(); ++i)
    if (const auto slabs = slabs_of_result(*plan, static_cast<int>(i)))
      targets[i] = stream::store_target(team, results[i].path, storing.formats[i], results[i].options,
                                        values[i], *slabs);
  const std::string folder = stream::spill_folder(results[0].path);
  const auto found = plan ? PlanRun(team, *plan, values.size(), folder).run(targets) : values;
  for (const auto& target : targets)
    if (target) target->finish();
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!targets[i]) stream::save_whole(results[i].path, storing.formats[i], results[i].options, found[i]);
  for (const auto& target : targets)
    if (target) target->commit();
}
void store(const std::string& path, const Array& value, const StoreOptions& options,
           std::source_location where) {
  const Call call("store", where);
  store(alone(path, value, options), {options.memory_limit, options.slab}, where);
}

StreamPlan explain_compute(const std::vector<Array>& values, const ComputeOptions& options,
                           std::source_location where) {
  const Call call("explain_compute", where);
  return explained({usable(values), false, options.memory_limit, options.slab});
}
StreamPlan explain_store(const std::vector<StoredResult>& results, const ComputeOptions& options,
                         std::source_location where) {
  const Call call("explain_store", where);
  return explained(Storing(results, options).request);
}
StreamPlan explain_store(const std::string& path, const Array& value, const StoreOptions& options,
                         std::source_location where) {
  const Call call("explain_store", where);
  return explain_store(alone(path, value, options), {options.memory_limit, options.slab}, where);
}

std::string to_string(const StreamPlan& plan) {
  return "streamed along " + plan.streamed + "\n" +
         (plan.stages > 1 ? std::to_string(plan.stages) + " stages, " : "") +
         (plan.panels > 1 ? std::to_string(plan.panels) + " panels, each " : "") +
         std::to_string(plan.passes) + (plan.passes == 1 ? " pass of " : " passes of ") +
         format_count(plan.slabs, "slab") + " of " + std::to_string(plan.slab) +
         (plan.stages > 1 ? " at first" : "") + "\nreads " + format_bytes(plan.bytes_read) + ", writes " +
         format_bytes(plan.bytes_written) + ", spills " + format_bytes(plan.bytes_spilled) + "\npeak " +
         format_bytes(plan.peak_bytes) + " a rank of " + format_bytes(plan.limit_bytes) +
         "\narithmetic and messages " + seconds_text(plan.seconds) + ", besides the disk\n";
}

}  // namespace tessera::io
