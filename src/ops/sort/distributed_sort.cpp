#include "ops/sort/distributed_sort.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "comm/collectives/collectives.hpp"
#include "comm/collectives/combine.hpp"
#include "kernels/sort/order_key.hpp"
#include "kernels/sort/sort.hpp"
#include "ops/sort/exclusive_scan.hpp"
#include "types/box.hpp"
#include "types/pooled.hpp"

namespace tessera {
namespace {

using Counts = std::vector<std::int64_t>;
__extension__ using Wide = unsigned __int128;

template <class T> auto search_key(T value) { return kernels::order_key(value); }
template <class R> Wide search_key(std::complex<R> value) {
  const auto key = kernels::order_key(value);
  return static_cast<Wide>(key.real) << 64 | key.imag;
}

// The number of key bits that one round of counting decides: each cut sends 2^bits - 1 probes, so there are
// fewer bits if there are many cuts.
int bits_per_round(std::int64_t cuts) {
  constexpr std::int64_t most_counts = 4096;
  int bits = 4;
  while (bits > 1 && cuts * ((1 << bits) - 1) > most_counts) --bits;
  return bits;
}

// The cuts of each line: cut c precedes the element with number `target` in sorted order.
struct Cuts {
  std::int64_t lines, parts;
  Counts target;  // parts - 1 of them, the same for every line
  std::int64_t count() const { return lines * (parts - 1); }
};

// This rank's position of every cut in its own sorted lines.
//
//   rank 0: 1 3 3 7   rank 1: 2 3 3 9     cut before element 4 of 1 2 3 3|3 3 7 9: key 3, two are below it,
//            ^ takes 2 of its 3s           so two of the 3s stay left: both of rank 0, none of rank 1
template <class T> class CutSearch {
 public:
  using Key = decltype(search_key(T{}));

  CutSearch(const comm::Communicator& comm, const T* sorted, std::int64_t own, const Cuts& cuts)
      : comm_(comm), cuts_(cuts), sorted_(sorted), own_(own) {}

  Counts positions() {
    const auto cut_keys = find_keys();
    return divide_equals(cut_keys);
  }

 private:
  const T* line(std::int64_t l) const { return sorted_ + l * own_; }
  std::int64_t below(std::int64_t l, Key key) const {
    const auto is_below = [key](const T& value) { return search_key(value) < key; };
    return std::partition_point(line(l), line(l) + own_, is_below) - line(l);
  }
  std::int64_t not_above(std::int64_t l, Key key) const {
    const auto is_not_above = [key](const T& value) { return search_key(value) <= key; };
    return std::partition_point(line(l), line(l) + own_, is_not_above) - line(l);
  }
  void add_up(Counts& counts) const {
    comm::all_reduce(comm_, ReduceKind::sum, int64, counts.data(), counts.data(),
                     static_cast<std::int64_t>(counts.size()));
  }
  std::int64_t target_of(std::int64_t cut) const { return cuts_.target[cut % (cuts_.parts - 1)]; }

  // The key of element `target` of every cut: the largest key with at most `target` elements below it, found
  // digit by digit.
  std::vector<Key> find_keys() const {
    std::vector<Key> keys(cuts_.count(), Key(0));
    const int bits = bits_per_round(cuts_.count());
    for (int left = 8 * static_cast<int>(sizeof(Key)); left > 0;) {
      const int digit_bits = std::min(bits, left);
      left -= digit_bits;
      const std::int64_t probes = (std::int64_t{1} << digit_bits) - 1;
      Counts counts(cuts_.count() * probes);
      const auto probe = [&](std::int64_t cut, std::int64_t digit) {
        return static_cast<Key>(keys[cut] | static_cast<Key>(static_cast<Key>(digit) << left));
      };
      for (std::int64_t cut = 0; cut < cuts_.count(); ++cut)
        for (std::int64_t digit = 1; digit <= probes; ++digit)
          counts[cut * probes + digit - 1] = below(cut / (cuts_.parts - 1), probe(cut, digit));
      add_up(counts);
      for (std::int64_t cut = 0; cut < cuts_.count(); ++cut) {
        std::int64_t digit = 0;
        while (digit < probes && counts[cut * probes + digit] <= target_of(cut)) ++digit;
        keys[cut] = probe(cut, digit);
      }
    }
    return keys;
  }

  Counts divide_equals(const std::vector<Key>& cut_keys) const {
    Counts below_cut(cut_keys.size()), equal(cut_keys.size()), equal_before(cut_keys.size(), 0);
    for (std::size_t c = 0; c < cut_keys.size(); ++c) {
      const auto l = static_cast<std::int64_t>(c) / (cuts_.parts - 1);
      below_cut[c] = below(l, cut_keys[c]);
      equal[c] = not_above(l, cut_keys[c]) - below_cut[c];
    }
    Counts all_below = below_cut, used_up = equal;
    add_up(all_below);
    const auto bytes = cut_keys.size() * sizeof(std::int64_t);
    exclusive_scan(
        comm_, false, reinterpret_cast<std::byte*>(used_up.data()),
        reinterpret_cast<std::byte*>(equal_before.data()), bytes, [&](const std::byte* in, std::byte* inout) {
          comm::combine(ReduceKind::sum, int64, in, inout, inout, static_cast<std::int64_t>(cut_keys.size()));
        });
    Counts positions(cut_keys.size());
    for (std::size_t c = 0; c < cut_keys.size(); ++c) {
      const auto equals_left = target_of(static_cast<std::int64_t>(c)) - all_below[c];
      positions[c] = below_cut[c] + std::clamp<std::int64_t>(equals_left - equal_before[c], 0, equal[c]);
    }
    return positions;
  }

  const comm::Communicator& comm_;
  const Cuts& cuts_;
  const T* sorted_;
  std::int64_t own_;
};

// Segments between the cuts: [begin(l, part), begin(l, part + 1)) of line l is sent to rank `part`.
struct Segments {
  std::int64_t lines, parts, own;
  const Counts& positions;
  std::int64_t begin(std::int64_t l, std::int64_t part) const {
    if (part == 0) return 0;
    if (part == parts) return own;
    return positions[l * (parts - 1) + part - 1];
  }
  std::int64_t size(std::int64_t l, std::int64_t part) const { return begin(l, part + 1) - begin(l, part); }
};

// counts_in[rank * lines + l]: the number of elements of line l received from each rank.
Counts exchange_counts(const comm::Communicator& comm, const Segments& segments) {
  const auto lines = static_cast<std::size_t>(segments.lines);
  Counts out(lines * static_cast<std::size_t>(segments.parts)), in(out.size());
  for (std::int64_t part = 0; part < segments.parts; ++part)
    for (std::int64_t l = 0; l < segments.lines; ++l) out[part * segments.lines + l] = segments.size(l, part);
  std::vector<comm::Message> sends, receives;
  const auto bytes = static_cast<std::int64_t>(lines * sizeof(std::int64_t));
  for (int r = 0; r < comm.size(); ++r) {
    if (r == comm.rank()) {
      std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * lines), lines,
                  in.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(r) * lines));
      continue;
    }
    const int peer = comm.device_ids()[r];
    sends.push_back(
        {peer, reinterpret_cast<std::byte*>(out.data() + static_cast<std::size_t>(r) * lines), bytes});
    receives.push_back(
        {peer, reinterpret_cast<std::byte*>(in.data() + static_cast<std::size_t>(r) * lines), bytes});
  }
  comm::exchange(
      comm, sends, receives, [](std::size_t) {}, "sort: counts");
  return in;
}

