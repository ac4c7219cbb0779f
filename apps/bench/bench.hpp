// A row compares one thing that tessera does with a peer: the same work by a plain library call, or by one
// rank.
//
// Ours and the peer's repetitions alternate, so that a machine that slows down slows both. A repetition
// takes as long as its slowest rank. ratio = peer_s / ours_s of the medians: 2 means twice as fast as the
// peer; `goal` is the ratio asked for.
#pragma once
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/tree.hpp>

#include <functional>
#include <string>
#include <vector>

namespace bench {

using Work = std::function<void()>;

struct Peer {
  std::string name;
  Work work;
  double goal = 0;     // 0: none is asked for
  double fixed_s = 0;  // instead of work: a time that must not be exceeded
  double extra_s = 0;  // granted on top of the peer's time: "MPI_Allreduce + 5 us"
  Work prepare = {};   // before each repetition of work, not timed
};

// Rows whose name does not contain the filter are not even set up: groups ask first.
bool wanted(const std::string& name);
void compare(const std::string& name, const Work& ours, const std::vector<Peer>& peers, int repetitions = 9);
// Bytes beside bytes: ratio = asked / ours of the rank where it is the least.
void compare_bytes(const std::string& name, double ours, const std::string& what, double asked);
// Of the slowest rank. Collective.
double seconds_of(const Work&);
double median(std::vector<double>);

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
