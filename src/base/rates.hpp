// Rates of the machine: the single basis for choosing layouts, algorithms and einsum's order, and for the
// seconds predicted by explain.
//
// TESSERA_MACHINE names their file. Without it the runtime measures them at the first start on a machine and
// keeps them in the user's cache. Rank 0's rates apply on all ranks, so that all choose alike.
#pragma once
#include <array>
#include <cmath>
#include <string>
#include <string_view>

namespace tessera {

struct Link {
  double latency_s, bytes_per_s;
  double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
  friend bool operator==(const Link&, const Link&) = default;
};

// The ranks of each host and the links between hosts, for plans of more ranks than the job has. Plain data.
struct Topology {
  // Hosts behind a switch, or in a group: as many of them in order share links to all the others.
  struct Level {
    int hosts = 1;
    double bytes_per_s = 0;  // all links of the group together, per direction
    double latency_s = 0;    // added each way
    friend bool operator==(const Level&, const Level&) = default;
  };
  static constexpr int most_levels = 3;
  int ranks_per_host = 0;  // 0: unknown, and all ranks count as on one host
  int levels = 0;
  std::array<Level, most_levels> level = {};  // smallest groups first
  double message_s = 0;                       // processor time per message sent or received
  double contention = 0;                      // the links between n hosts deliver 1 / n^contention
  double rendezvous_bytes = 0;                // larger messages ask the receiver first; 0: none does
  bool overlaps = true;                       // collectives that were begun go on while their rank computes
  double delivered(double hosts) const { return contention > 0 ? std::pow(hosts, -contention) : 1; }
  bool asks_first(double bytes) const { return rendezvous_bytes > 0 && bytes > rendezvous_bytes; }
  friend bool operator==(const Topology&, const Topology&) = default;
};

// Defaults: a core of 2020, with ratios that keep the choices of small meshes stable.
struct Rates {
  Link inside{1e-6, 4e9};           // two ranks of one host
  Link between{2e-5, 1.2e9};        // two hosts, whatever the number of sending ranks
  double flops_per_s = 2e10;        // flops of one rank's matrix product in float64
  double memory_bytes_per_s = 8e9;  // bytes of its own memory that one rank reads and writes
  bool has_compute = false;         // flops_per_s and memory_bytes_per_s were measured or given
  bool has_inside = false;          // the link inside a host was measured or given
  bool has_between = false;         // the link between hosts was measured or given
  double cache_bytes = 0;           // of a core when all cores of its host work; 0: unknown
  double cache_bytes_per_s = 0;     // memory_bytes_per_s of a step whose operands and results fit there
  Topology topology = {};
  friend bool operator==(const Rates&, const Rates&) = default;

  // Twice the rate in float32 and complex64: a vector has room for twice as many values.
  double flops_per_s_of(bool is_single) const { return is_single ? 2 * flops_per_s : flops_per_s; }
  // Bytes per second of passes over so much memory.
  double memory_rate(double touched_bytes) const {
    return touched_bytes <= cache_bytes && cache_bytes_per_s > 0 ? cache_bytes_per_s : memory_bytes_per_s;
  }
  // Seconds of a step that reads and writes these bytes.
  double memory_seconds(double bytes) const { return bytes / memory_rate(bytes); }

  // The multiplications and additions of a core while its host's link transfers one byte.
  double flops_per_moved_byte() const { return flops_per_s / inside.bytes_per_s; }
};

// The rates of this session: from TESSERA_MACHINE or the user's cache, else the defaults.
const Rates& rates();
void set_rates(const Rates&);

// JSON with the names latency_s, bytes_per_s, host_latency_s, host_bytes_per_s, flops_per_s and
// memory_bytes_per_s, each a number above 0; cache_bytes and cache_bytes_per_s; ranks_per_host, message_s,
// rendezvous_bytes, contention, overlaps (true or false), and levels: a list of objects with hosts,
// bytes_per_s and latency_s. Missing names keep their default, others are ignored.
// `what` names the file in errors; ArgumentError for any other text.
Rates parse_rates(std::string_view text, const std::string& what);
std::string rates_text(const Rates&);

// The rates with the built-in values for what no machine has, as not measured: a link inside a host of more
// than 200 us, less than 100 MB/s or more than 1 TB/s, less than 0.1 Gflop/s or 100 MB/s of memory. Such
// figures come from a machine that was overloaded during the measurement.
Rates without_implausible(Rates);
// The rates of a rank where each core has so many ranks: its share of the core, and messages that wait until
// their receiver has the core.
Rates of_shared_cores(Rates, double ranks_per_core);
// The rates of a file that keep_rates has written; a file that is missing, damaged or another user's counts
// as empty, and implausible rates as not measured.
Rates kept_rates(const std::string& path);

// TESSERA_MACHINE, or machine.json in the user's cache; "" if there is no cache.
std::string machine_path();
// Writes the cache. False if it cannot be written, or TESSERA_MACHINE names a file, which belongs to the
// user.
bool keep_rates(const Rates&);

}  // namespace tessera
