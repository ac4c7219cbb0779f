// Compares the bytes between hosts as predicted by explain(), counted by CommStats, and counted by the hosts'
// network devices. Started over namespace hosts by tests/cluster/hosts.py.
#include <gmock/gmock.h>
#include <tessera/tessera.hpp>

#include <algorithm>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "comm/collectives/collectives.hpp"
#include "comm/host/hosts.hpp"
#include "comm/mpi/environment.hpp"

namespace tessera {
namespace {

// The bytes received so far by this host's eth0; -1 if there is none.
double received_on_wire() {
  std::ifstream table("/proc/self/net/dev");
  for (std::string line; std::getline(table, line);)
    if (const auto at = line.find("eth0:"); at != std::string::npos) return std::stod(line.substr(at + 5));
  return -1;
}

struct Figures {
  double predicted = 0, counted = 0;     // bytes of the busiest rank
  double counted_by_host = 0, wire = 0;  // bytes of all ranks of this rank's host
};

// Gathers each rank's value on every rank.
std::vector<double> of_all(double mine) {
  std::vector<double> all(process_count());
  comm::all_gather(comm::world(), &mine, sizeof mine, all.data());
  return all;
}

template <class F, class... A> Figures measure(F f, const A&... operands) {
  Figures figures;
  figures.predicted = static_cast<double>(explain(f, operands...).host_crossing_bytes());
  eval(f(operands...));  // establishes connections
  comm::barrier(comm::world());
  const double before = received_on_wire();
  debug::CommStats stats;
  eval(f(operands...));
  const auto mine = static_cast<double>(stats.host_crossing_bytes());
  comm::barrier(comm::world());
  figures.wire = received_on_wire() - before;
  const auto all = of_all(mine);
  figures.counted = *std::max_element(all.begin(), all.end());
  for (int rank = 0; rank < process_count(); ++rank)
    if (comm::on_one_host(rank, process_index())) figures.counted_by_host += all[rank];
  return figures;
}

// The wire also carries headers, acknowledgements, agreements and barriers.
void expect_agreement(const std::string& name, const Figures& f) {
  std::ostringstream text;
  text << name << ": predicted " << f.predicted << ", counted " << f.counted
       << " of the busiest rank; this host " << f.counted_by_host << ", its wire " << f.wire;
  if (comm::place_in_job().host_rank == 0) std::fprintf(stderr, "%s\n", text.str().c_str());
  EXPECT_EQ(f.predicted, f.counted) << text.str();
  if (f.wire < 0) return;
  EXPECT_GE(f.wire, f.counted_by_host) << text.str();
  EXPECT_LE(f.wire, f.counted_by_host * 1.06 + 65536) << text.str();
}

class Crossing : public testing::Test {
 protected:
  const Mesh mesh_ = make_mesh({process_count()}, {"x"});
  Array matrix(PartitionSpec spec) const {
    return device_put(reshape(arange(1200 * 1200, float32), {1200, 1200}), mesh_, std::move(spec));
  }
};

TEST_F(Crossing, a_gather) {
  const Array x = matrix(P("x"));
  eval(x);
  expect_agreement("all-gather",
                   measure([&](const Array& a) { return device_put(a, NamedSharding(mesh_, P())); }, x));
}

TEST_F(Crossing, a_sum_of_terms) {
  const Array a = matrix(P(None, "x")), b = matrix(P("x"));
  eval(a, b);
  expect_agreement("all-reduce of much", measure(
                                             [&](const Array& l, const Array& r) {
                                               return device_put(matmul(l, r), NamedSharding(mesh_, P()));
                                             },
                                             a, b));
}

TEST_F(Crossing, a_small_sum) {
  const Array x = matrix(P("x"));
  eval(x);
  expect_agreement("all-reduce of little", measure([](const Array& a) { return sum(a); }, x));
}

TEST_F(Crossing, a_transposition) {
  const Array x = matrix(P("x"));
  eval(x);
  expect_agreement(
      "all-to-all",
      measure([&](const Array& a) { return device_put(a, NamedSharding(mesh_, P(None, "x"))); }, x));
}

TEST_F(Crossing, a_shift) {
  const Array x = matrix(P("x"));
  eval(x);
  expect_agreement("roll", measure([](const Array& a) { return roll(a, 1, 0); }, x));
}

TEST_F(Crossing, on_one_host_nothing_crosses) {
  std::vector<Device> here;
  for (const Device& device : devices())
    if (comm::on_one_host(device.id, 0)) here.push_back(device);
  const Mesh mesh = make_mesh({static_cast<int>(here.size())}, {"x"}, here);
  const Array x = device_put(ones({64, 64}), mesh, P("x"));
  const auto f = [&](const Array& a) { return device_put(a, NamedSharding(mesh, P())); };
  EXPECT_EQ(explain(f, x).host_crossing_bytes(), 0);
  debug::CommStats stats;
  eval(f(x));
  EXPECT_EQ(stats.host_crossing_bytes(), 0);
}

}  // namespace
}  // namespace tessera
