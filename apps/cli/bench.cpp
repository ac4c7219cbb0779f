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

// Rank r sends to r + 1: each rank sends and receives `bytes`.
double ring_seconds(std::int64_t bytes, int repeat) {
  const int n = device_count(), me = process_index();
  std::vector<std::byte> out(bytes), in(bytes);
  const comm::Message send{(me + 1) % n, out.data(), bytes}, receive{(me + n - 1) % n, in.data(), bytes};
  return seconds_of([&] {
           for (int r = 0; r < repeat; ++r)
             comm::exchange(
                 comm::world(), std::span(&send, 1), std::span(&receive, 1), [](std::size_t) {},
                 "calibration");
         }) /
         repeat;
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
  if (device_count() > 1) {
    model.latency_s = ring_seconds(8, 200);
    constexpr std::int64_t bytes = 8 << 20;
    model.bytes_per_s = static_cast<double>(bytes) / std::max(1e-9, ring_seconds(bytes, 2) - model.latency_s);
  }
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
        "{\"latency_s\": %.3g, \"bytes_per_s\": %.4g, \"flops_per_s\": %.4g, \"memory_bytes_per_s\": %.4g, "
        "\"path\": \"%s\"}\n",
        model.latency_s, model.bytes_per_s, model.flops_per_s, model.memory_bytes_per_s,
        machine_model_path().c_str());
  else
    std::printf(
        "latency %.2f us, %.2f GB/s between ranks, %.1f Gflop/s and %.1f GB/s of memory per rank; kept in "
        "%s\n",
        model.latency_s * 1e6, model.bytes_per_s / 1e9, model.flops_per_s / 1e9,
        model.memory_bytes_per_s / 1e9, machine_model_path().c_str());
  return 0;
}

}  // namespace cli
