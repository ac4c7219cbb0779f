// tessera_bench [--filter NAME] [--json FILE] [--list]: see bench.hpp. scripts/bench starts it at several
// rank counts.
#include "bench.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace bench {
namespace {

struct State {
  std::string filter, json_path;
  bool list = false;
  int rank = 0, ranks = 1;
  std::vector<void (*)()> groups;
};
State& state() {
  static State instance;
  return instance;
}

}  // namespace

double seconds_of(const Work& work) {
  MPI_Barrier(MPI_COMM_WORLD);
  const double start = MPI_Wtime();
  work();
  double mine = MPI_Wtime() - start, slowest = 0;
  MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

Group::Group(void (*rows)()) { state().groups.push_back(rows); }

bool wanted(const std::string& name) {
  if (state().list && state().rank == 0) std::printf("%s\n", name.c_str());
  return !state().list && name.find(state().filter) != std::string::npos;
}

void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, int repetitions) {
  std::vector<double> our_times;
  std::vector<std::vector<double>> peer_times(peers.size());
  for (int r = -2; r < repetitions; ++r) {  // the first two plan, touch memory and fill caches
    const double s = seconds_of(ours);
    if (r >= 0) our_times.push_back(s);
    for (std::size_t p = 0; p < peers.size(); ++p) {
      if (!peers[p].work) continue;
      if (peers[p].prepare) peers[p].prepare();
      const double peer_s = seconds_of(peers[p].work);
      if (r >= 0) peer_times[p].push_back(peer_s);
    }
  }
  if (state().rank != 0) return;
  const double ours_s = median(our_times);
  for (std::size_t p = 0; p < peers.size(); ++p) {
    const double peer_s = (peers[p].work ? median(peer_times[p]) : peers[p].fixed_s) + peers[p].extra_s,
                 ratio = peer_s / ours_s;
    const char* verdict = peers[p].goal == 0 ? "" : ratio >= peers[p].goal ? "reached" : "MISSED";
    std::printf("%-28s %2d ranks %12.1f us   %-28s %12.1f us   ratio %6.2f   goal %5.2f %s\n", name.c_str(),
                state().ranks, ours_s * 1e6, peers[p].name.c_str(), peer_s * 1e6, ratio, peers[p].goal,
                verdict);
    std::fflush(stdout);
    if (state().json_path.empty()) continue;
    std::ofstream(state().json_path, std::ios::app)
        << nlohmann::json{{"name", name},          {"ranks", state().ranks}, {"ours_s", ours_s},
                          {"peer", peers[p].name}, {"peer_s", peer_s},       {"ratio", ratio},
                          {"goal", peers[p].goal}}
               .dump()
        << "\n";
  }
}

void compare_bytes(const std::string& name, double ours, const std::string& what, double asked) {
  struct {
    double ratio;
    int rank;
  } mine{asked / ours, state().rank}, least{};
  MPI_Allreduce(&mine, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, MPI_COMM_WORLD);
  double both[] = {ours, asked};
  MPI_Bcast(both, 2, MPI_DOUBLE, least.rank, MPI_COMM_WORLD);
  if (state().rank != 0) return;
  std::printf("%-28s %2d ranks %12.1f MiB  %-28s %12.1f MiB  ratio %6.2f   %s\n", name.c_str(), state().ranks,
              both[0] / (1 << 20), what.c_str(), both[1] / (1 << 20), least.ratio,
              least.ratio >= 1 ? "reached" : "MISSED");
  std::fflush(stdout);
  if (state().json_path.empty()) return;
  std::ofstream(state().json_path, std::ios::app)
      << nlohmann::json{{"name", name}, {"ranks", state().ranks}, {"ours_bytes", both[0]},
                        {"peer", what}, {"peer_bytes", both[1]},  {"ratio", least.ratio},
                        {"goal", 1}}
             .dump()
      << "\n";
}

int rank() { return state().rank; }
int ranks() { return state().ranks; }
tessera::Sharding split(const tessera::PartitionSpec& spec) {
  return tessera::NamedSharding(tessera::make_mesh({ranks()}, {"x"}), spec);
}
tessera::Sharding on_one() { return tessera::SingleDeviceSharding(tessera::devices()[0]); }

}  // namespace bench

int main(int argc, char** argv) {
  auto& state = bench::state();
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--list")
      state.list = true;
    else if (word == "--filter" && i + 1 < argc)
      state.filter = argv[++i];
    else if (word == "--json" && i + 1 < argc)
      state.json_path = argv[++i];
    else {
      std::fprintf(stderr, "usage: tessera_bench [--filter NAME] [--json FILE] [--list]\n");
      return 2;
    }
  }
  return tessera::run(argc, argv, [&] {
    state.rank = tessera::process_index();
    state.ranks = tessera::process_count();
    for (const auto group : state.groups) group();
  });
}
