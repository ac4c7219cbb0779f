#include <algorithm>
#include <chrono>
#include <fstream>

#include "options.hpp"
#include "raw_mpi.hpp"
#include "report.hpp"

namespace bench {

double seconds_of(const Work& work) {
  using Clock = std::chrono::steady_clock;
  raw::barrier();
  const auto start = Clock::now();
  work();
  return raw::largest(std::chrono::duration<double>(Clock::now() - start).count());
}

double median(std::vector<double> times) {
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

namespace {

struct Samples {
  std::vector<double> ours;
  std::vector<std::vector<double>> peers;
};

// Runs one repetition of tessera's work and of each peer; returns the total time.
double repeat_once(const Work& ours, const Work& prepare, const std::vector<Peer>& peers, Samples* samples) {
  if (prepare) prepare();
  const double ours_s = seconds_of(ours);
  double all_s = ours_s;
  if (samples != nullptr) samples->ours.push_back(ours_s);
  for (std::size_t p = 0; p < peers.size(); ++p) {
    if (!peers[p].work) continue;
    if (peers[p].prepare) peers[p].prepare();
    const double peer_s = seconds_of(peers[p].work);
    all_s += peer_s;
    if (samples != nullptr) samples->peers[p].push_back(peer_s);
  }
  return all_s;
}

Limit limit_among(const std::vector<Peer>& peers, const std::vector<Side>& sides) {
  for (std::size_t p = 0; p < peers.size(); ++p)
    if (peers[p].is_limit) return {peers[p].name, sides[p].seconds};
  return {};
}

}  // namespace

void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, const Repeat& repeat,
             const Cost& cost) {
  Samples samples;
  samples.peers.resize(peers.size());
  // The first two repetitions plan, touch memory and fill caches; if they take long, one suffices.
  const double first_s = repeat_once(ours, repeat.prepare, peers, nullptr), seconds = options().seconds;
  if (first_s < seconds / 10) repeat_once(ours, repeat.prepare, peers, nullptr);
  double spent_s = first_s;  // equal on all ranks, so that all of them decide alike
  for (int r = 0; r < repeat.times && (r < 2 || spent_s < seconds); ++r)
    spent_s += repeat_once(ours, repeat.prepare, peers, &samples);

  std::vector<Side> sides;
  for (std::size_t p = 0; p < peers.size(); ++p) {
    const double peer_s = peers[p].work ? median(samples.peers[p]) : peers[p].fixed_s;
    sides.push_back({peer_s + peers[p].extra_s, samples.peers[p]});
  }
  const auto by_peer = limit_among(peers, sides);
  const auto limit = by_peer.seconds > 0 ? by_peer : limit_of(cost);
  if (rank() != 0) return;
  const Side mine{median(samples.ours), samples.ours};
  for (std::size_t p = 0; p < peers.size(); ++p) report_times(name, mine, peers[p], sides[p], limit);
}

void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, int repetitions,
             const Cost& cost) {
  compare(name, ours, peers, Repeat{repetitions, {}}, cost);
}

void compare_bytes(const std::string& name, double ours, const std::string& what, double asked) {
  double both[] = {ours, asked};
  raw::broadcast(both, 2, raw::rank_of_least(asked / ours));
  if (rank() == 0) report_bytes(name, both[0], what, both[1], both[1] / both[0]);
}

namespace {

// Reads a line: key first second.
std::pair<int, int> read_choice(const std::string& key) {
  std::ifstream file(options().choices_path);
  std::string word;
  for (std::pair<int, int> choice; file >> word >> choice.first >> choice.second;)
    if (word == key) return choice;
  return {0, 0};
}

}  // namespace

std::pair<int, int> best_choice(const std::string& key, const std::function<std::pair<int, int>()>& find) {
  const std::string full_key = key + "_" + std::to_string(ranks()) + options().suffix;
  const auto known = rank() == 0 ? read_choice(full_key) : std::pair(0, 0);
  int both[2] = {known.first, known.second};
  raw::broadcast(both, 2, 0);
  if (both[0] != 0) return {both[0], both[1]};
  const auto found = find();
  if (rank() == 0 && !options().choices_path.empty())
    std::ofstream(options().choices_path, std::ios::app)
        << full_key << " " << found.first << " " << found.second << "\n";
  return found;
}

}  // namespace bench
