// A row compares one operation of tessera with a peer: the same work by a plain library call, or by one rank.
//
// tessera's and the peer's repetitions alternate, so that a machine that slows down slows both. A repetition
// lasts as long as its slowest rank. ratio = peer_s / ours_s of the medians: 2 means twice as fast as the
// peer; `goal` is the required ratio. `limit` is the machine's limit: the achieved fraction is limit_s /
// ours_s.
#pragma once
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/tree.hpp>

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace bench {

using Work = std::function<void()>;

struct Peer {
  std::string name;
  Work work;
  double goal = 0;        // 0: no goal
  double fixed_s = 0;     // replaces work: a time that must not be exceeded
  double extra_s = 0;     // added to the peer's time: "MPI_Allreduce + 5 us"
  Work prepare = {};      // before each repetition of work, not timed
  bool is_limit = false;  // the fastest way to do this work: "memcpy"
};

// The least work of a row, over all ranks. Its limit is the longer of two times: the arithmetic at gemm's
// rate, and the bytes, read and written, at memcpy's rate. Both rates are measured on all ranks at once, at
// first use.
struct Cost {
  double flops = 0;  // flops of products
  int bits = 64;     // width of the floats: 32 or 64
  double bytes = 0;  // to and from memory, beyond the caches
};

// Whether to run a row: its name contains the filter. Groups ask before any set-up.
bool wanted(const std::string& name);
// `prepare` runs before each repetition of tessera's work and is not timed. A row that exceeds its time
// (--seconds) runs fewer repetitions, at least two.
struct Repeat {
  int times = 9;
  Work prepare = {};
};
void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, int repetitions = 9,
             const Cost& cost = {});
void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, const Repeat& repeat,
             const Cost& cost = {});
// Compares bytes: ratio = asked / ours, on the rank with the least ratio.
void compare_bytes(const std::string& name, double ours, const std::string& what, double asked);
// The seconds of the slowest rank, the same on all. Collective.
double seconds_of(const Work&);
double median(std::vector<double>);
// The pair with the least time, used for a peer; taken from earlier runs (--choices), else from find().
// Collective.
std::pair<int, int> best_choice(const std::string& key, const std::function<std::pair<int, int>()>& find);

// The seconds that this work needs at the rates of the machine. Collective at the first call.
struct Limit {
  std::string name;
  double seconds = 0;  // 0: unknown
};
Limit limit_of(const Cost&);

// Registers a group's rows; each group's file has: static const Group g(run_them).
struct Group {
  explicit Group(void (*rows)());
};

int rank();
int ranks();
// Shardings over all ranks.
tessera::Sharding split(const tessera::PartitionSpec&);  // over the mesh ('x': ranks)
tessera::Sharding on_one();                              // device 0

}  // namespace bench
