// A row compares one thing that tessera does with a peer: the same work by a plain library call, or by one
// rank.
//
// Ours and the peer's repetitions alternate, so that a machine that slows down slows both. A repetition
// takes as long as its slowest rank. ratio = peer_s / ours_s of the medians: 2 means twice as fast as the
// peer; `goal` is the ratio asked for. `limit` is what the machine allows: the share of it is limit_s /
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
  double goal = 0;        // 0: none is asked for
  double fixed_s = 0;     // instead of work: a time that must not be exceeded
  double extra_s = 0;     // granted on top of the peer's time: "MPI_Allreduce + 5 us"
  Work prepare = {};      // before each repetition of work, not timed
  bool is_limit = false;  // nothing that does this work can be quicker: "memcpy"
};

// The least work of a row, over all ranks. Its limit is the longer of the arithmetic at gemm's rate and the
// bytes, read and written, at memcpy's rate; both are measured on all ranks at once when they are first asked
// for.
struct Cost {
  double flops = 0;  // of products
  int bits = 64;     // of their floats: 32 or 64
  double bytes = 0;  // to and from memory, beyond the caches
};

// Rows whose name does not contain the filter are not even set up: groups ask first.
bool wanted(const std::string& name);
// `prepare` comes before each repetition of ours and is not timed. A row of more than its time (--seconds)
// has fewer repetitions, but two.
struct Repeat {
  int times = 9;
  Work prepare = {};
};
void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, int repetitions = 9,
             const Cost& cost = {});
void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, const Repeat& repeat,
             const Cost& cost = {});
// Bytes beside bytes: ratio = asked / ours of the rank where it is the least.
void compare_bytes(const std::string& name, double ours, const std::string& what, double asked);
// The seconds of the slowest rank, the same on all. Collective.
double seconds_of(const Work&);
double median(std::vector<double>);
// The pair of least time, which a peer is run with; find() where none was found before (--choices).
// Collective.
std::pair<int, int> best_choice(const std::string& key, const std::function<std::pair<int, int>()>& find);

// The seconds that this work takes at the rates of the machine. Collective at the first call.
struct Limit {
  std::string name;
  double seconds = 0;  // 0: none is known
};
Limit limit_of(const Cost&);

// A file per group adds its rows here: static const Group g(run_them).
struct Group {
  explicit Group(void (*rows)());
};

int rank();
int ranks();
// Rows of a matrix over all ranks, and the like.
tessera::Sharding split(const tessera::PartitionSpec&);  // over the mesh ('x': ranks)
tessera::Sharding on_one();                              // device 0

}  // namespace bench