std::int64_t sum_of(const std::int64_t* counts, std::int64_t n) {
  std::int64_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += counts[i];
  return total;
}

// Sends every segment to its rank. The result is grouped by sender, then line; the segments of a single line
// are thereby in rank order already.
Buffer exchange_segments(const comm::Communicator& comm, const Segments& segments, const Counts& counts_in,
                         const std::byte* data, std::int64_t item) {
  const bool is_one_line = segments.lines == 1;
  Buffer leaving = Buffer::allocate(is_one_line ? 0 : segments.lines * segments.own * item);
  Buffer arrived =
      Buffer::allocate(sum_of(counts_in.data(), static_cast<std::int64_t>(counts_in.size())) * item);
  std::vector<comm::Message> sends, receives;
  std::byte* out = is_one_line ? const_cast<std::byte*>(data) : leaving.data();
  std::byte* in = arrived.data();
  for (int r = 0; r < comm.size(); ++r) {
    std::byte* const first = out;
    for (std::int64_t l = 0; l < segments.lines; ++l) {
      const auto bytes = segments.size(l, r) * item;
      if (bytes > 0 && !is_one_line)
        std::memcpy(out, data + (l * segments.own + segments.begin(l, r)) * item, bytes);
      out += bytes;
    }
    const auto bytes_in = sum_of(counts_in.data() + r * segments.lines, segments.lines) * item;
    if (r == comm.rank()) {
      if (bytes_in > 0) std::memcpy(in, first, bytes_in);
    } else {
      const int peer = comm.device_ids()[r];
      if (out != first) sends.push_back({peer, first, out - first});
      if (bytes_in > 0) receives.push_back({peer, in, bytes_in});
    }
    in += bytes_in;
  }
  comm::exchange(
      comm, sends, receives, [](std::size_t) {}, "sort: elements");
  return arrived;
}

