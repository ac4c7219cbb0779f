#include "api/measure_rates.hpp"

#include <time.h>

#include <algorithm>
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
  Measurement(Effort effort, const Clock& clock)
      : clock_(clock),
        repetitions_(effort == Effort::quick ? 3 : 9),
        scale_(effort == Effort::quick ? 1 : 4) {}

  // Whether a measurement so far had no repetition in which all ranks had their cores.
  bool is_disturbed() const { return is_disturbed_; }

  // All ranks multiply matrices of their own at the same time.
  double flops_per_s() {
    const std::int64_t n = 256 * (scale_ > 1 ? 3 : 1);
    std::vector<double> a(n * n, 1.5), b(n * n, 0.5), c(n * n);
    return 2.0 * static_cast<double>(n * n * n) / slowest([&] {
             kernels::gemm({float64, n, n, n, {a.data(), n}, {b.data(), n}, c.data(), n});
           });
  }
  // Copies blocks larger than a core's caches; a copy counts as a read and a write.
  double memory_bytes_per_s() {
    const std::int64_t bytes = (std::int64_t{8} << 20) * scale_;
    std::vector<std::byte> from(bytes, std::byte{1}), to(bytes);
    return 2.0 * static_cast<double>(bytes) / slowest([&] { std::memcpy(to.data(), from.data(), bytes); });
  }
  // Measures a ring of each host's ranks.
  Link inside(const comm::HostGroups& groups) {
    const auto ring = neighbours_in(groups.mine(rank()));
    return link(ring, ring, 1);
  }
  // Measures rings of the k-th ranks of all hosts: the first ring gives the latency, all together a host's
  // rate.
  Link between(const comm::HostGroups& groups) {
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

  // Few bytes give the latency, many the rate.
  Link link(Neighbours for_latency, Neighbours for_rate, std::size_t rings) {
    const std::int64_t bytes = (std::int64_t{1} << 20) * scale_;
    const double latency = ring_seconds(for_latency, 8, 50 * scale_);
    const double seconds = std::max(1e-9, ring_seconds(for_rate, bytes, 2) - latency);
    return {latency, static_cast<double>(bytes) * static_cast<double>(rings) / seconds};
  }

  double ring_seconds(Neighbours ring, std::int64_t bytes, int repeat) {
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

  // The best repetition of each rank, and of these the longest: seconds of one call of work.
  double slowest(const std::function<void()>& work) {
    double best = std::numeric_limits<double>::max(), worst = 0;
    std::vector<double> without_core(repetitions_), on_any_rank(repetitions_);
    for (double& lacked : without_core) {
      const Clocked begun = clock_();
      comm::barrier(
          comm::world());  // is a part of the verdict: a rank that loses its core here delays the others
      const Clocked start = clock_();
      work();
      const Clocked end = clock_();
      best = std::min(best, end.wall_s - start.wall_s);
      lacked = had_core({end.wall_s - begun.wall_s, end.cpu_s - begun.cpu_s}) ? 0 : 1;
    }
    comm::all_reduce(comm::world(), ReduceKind::max, float64, &best, &worst, 1);
    comm::all_reduce(comm::world(), ReduceKind::max, float64, without_core.data(), on_any_rank.data(),
                     repetitions_);
    is_disturbed_ |= std::find(on_any_rank.begin(), on_any_rank.end(), 0) == on_any_rank.end();
    return std::max(worst, 1e-9);
  }

  const Clock& clock_;
  int repetitions_, scale_;
  bool is_disturbed_ = false;
};

std::size_t most_ranks_of_a_host(const comm::HostGroups& groups) {
  std::size_t most = 0;
  for (const auto& members : groups.members) most = std::max(most, members.size());
  return most;
}

}  // namespace

Clocked read_clocks() {
  const auto seconds_of = [](clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  };
  return {seconds_of(CLOCK_MONOTONIC), seconds_of(CLOCK_THREAD_CPUTIME_ID)};
}

bool had_core(Clocked spent) { return spent.wall_s <= 1.25 * spent.cpu_s + 20e-6; }

Measured measure_rates(const Rates& before, Effort effort, const Clock& clock) {
  Measurement measurement(effort, clock);
  const auto& groups = comm::host_groups(comm::world());
  Rates r = before, here;
  here.flops_per_s = r.flops_per_s = measurement.flops_per_s();
  here.memory_bytes_per_s = r.memory_bytes_per_s = measurement.memory_bytes_per_s();
  r.has_compute = true;
  if (most_ranks_of_a_host(groups) > 1)
    here.inside = r.inside = measurement.inside(groups), r.has_inside = true;
  const bool is_disturbed = measurement.is_disturbed() || !(without_implausible(here) == here);
  // Waits for another host may sleep, so this measurement cannot show that a rank lacked its core.
  if (groups.hosts() > 1) r.between = measurement.between(groups), r.has_between = true;
  return {r, is_disturbed};
}

void share_rates() {
  struct Shared {
    Rates rates;
    int is_given = 0, cores = 0;
  } shared{rates(), settings().machine.empty() ? 0 : 1,
           static_cast<int>(std::thread::hardware_concurrency())};
  comm::broadcast_at_start(&shared, sizeof shared);
  set_rates(shared.rates);
  if (shared.is_given != 0 || !settings().record.empty() || !settings().replay.empty()) return;
  const auto& groups = comm::host_groups(comm::world());
  const std::size_t ranks = most_ranks_of_a_host(groups);
  if (ranks > static_cast<std::size_t>(shared.cores))
    return set_rates(of_shared_cores(shared.rates, static_cast<double>(ranks) / shared.cores));
  const bool lacks = !shared.rates.has_compute || (ranks > 1 && !shared.rates.has_inside) ||
                     (groups.hosts() > 1 && !shared.rates.has_between);
  if (!lacks) return;
  const Measured measured = measure_rates(shared.rates, Effort::quick);
  if (measured.is_disturbed) {
    log_once(LogLevel::info,
             "other programs held the cores while the rates of this machine were measured: planned by the "
             "rates known before, and nothing kept; the next start measures again");
    return;
  }
  set_rates(measured.rates);
  if (comm::world().rank() == 0 && !keep_rates(measured.rates))
    log(LogLevel::info, "the rates of this machine cannot be kept in " + machine_path() +
                            ": each start measures them again; set XDG_CACHE_HOME to a folder of yours");
}

}  // namespace tessera
