// What a message costs inside a host and between hosts, and what a rank does meanwhile: the model by which
// algorithms are chosen.
#pragma once
#include <cstdint>

namespace tessera::comm {

struct Link {
  double latency_s, bytes_per_s;
  double seconds(double bytes) const { return latency_s + bytes / bytes_per_s; }
};
struct Links {
  Link inside{1e-6, 4e9};           // two ranks of one host
  Link between{2e-5, 1.2e9};        // two hosts, whatever the number of their ranks that talk
  double flops_per_s = 2e10;        // of one rank's matrix product
  double memory_bytes_per_s = 8e9;  // that one rank reads and writes of its own
};

// The same on all ranks, which choose by it.
void set_links(const Links&);
const Links& links();

}  // namespace tessera::comm