// Copies one line's runs next to each other, in rank order.
void gather_runs(const Counts& counts_in, std::int64_t lines, std::int64_t parts, std::int64_t l,
                 const std::byte* arrived, std::int64_t item, std::byte* runs) {
  const std::byte* from = arrived;
  for (std::int64_t r = 0; r < parts; ++r) {
    const auto* counts = counts_in.data() + r * lines;
    const auto bytes = counts[l] * item;
    if (bytes > 0) std::memcpy(runs, from + sum_of(counts, l) * item, bytes);
    runs += bytes;
    from += sum_of(counts, lines) * item;
  }
}

void merge_lines(Dtype dtype, const Segments& segments, const Counts& counts_in, const std::byte* keys,
                 const std::int64_t* payload, std::int64_t mine, std::byte* keys_out,
                 std::int64_t* payload_out) {
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const bool is_one_line = segments.lines == 1;  // its runs are adjacent already
  Pooled<std::byte> runs(is_one_line ? 0 : mine * item);
  Pooled<std::int64_t> payload_runs(payload != nullptr && !is_one_line ? mine : 0);
  for (std::int64_t l = 0; l < segments.lines; ++l) {
    Counts offsets{0};
    for (std::int64_t r = 0; r < segments.parts; ++r)
      if (const auto n = counts_in[r * segments.lines + l]; n > 0) offsets.push_back(offsets.back() + n);
    if (is_one_line) return kernels::merge_runs(dtype, keys, payload, offsets, {}, keys_out, payload_out);
    gather_runs(counts_in, segments.lines, segments.parts, l, keys, item, runs.data());
    if (payload != nullptr)
      gather_runs(counts_in, segments.lines, segments.parts, l, reinterpret_cast<const std::byte*>(payload),
                  8, reinterpret_cast<std::byte*>(payload_runs.data()));
    kernels::merge_runs(dtype, runs.data(), payload != nullptr ? payload_runs.data() : nullptr, offsets, {},
                        keys_out + l * mine * item, payload != nullptr ? payload_out + l * mine : nullptr);
  }
}

