#include "ops/index/fetch.hpp"

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/collectives/collectives.hpp"
#include "types/pooled.hpp"

namespace tessera {
namespace {

using Counts = std::vector<std::int64_t>;

// Sends block r of `out` to rank r and receives block r of `in` from it. Sizes in bytes; this rank's own
// block is not copied.
void exchange_blocks(const comm::Communicator& comm, std::byte* out, const Counts& out_bytes, std::byte* in,
                     const Counts& in_bytes, const std::string& label) {
  std::vector<comm::Message> sends, receives;
  for (int r = 0; r < comm.size(); ++r) {
    const auto sent = out_bytes[r], received = in_bytes[r];
    const int peer = comm.device_ids()[r];
    if (r != comm.rank() && sent > 0) sends.push_back({peer, out, sent});
    if (r != comm.rank() && received > 0) receives.push_back({peer, in, received});
    out += sent;
    in += received;
  }
  comm::exchange(
      comm, sends, receives, [](std::size_t) {}, label.c_str());
}

Counts scaled(const Counts& counts, std::int64_t by) {
  Counts result;
  for (const auto n : counts) result.push_back(n * by);
  return result;
}
std::int64_t total(const Counts& counts) {
  std::int64_t sum = 0;
  for (const auto n : counts) sum += n;
  return sum;
}

// A list sorted by owner: the number of entries of each owner, their indices in the list, and their positions
// there.
struct ByOwner {
  Counts count;
  Pooled<std::int64_t> entries, positions;
};
ByOwner sorted_by_owner(const FetchList& list, std::size_t ranks) {
  ByOwner sorted{Counts(ranks, 0), Pooled<std::int64_t>(), Pooled<std::int64_t>()};
  for (const int owner : list.owner)
    if (owner >= 0) ++sorted.count[owner];
  Counts next(ranks, 0);
  sorted.entries.resize(total(sorted.count));
  sorted.positions.resize(sorted.entries.size());
  for (std::size_t r = 1; r < ranks; ++r) next[r] = next[r - 1] + sorted.count[r - 1];
  for (std::size_t i = 0; i < list.owner.size(); ++i) {
    if (list.owner[i] < 0) continue;
    const auto at = next[list.owner[i]]++;
    sorted.entries[at] = static_cast<std::int64_t>(i);
    sorted.positions[at] = list.position[i];
  }
  return sorted;
}
std::int64_t before(const Counts& counts, std::size_t rank) {
  return total({counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank)});
}
template <class Numbers> std::byte* bytes_of(Numbers& counts) {
  return reinterpret_cast<std::byte*>(counts.data());
}

// The number of entries that each rank requests from this one, and their positions here, by rank. `what`
// names the steps.
struct Wanted {
  Counts count;
  Pooled<std::int64_t> positions;
};
Counts exchange_counts(const comm::Communicator& comm, Counts& sent, const std::string& what) {
  Counts received(sent.size(), 0);
  const Counts one(sent.size(), sizeof(std::int64_t));
  exchange_blocks(comm, bytes_of(sent), one, bytes_of(received), one, what + ": counts");
  received[comm.rank()] = sent[comm.rank()];
  return received;
}
Wanted exchange_positions(const comm::Communicator& comm, ByOwner& list, const std::string& what) {
  const std::size_t me = comm.rank();
  Wanted wanted{exchange_counts(comm, list.count, what), Pooled<std::int64_t>()};
  wanted.positions.resize(total(wanted.count));
  exchange_blocks(comm, bytes_of(list.positions), scaled(list.count, 8), bytes_of(wanted.positions),
                  scaled(wanted.count, 8), what + ": positions");
  std::copy_n(list.positions.begin() + before(list.count, me), list.count[me],
              wanted.positions.begin() + before(wanted.count, me));
  return wanted;
}

}  // namespace

