// Sorting lines that are split over a group of ranks.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <vector>

#include "comm/mpi/communicator.hpp"

namespace tessera {

// `lines` lines of `extent` elements, each split over the communicator in blocks of ceil(extent / ranks).
// keys: this rank's blocks, dense (lines, own). On return keys_out holds this rank's blocks of the sorted
// lines. payload: 64 bits that move with each key, or null on both sides. Stable, NaN last. Collective.
//
// Exact splitting: the keys at which the sorted line is cut are found by a search in key space (a few rounds,
// in which ranks sum how many of their keys are below each of a few probes); equal keys are divided in rank
// order. Then every element is sent once, to the rank that keeps it, and received runs are merged. Memory:
// the block, the received elements, and a copy of the keys.
void distributed_sort(const comm::Communicator&, Dtype, std::int64_t lines, std::int64_t extent,
                      const std::byte* keys, const std::int64_t* payload, std::byte* keys_out,
                      std::int64_t* payload_out);

// The positions of the sorted elements in their lines, sorted through keys in the elements' order.
void distributed_argsort(const comm::Communicator&, Dtype, std::int64_t lines, std::int64_t extent,
                         const std::byte* keys, std::int64_t* positions_out);

// Bytes that the busiest rank may receive, and the number of exchanges and reductions.
struct SortTraffic {
  std::int64_t exchange_bytes, count_bytes, count_calls;
};
SortTraffic sort_traffic(Dtype, std::int64_t ranks, std::int64_t lines, std::int64_t extent,
                         bool has_payload);

}  // namespace tessera
