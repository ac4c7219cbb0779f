// compute, store, and their plans.
#include <tessera/array/read.hpp>
#include <tessera/io/stream.hpp>

#include <sstream>

#include "base/call.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "ops/build.hpp"
#include "stream/plan.hpp"
#include "stream/store.hpp"
#include "types/buffer.hpp"

namespace tessera::io {
namespace {

using stream::Plan;
using stream::Request;

std::vector<Array> usable(const std::vector<Array>& values) {
  for (const auto& x : values) check_usable(x);
  return values;
}

// The plan that all ranks make: within the least of their limits.
Plan agreed_plan(const Team& team, Request request) {
  std::int64_t limit = request.memory_limit > 0 ? request.memory_limit : stream::free_share();
  comm::all_reduce(comm::world(), ReduceKind::min, int64, &limit, &limit, 1);
  request.memory_limit = limit;
  std::optional<Plan> plan;
  team.together([&] { plan.emplace(stream::plan_of(request)); });
  release_pooled_memory();  // freed blocks of other sizes would come on top of the slabs
  return std::move(*plan);
}

std::string agreed_call(const std::vector<Array>& values, const std::string& more) {
  return current_call().name + more + "\n" + graph_text(collect(values, false));
}

std::string seconds_text(double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << seconds << " s";
  return text.str();
}

StreamPlan explained(const Request& request) {
  if (!stream::reads_files(collect(request.wanted.values, false)))
    throw ArgumentError(
        call_text() + ": the expression reads no file that io::open gave; explain plans programs in memory");
  return stream::plan_of(request).facts;
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
  const Request request{{values, false}, options.memory_limit, options.slab};
  const Plan plan = agreed_plan(team, request);
  stream::Runner runner(team, call_text(), nullptr, -1);
  return stream::walk(plan.streamed(), request.wanted, runner);
}
Array compute(const Array& value, const ComputeOptions& options, std::source_location where) {
  const Call call("compute", where);
  return compute(std::vector<Array>{value}, options, where)[0];
}

void store(const std::string& path, const Array& value, const StoreOptions& options,
           std::source_location where) {
  const Call call("store", where);
  usable({value});
  const auto format = stream::store_format(path, options.name);
  const Team team(agreed_call({value}, " to " + quoted(path) + ", name " + quoted(options.name) +
                                           ", memory_limit " + std::to_string(options.memory_limit) +
                                           ", slab " + std::to_string(options.slab)));
  const Request request{{{value}, true}, options.memory_limit, options.slab};
  std::optional<Plan> plan;
  if (stream::reads_files(collect({value}, false))) plan.emplace(agreed_plan(team, request));
  const bool is_slab = plan && plan->roles.role(value).kind == stream::Role::slab;
  if (is_slab) {
    stream::StoredFile file(team, call_text(), path, format, options.name, value);
    stream::Runner runner(team, call_text(), &file, plan->dims->dim_in(plan->roles.dim_class, value));
    stream::walk(plan->streamed(), request.wanted, runner);
    return file.commit();
  }
  const Array whole = plan ? compute(value, {options.memory_limit, options.slab}, where) : value;
  if (format == stream::StoreFormat::npy) return save_npy(path, whole, where);
  save_hdf5(path, options.name, whole, {.mode = Hdf5Mode::replace}, where);
}

StreamPlan explain_compute(const std::vector<Array>& values, const ComputeOptions& options,
                           std::source_location where) {
  const Call call("explain_compute", where);
  return explained({{usable(values), false}, options.memory_limit, options.slab});
}
StreamPlan explain_store(const std::string& path, const Array& value, const StoreOptions& options,
                         std::source_location where) {
  const Call call("explain_store", where);
  stream::store_format(path, options.name);
  return explained({{usable({value}), true}, options.memory_limit, options.slab});
}

std::string to_string(const StreamPlan& plan) {
  return "streamed along " + plan.streamed + "\n" + std::to_string(plan.passes) +
         (plan.passes == 1 ? " pass of " : " passes of ") + format_count(plan.slabs, "slab") + " of " +
         std::to_string(plan.slab) + "\nreads " + format_bytes(plan.bytes_read) + ", writes " +
         format_bytes(plan.bytes_written) + ", spills " + format_bytes(plan.bytes_spilled) + "\npeak " +
         format_bytes(plan.peak_bytes) + " a rank of " + format_bytes(plan.limit_bytes) +
         "\narithmetic and messages " + seconds_text(plan.seconds) + ", besides the disk\n";
}

}  // namespace tessera::io