void fetch(const comm::Communicator& comm, const FetchList& list, Dtype dtype, kernels::AxisView own,
           const std::byte* x, std::byte* out) {
  const auto ranks = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  const auto wanted = static_cast<std::int64_t>(list.owner.size());
  const auto item = static_cast<std::int64_t>(itemsize(dtype)), row_bytes = own.outer * own.inner * item;
  if (row_bytes == 0) return;

  ByOwner questions = sorted_by_owner(list, ranks);
  const auto [granted, answers] = exchange_positions(comm, questions, "gather");
  const Counts& asked = questions.count;
  const auto& places = questions.entries;

  Buffer leaving = Buffer::allocate(total(granted) * row_bytes),
         arrived = Buffer::allocate(total(asked) * row_bytes);
  std::int64_t first = 0, own_out = 0, own_in = 0;
  for (std::size_t r = 0; r < ranks; first += granted[r++]) {
    if (r == me) own_out = first * row_bytes;
    kernels::gather(leaving.data() + first * row_bytes, x, own, std::span(answers.data() + first, granted[r]),
                    item);
  }
  exchange_blocks(comm, leaving.data(), scaled(granted, row_bytes), arrived.data(), scaled(asked, row_bytes),
                  "gather: rows");

  std::memset(out, 0, wanted * row_bytes);
  for (std::size_t r = 0; r < ranks; own_in += asked[r++] * row_bytes) {
    if (asked[r] == 0) continue;
    const auto offset = own_in / row_bytes;
    const std::byte* rows = r == me ? leaving.data() + own_out : arrived.data() + own_in;
    kernels::scatter("set", dtype, out, {own.outer, wanted, own.inner},
                     std::span(places.data() + offset, asked[r]), rows);
  }
}

void deliver(const comm::Communicator& comm, const FetchList& list, Dtype dtype, kernels::AxisView rows_view,
             const std::byte* rows,
             const std::function<void(std::span<const std::int64_t>, const std::byte*)>& put) {
  const auto ranks = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  const auto item = static_cast<std::int64_t>(itemsize(dtype)),
             row_bytes = rows_view.outer * rows_view.inner * item;
  if (row_bytes == 0) return;
  ByOwner places = sorted_by_owner(list, ranks);
  const auto [received, positions] = exchange_positions(comm, places, "scatter");
  const Counts& sent = places.count;
  const auto& entries = places.entries;
  Buffer leaving = Buffer::allocate(total(sent) * row_bytes),
         arrived = Buffer::allocate(total(received) * row_bytes);
  for (std::size_t r = 0; r < ranks; ++r)
    kernels::gather(leaving.data() + before(sent, r) * row_bytes, rows, rows_view,
                    std::span(entries.data() + before(sent, r), sent[r]), item);
  exchange_blocks(comm, leaving.data(), scaled(sent, row_bytes), arrived.data(), scaled(received, row_bytes),
                  "scatter: rows");
  for (std::size_t r = 0; r < ranks; ++r) {
    if (received[r] == 0) continue;
    const std::byte* from = r == me ? leaving.data() + before(sent, me) * row_bytes
                                    : arrived.data() + before(received, r) * row_bytes;
    put(std::span(positions.data() + before(received, r), received[r]), from);
  }
}

Counts ask(const comm::Communicator& comm, const FetchList& list, std::int64_t item,
           const std::byte* questions,
           const std::function<void(const std::byte*, std::int64_t, std::int64_t*)>& answer) {
  const auto ranks = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  auto [sent, entries, unused] = sorted_by_owner(list, ranks);
  const Counts received = exchange_counts(comm, sent, "questions");
  Buffer leaving = Buffer::allocate(total(sent) * item), arrived = Buffer::allocate(total(received) * item);
  kernels::gather(leaving.data(), questions, {1, static_cast<std::int64_t>(list.owner.size()), 1},
                  std::span(entries.data(), entries.size()), item);
  exchange_blocks(comm, leaving.data(), scaled(sent, item), arrived.data(), scaled(received, item),
                  "questions");
  if (sent[me] > 0)
    std::memcpy(arrived.data() + before(received, me) * item, leaving.data() + before(sent, me) * item,
                sent[me] * item);
  Counts answers(total(received)), back(total(sent));
  answer(arrived.data(), total(received), answers.data());
  exchange_blocks(comm, bytes_of(answers), scaled(received, 8), bytes_of(back), scaled(sent, 8), "answers");
  std::copy_n(answers.begin() + before(received, me), sent[me], back.begin() + before(sent, me));
  Counts result(list.owner.size(), 0);
  for (std::int64_t i = 0; i < entries.size(); ++i) result[entries[i]] = back[i];
  return result;
}

}  // namespace tessera
