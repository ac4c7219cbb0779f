// Rank programs as steps of a timeline: arithmetic by the rates of the machine, collectives as the rounds of
// messages that comm carries out, exchanges as their plans list them.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "comm/host/hosts.hpp"
#include "program/program.hpp"
#include "simulate/timeline.hpp"

namespace tessera {

struct PlannedTimeline {
  TimelinePlan plan;
  std::vector<std::string> kinds;  // by name: "all-reduce"; "" for arithmetic
  std::vector<std::string> calls;  // "matmul at train.cpp:12"
  std::vector<std::string> notes;  // what is not followed message by message
};
PlannedTimeline timeline_of(const Program&, const Rates&);

// Writes a program's steps one behind the other.
class StepWriter {
 public:
  StepWriter(const Rates&, int ranks);

  const Rates& rates() const { return rates_; }
  int ranks() const { return planned_.plan.ranks; }
  int host_of(int rank) const {
    const int of_a_host = rates_.topology.ranks_per_host;
    return of_a_host > 0 ? rank / of_a_host : 0;
  }
  // Steps that follow belong to this call.
  void serve(const Instruction&);
  void serve(const std::string& call) { call_ = call; }
  void compute(double seconds, std::shared_ptr<const std::vector<float>> share = nullptr);
  int begin(const std::string& kind, RoundsPtr);  // returns its number, for `finish`
  void finish(int step);
  void communicate(const std::string& kind, RoundsPtr rounds) { finish(begin(kind, std::move(rounds))); }
  int mark();
  void repeat(int mark, double times);
  void note(const std::string& text);

  GroupsPtr groups_along(const Mesh&, const MeshAxes&);
  // The algorithms that comm chooses for these groups and bytes.
  RoundsPtr all_gather(const GroupsPtr&, double block_bytes) const;
  RoundsPtr reduce_scatter(const GroupsPtr&, double block_bytes) const;
  RoundsPtr all_reduce(const GroupsPtr&, double bytes) const;
  RoundsPtr broadcast(const GroupsPtr&, double bytes, int root_place) const;
  RoundsPtr of_kind(const std::string& kind, const GroupsPtr&, double received_bytes) const;

  PlannedTimeline& planned() { return planned_; }

 private:
  int name_of(const std::string& kind);
  bool spans_hosts(const RankGroups&) const;
  int hosts_of_a_group(const RankGroups&) const;
  comm::HostGroups largest_by_hosts(const RankGroups&) const;

  const Rates& rates_;
  PlannedTimeline planned_;
  std::string call_;
  std::map<std::pair<std::string, std::string>, int> names_;
  std::vector<std::pair<std::pair<Mesh, MeshAxes>, GroupsPtr>> groups_;
};

// Factorizations on a grid of ranks, panel by panel: LU, solve, Cholesky. False: the call is none of these.
bool write_factorization(StepWriter&, const Program&, const Instruction&, const CommunicatingCall&);
// The factorization of HPL, the benchmark: float64, rows x columns ranks, numbered row by row.
void write_hpl(StepWriter&, std::int64_t n, int rows, int columns, std::int64_t block);

}  // namespace tessera
