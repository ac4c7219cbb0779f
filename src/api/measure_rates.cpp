#include "api/measure_rates.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/environment.hpp"
#include "kernels/dense/gemm.hpp"
#include "types/pooled.hpp"

namespace tessera {
namespace {

class Measurement {
 public:
  explicit Measurement(Effort effort)
      : repetitions_(effort == Effort::quick ? 3 : 9), scale_(effort == Effort::quick ? 1 : 4) {}

  // Each rank multiplies its own matrices at the same time as the others.
  double flops_per_s() const {
    const std::int64_t n = 256 * (scale_ > 1 ? 3 : 1);
    std::vector<double> a(n * n, 1.5), b(n * n, 0.5), c(n * n);
    return 2.0 * static_cast<double>(n * n * n) / slowest([&] {
             kernels::gemm(float64, false, false, n, n, n, a.data(), n, b.data(), n, false, c.data(), n);
           });
  }
  // A copy reads and writes; blocks are larger than a core's caches.
  double memory_bytes_per_s() const {
    const std::int64_t bytes = (std::int64_t{8} << 20) * scale_;
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
    return 2.0 * static_cast<double>(bytes) / slowest([&] { std::memcpy(to.data(), from.data(), bytes); });
  }
  // The ranks of each host are a ring.
  Link inside(const comm::HostGroups& groups) const {
    const auto ring = neighbours_in(groups.mine(rank()));
    return link(ring, ring, 1);
  }
  // The k-th ranks of all hosts are a ring: the first ones tell the latency, all together a host's rate.
  Link between(const comm::HostGroups& groups) const {
    std::size_t rings = groups.members[0].size();
    for (const auto& members : groups.members) rings = std::min(rings, members.size());
    const auto index = static_cast<std::size_t>(groups.place[rank()]);
    std::vector<int> ring;
    if (index < rings)
      for (const auto& members : groups.members) ring.push_back(members[index]);
    const auto mine = neighbours_in(ring);
    return link(index == 0 ? mine : Neighbours{}, mine, rings);
  }

 private:
  struct Neighbours {
    int next = -1, previous = -1;  // -1: this rank sends nothing
  };

  static int rank() { return comm::world().device_ids()[comm::world().rank()]; }

  static Neighbours neighbours_in(const std::vector<int>& ring) {
    const int n = static_cast<int>(ring.size());
    const auto mine = std::find(ring.begin(), ring.end(), rank());
    if (n < 2 || mine == ring.end()) return {};
    const int at = static_cast<int>(mine - ring.begin());
    return {ring[(at + 1) % n], ring[(at + n - 1) % n]};
  }

  // Few bytes tell the latency, many the rate.
  Link link(Neighbours for_latency, Neighbours for_rate, std::size_t rings) const {
    const std::int64_t bytes = (std::int64_t{1} << 20) * scale_;
    const double latency = ring_seconds(for_latency, 8, 50 * scale_);
    const double seconds = std::max(1e-9, ring_seconds(for_rate, bytes, 2) - latency);
    return {latency, static_cast<double>(bytes) * static_cast<double>(rings) / seconds};
  }

  double ring_seconds(Neighbours ring, std::int64_t bytes, int repeat) const {
    std::vector<std::byte> out(bytes), in(bytes);
    const comm::Message send{ring.next, out.data(), bytes}, receive{ring.previous, in.data(), bytes};
    return slowest([&] {
             for (int r = 0; r < repeat && ring.next >= 0; ++r)
               comm::exchange(
                   comm::world(), std::span(&send, 1), std::span(&receive, 1), [](std::size_t) {},
                   "measuring the machine");
           }) /
           repeat;
  }

  // Of the slowest rank, each at its best.
  double slowest(const std::function<void()>& work) const {
    double best = std::numeric_limits<double>::max(), worst = 0;
    for (int r = 0; r < repetitions_; ++r) {
      comm::barrier(comm::world());
      const auto start = std::chrono::steady_clock::now();
      work();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    comm::all_reduce(comm::world(), ReduceKind::max, float64, &best, &worst, 1);
    return std::max(worst, 1e-9);
  }

  int repetitions_, scale_;
};

std::size_t most_ranks_of_a_host(const comm::HostGroups& groups) {
  std::size_t most = 0;
  for (const auto& members : groups.members) most = std::max(most, members.size());
  return most;
}

}  // namespace

Rates measure_rates(const Rates& before, Effort effort) {
  const Measurement measurement(effort);
  const auto& groups = comm::host_groups(comm::world());
  Rates r = before;
  r.flops_per_s = measurement.flops_per_s();
  r.memory_bytes_per_s = measurement.memory_bytes_per_s();
  r.has_compute = true;
  if (most_ranks_of_a_host(groups) > 1) r.inside = measurement.inside(groups), r.has_inside = true;
  if (groups.hosts() > 1) r.between = measurement.between(groups), r.has_between = true;
  return r;
}

void share_rates() {
  struct Shared {
    Rates rates;
    int is_given = 0, cores = 0;
  } shared{rates(), settings().machine.empty() ? 0 : 1,
           static_cast<int>(std::thread::hardware_concurrency())};
  comm::broadcast_at_start(&shared, sizeof shared);
  set_rates(shared.rates);
  if (shared.is_given != 0) return;
  const auto& groups = comm::host_groups(comm::world());
  const bool lacks = !shared.rates.has_compute ||
                     (most_ranks_of_a_host(groups) > 1 && !shared.rates.has_inside) ||
                     (groups.hosts() > 1 && !shared.rates.has_between);
  if (!lacks || most_ranks_of_a_host(groups) > static_cast<std::size_t>(shared.cores)) return;
  const Rates measured = measure_rates(shared.rates, Effort::quick);
  set_rates(measured);
  if (comm::world().rank() == 0 && !keep_rates(measured))
    log(LogLevel::info, "the rates of this machine cannot be kept in " + machine_path() +
                            ": each start measures them again; set XDG_CACHE_HOME to a folder of yours");
}

}  // namespace tessera
