// tessera bench --calibrate: measures what the planner's cost model asks for, between the ranks of this job.
// Without it this process becomes the benchmark program, which stands beside this one in a build tree.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>

#include "comm/collectives/collectives.hpp"
#include "comm/host/hosts.hpp"
#include "commands.hpp"
#include "compile/cost.hpp"

namespace cli {

using namespace tessera;

namespace {

double seconds_of(const std::function<void()>& work) {
  double best = 1e300;
  for (int r = 0; r < 9; ++r) {
    comm::barrier(comm::world());
    const auto start = std::chrono::steady_clock::now();
    work();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  double worst = 0;  // the model is of the slowest rank
  comm::all_reduce(comm::world(), ReduceKind::max, float64, &best, &worst, 1);
  return worst;
}

// Where this rank sends and receives; -1: it looks on.
struct Neighbours {
  int next = -1, previous = -1;
};

// Each rank of a ring sends `bytes` to the next one, all rings at once.
double ring_seconds(Neighbours ring, std::int64_t bytes, int repeat) {
  std::vector<std::byte> out(bytes), in(bytes);
  const comm::Message send{ring.next, out.data(), bytes}, receive{ring.previous, in.data(), bytes};
  return seconds_of([&] {
           for (int r = 0; r < repeat && ring.next >= 0; ++r)
             comm::exchange(
                 comm::world(), std::span(&send, 1), std::span(&receive, 1), [](std::size_t) {},
                 "calibration");
         }) /
         repeat;
}

Neighbours neighbours_in(const std::vector<int>& ring) {
  const int n = static_cast<int>(ring.size());
  const auto mine = std::find(ring.begin(), ring.end(), process_index());
  if (n < 2 || mine == ring.end()) return {};
  const int at = static_cast<int>(mine - ring.begin());
  return {ring[(at + 1) % n], ring[(at + n - 1) % n]};
}

// What a message costs: few bytes tell the latency, many the rate.
void measure_inside(MachineModel& model, const comm::HostGroups& groups) {
  const auto ring = neighbours_in(groups.mine(process_index()));
  constexpr std::int64_t bytes = 8 << 20;
  model.inside.latency_s = ring_seconds(ring, 8, 200);
  model.inside.bytes_per_s =
      static_cast<double>(bytes) / std::max(1e-9, ring_seconds(ring, bytes, 2) - model.inside.latency_s);
}

// The k-th ranks of all hosts are a ring: the first ones tell the latency, all together the rate of a host.
void measure_between(MachineModel& model, const comm::HostGroups& groups) {
  std::size_t rings = groups.members[0].size();
  for (const auto& members : groups.members) rings = std::min(rings, members.size());
  std::vector<std::vector<int>> ring(rings);
  for (const auto& members : groups.members)
    for (std::size_t k = 0; k < rings; ++k) ring[k].push_back(members[k]);
  const auto place = static_cast<std::size_t>(groups.place[process_index()]);
  const auto mine = place < rings ? neighbours_in(ring[place]) : Neighbours{};
  constexpr std::int64_t bytes = 4 << 20;
  model.between.latency_s = ring_seconds(place == 0 ? mine : Neighbours{}, 8, 50);
  model.between.bytes_per_s = static_cast<double>(bytes) * static_cast<double>(rings) /
                              std::max(1e-9, ring_seconds(mine, bytes, 2) - model.between.latency_s);
}

}  // namespace

int run_benchmark(const std::vector<std::string>& words) {
  char self[4096] = "";
  if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) self[0] = '\0';
  const auto program = std::filesystem::path(self).parent_path().parent_path() / "apps/bench/tessera_bench";
  if (!std::filesystem::exists(program))
    throw UsageError(
        "bench: the benchmark is not installed; run scripts/bench in the source tree. tessera bench "
        "--calibrate measures this machine");
  std::vector<std::string> all = {program.string()};
  all.insert(all.end(), words.begin(), words.end());
  std::vector<char*> argv;
  for (auto& word : all) argv.push_back(word.data());
  argv.push_back(nullptr);
  execv(argv[0], argv.data());
  std::fprintf(stderr, "tessera: %s cannot be started: %s\n", argv[0], std::strerror(errno));
  return 1;
}

int calibrate(const Order& order) {
  MachineModel model = machine_model();
  const auto& groups = comm::host_groups(comm::world());
  std::size_t most = 0;
  for (const auto& members : groups.members) most = std::max(most, members.size());
  if (most > 1) measure_inside(model, groups);
  if (groups.hosts() > 1) measure_between(model, groups);
  constexpr std::int64_t n = 768;
  const Sharding here = NamedSharding(make_mesh({device_count()}, {"x"}), P("x"));
  const Array a = device_put(full({device_count(), n, n}, 1.5f), here),
              b = device_put(full({device_count(), n, n}, 0.5f), here);
  eval(a, b);
  model.flops_per_s = 2.0 * n * n * n / seconds_of([&] { eval(matmul(a, b)); });
  const std::int64_t elements = 8 << 20;
  const Array x = device_put(ones({device_count(), elements}), here);
  eval(x);
  model.memory_bytes_per_s =
      8.0 * static_cast<double>(elements) / seconds_of([&] { eval(x + 1); });  // one read, one write
  if (!is_main_process()) return 0;
  save_machine_model(model);
  if (order.json)
    std::printf(
        "{\"latency_s\": %.3g, \"bytes_per_s\": %.4g, \"host_latency_s\": %.3g, \"host_bytes_per_s\": %.4g, "
        "\"flops_per_s\": %.4g, \"memory_bytes_per_s\": %.4g, "
        "\"path\": \"%s\"}\n",
        model.inside.latency_s, model.inside.bytes_per_s, model.between.latency_s, model.between.bytes_per_s,
        model.flops_per_s, model.memory_bytes_per_s, machine_model_path().c_str());
  else
    std::printf(
        "inside a host %.2f us and %.2f GB/s, between hosts %.2f us and %.2f GB/s%s; %.1f Gflop/s and %.1f "
        "GB/s of memory per rank; kept in "
        "%s\n",
        model.inside.latency_s * 1e6, model.inside.bytes_per_s / 1e9, model.between.latency_s * 1e6,
        model.between.bytes_per_s / 1e9, groups.hosts() > 1 ? "" : " (not measured: one host)",
        model.flops_per_s / 1e9, model.memory_bytes_per_s / 1e9, machine_model_path().c_str());
  return 0;
}

}  // namespace cli
