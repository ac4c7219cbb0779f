#include "ops/index/fetch.hpp"

#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.hpp"
#include "types/buffer.hpp"

namespace tessera {
namespace {

using Counts = std::vector<std::int64_t>;

// Block r of `out` to rank r; what rank r sends arrives as block r of `in`. Sizes in bytes; this rank's own
// block is left alone.
void exchange_blocks(const comm::Communicator& comm, std::byte* out, const Counts& out_bytes, std::byte* in,
                     const Counts& in_bytes, const char* label) {
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
      comm, sends, receives, [](std::size_t) {}, label);
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

}  // namespace

void fetch(const comm::Communicator& comm, const FetchList& list, Dtype dtype, kernels::AxisView own,
           const std::byte* x, std::byte* out) {
  const auto ranks = static_cast<std::size_t>(comm.size()), me = static_cast<std::size_t>(comm.rank());
  const auto wanted = static_cast<std::int64_t>(list.owner.size());
  const auto item = static_cast<std::int64_t>(itemsize(dtype)), row_bytes = own.outer * own.inner * item;
  if (row_bytes == 0) return;

  // The list sorted by owner: places in the result, and positions at the owner.
  Counts asked(ranks, 0), granted(ranks, 0);
  for (const int owner : list.owner)
    if (owner >= 0) ++asked[owner];
  Counts next(ranks, 0), places(total(asked)), questions(places.size());
  for (std::size_t r = 1; r < ranks; ++r) next[r] = next[r - 1] + asked[r - 1];
  for (std::size_t i = 0; i < list.owner.size(); ++i) {
    if (list.owner[i] < 0) continue;
    const auto at = static_cast<std::size_t>(next[list.owner[i]]++);
    places[at] = static_cast<std::int64_t>(i);
    questions[at] = list.position[i];
  }

  const Counts one(ranks, sizeof(std::int64_t));
  exchange_blocks(comm, reinterpret_cast<std::byte*>(asked.data()), one,
                  reinterpret_cast<std::byte*>(granted.data()), one, "gather: counts");
  granted[me] = asked[me];
  Counts answers(total(granted));
  exchange_blocks(comm, reinterpret_cast<std::byte*>(questions.data()), scaled(asked, 8),
                  reinterpret_cast<std::byte*>(answers.data()), scaled(granted, 8), "gather: positions");
  std::copy_n(questions.begin() + total({asked.begin(), asked.begin() + static_cast<std::ptrdiff_t>(me)}),
              asked[me],
              answers.begin() + total({granted.begin(), granted.begin() + static_cast<std::ptrdiff_t>(me)}));

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

}  // namespace tessera
