// Rates of the machine: the one value by which layouts, algorithms and einsum's order are chosen and
// explain's seconds are predicted.
//
// TESSERA_MACHINE names the file that they come from. Without it the runtime measures them at the first start
// on a machine and keeps them in the user's cache. Rank 0's rates hold on all ranks, so that all choose
// alike.
#pragma once
#include <string>
#include <string_view>

namespace tessera {

struct Link {
  double latency_s, bytes_per_s;
  double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
  friend bool operator==(const Link&, const Link&) = default;
};

// Defaults: a core of 2020 in ratios that keep the choices of small meshes stable.
struct Rates {
  Link inside{1e-6, 4e9};           // two ranks of one host
  Link between{2e-5, 1.2e9};        // two hosts, whatever the number of their ranks that send
  double flops_per_s = 2e10;        // of one rank's matrix product
  double memory_bytes_per_s = 8e9;  // that one rank reads and writes of its own
  bool has_compute = false;         // flops_per_s and memory_bytes_per_s were measured or given
  bool has_inside = false;          // the link inside a host was
  bool has_between = false;         // the link between hosts was
  friend bool operator==(const Rates&, const Rates&) = default;

  // What a core multiplies and adds while its host's link brings one byte.
  double flops_per_moved_byte() const { return flops_per_s / inside.bytes_per_s; }
};

// Of this session: what TESSERA_MACHINE or the user's cache says, else the defaults.
const Rates& rates();
void set_rates(const Rates&);

// JSON with the names latency_s, bytes_per_s, host_latency_s, host_bytes_per_s, flops_per_s and
// memory_bytes_per_s, each a number above 0; names that are missing keep their default, others are passed
// over. `what` is the file as errors name it; ArgumentError for text that is no such JSON.
Rates parse_rates(std::string_view text, const std::string& what);
std::string rates_text(const Rates&);

// TESSERA_MACHINE, or machine.json in the user's cache; "" where there is no cache.
std::string machine_path();
// False where the cache cannot be written, or TESSERA_MACHINE names a file: that one is the user's.
bool keep_rates(const Rates&);

}  // namespace tessera