// Merges lines, of which each rank has sorted its own part, to sorted lines.
void join_sorted(const comm::Communicator& comm, Dtype dtype, std::int64_t lines, std::int64_t extent,
                 const std::byte* sorted, const std::int64_t* payload, std::byte* keys_out,
                 std::int64_t* payload_out) {
  const std::int64_t parts = comm.size(), own = block_range(extent, parts, comm.rank()).size();
  // A cut at the end of the line (before empty blocks) needs no search: it searches for the last element
  // instead and is moved behind it.
  Cuts cuts{lines, parts, {}};
  for (std::int64_t part = 1; part < parts; ++part)
    cuts.target.push_back(std::min(block_range(extent, parts, part).start, extent - 1));
  Counts positions = kernels::visit(dtype, [&]<class T>(T) {
    return CutSearch<T>(comm, reinterpret_cast<const T*>(sorted), own, cuts).positions();
  });
  for (std::int64_t part = 1; part < parts; ++part)
    if (block_range(extent, parts, part).start >= extent)
      for (std::int64_t l = 0; l < lines; ++l) positions[l * (parts - 1) + part - 1] = own;
  const Segments segments{lines, parts, own, positions};
  const Counts counts_in = exchange_counts(comm, segments);
  const Buffer keys_in =
      exchange_segments(comm, segments, counts_in, sorted, static_cast<std::int64_t>(itemsize(dtype)));
  Buffer payload_in;
  if (payload != nullptr)
    payload_in = exchange_segments(comm, segments, counts_in, reinterpret_cast<const std::byte*>(payload), 8);
  merge_lines(dtype, segments, counts_in, keys_in.data(),
              reinterpret_cast<const std::int64_t*>(payload_in.data()), own, keys_out, payload_out);
}

}  // namespace

void distributed_sort(const comm::Communicator& comm, Dtype dtype, std::int64_t lines, std::int64_t extent,
                      const std::byte* keys, const std::int64_t* payload, std::byte* keys_out,
                      std::int64_t* payload_out) {
  if (lines == 0 || extent == 0) return;
  const std::int64_t own = block_range(extent, comm.size(), comm.rank()).size();
  const auto item = static_cast<std::int64_t>(itemsize(dtype));
  const Buffer sorted = Buffer::allocate(lines * own * item);
  Pooled<std::int64_t> sorted_payload(payload != nullptr ? lines * own : 0);
  if (payload == nullptr) {
    kernels::sort_rows(dtype, keys, lines, own, {}, sorted.data());
  } else {
    if (own > 0) std::memcpy(sorted.data(), keys, lines * own * item);
    std::copy_n(payload, lines * own, sorted_payload.data());
    for (std::int64_t l = 0; l < lines; ++l)
      kernels::sort_pairs(dtype, sorted.data() + l * own * item, sorted_payload.data() + l * own, own, {});
  }
  join_sorted(comm, dtype, lines, extent, sorted.data(), payload != nullptr ? sorted_payload.data() : nullptr,
              keys_out, payload_out);
}

void distributed_argsort(const comm::Communicator& comm, Dtype dtype, std::int64_t lines, std::int64_t extent,
                         const std::byte* keys, std::int64_t* positions_out) {
  if (lines == 0 || extent == 0) return;
  const auto block = block_range(extent, comm.size(), comm.rank());
  const std::int64_t own = block.size(), item = static_cast<std::int64_t>(itemsize(dtype));
  const Buffer sorted = Buffer::allocate(lines * own * item), merged = Buffer::allocate(lines * own * item);
  Pooled<std::int64_t> positions(lines * own);
  if (is_complex(dtype)) {
    for (std::int64_t l = 0; l < lines; ++l)
      std::iota(positions.data() + l * own, positions.data() + (l + 1) * own, block.start);
    return distributed_sort(comm, dtype, lines, extent, keys, positions.data(), merged.data(), positions_out);
  }
  kernels::argsort_keys(dtype, keys, lines, own, block.start, sorted.data(), positions.data());
  join_sorted(comm, kernels::dtype_of_keys(dtype), lines, extent, sorted.data(), positions.data(),
              merged.data(), positions_out);
}

SortTraffic sort_traffic(Dtype dtype, std::int64_t ranks, std::int64_t lines, std::int64_t extent,
                         bool has_payload) {
  const auto block = block_size(extent, ranks) * lines, cuts = lines * (ranks - 1);
  const int bits = bits_per_round(cuts),
            key_bits = is_complex(dtype) ? 128 : 8 * static_cast<int>(itemsize(dtype));
  const std::int64_t rounds = (key_bits + bits - 1) / bits;
  return {block * static_cast<std::int64_t>(itemsize(dtype) + (has_payload ? 8 : 0)),
          rounds * cuts * ((1 << bits) - 1) * 16 * (ranks - 1) / ranks, rounds};
}

}  // namespace tessera
