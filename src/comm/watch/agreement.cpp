#include "comm/watch/agreement.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <sstream>
#include <utility>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "base/stop_request.hpp"
#include "base/text.hpp"
#include "comm/host/shared_slots.hpp"
#include "comm/mpi/group_cache.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/put_off.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {

namespace {

// Broadcasts a text of any length; all ranks know its length.
void spread_text(const Communicator& comm, std::string& text, int from) {
  const auto most = static_cast<std::size_t>(settings().message_limit);
  for (std::size_t done = 0; done < text.size(); done += most)
    check(mpi::Bcast(text.data() + done, static_cast<int>(std::min(most, text.size() - done)), MPI_CHAR,
                     comm.impl().mpi_rank(from), comm.impl().handle),
          "MPI_Bcast", comm);
}

}  // namespace

std::vector<std::string> gather_texts(const Communicator& comm, const std::string& mine) {
  if (comm.size() == 1) return {mine};
  if (comm.impl().is_reordered()) {
    const auto& own = ascending(comm);
    auto ascending_texts = gather_texts(own, mine);
    std::vector<std::string> texts;
    for (const int id : comm.device_ids()) texts.push_back(std::move(ascending_texts[own.rank_of(id)]));
    return texts;
  }
  const Waiting waiting("exchange of texts", comm, 0);
  const auto bytes = static_cast<std::int64_t>(mine.size());
  std::vector<std::int64_t> bytes_of(comm.size());
  check(mpi::Allgather(&bytes, 1, MPI_INT64_T, bytes_of.data(), 1, MPI_INT64_T, comm.impl().handle),
        "MPI_Allgather", comm);
  std::vector<std::string> texts;
  for (const auto n : bytes_of) texts.emplace_back(static_cast<std::size_t>(n), '\0');
  texts[comm.rank()] = mine;
  const auto total = std::accumulate(bytes_of.begin(), bytes_of.end(), std::int64_t{0});
  if (total > settings().message_limit) {  // 2,100 ranks with 1 MB each exceed MPI's int offsets
    for (int r = 0; r < comm.size(); ++r) spread_text(comm, texts[r], r);
    return texts;
  }
  std::vector<int> counts(bytes_of.begin(), bytes_of.end()), offset_of(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), offset_of.begin(), 0);
  std::string all(static_cast<std::size_t>(total), '\0');
  check(mpi::Allgatherv(mine.data(), counts[comm.rank()], MPI_CHAR, all.data(), counts.data(),
                        offset_of.data(), MPI_CHAR, comm.impl().handle),
        "MPI_Allgatherv", comm);
  for (std::size_t r = 0; r < counts.size(); ++r) texts[r] = all.substr(offset_of[r], counts[r]);
  return texts;
}

std::string list_by_text(const std::vector<std::string>& text_of_rank, const std::vector<int>& device_ids,
                         std::size_t most) {
  std::string list;
  std::size_t listed = 0;
  for (std::size_t first = 0; first < text_of_rank.size(); ++first) {
    std::vector<int> same;
    bool seen_before = false;
    for (std::size_t r = 0; r < text_of_rank.size(); ++r)
      if (text_of_rank[r] == text_of_rank[first]) {
        seen_before = seen_before || r < first;
        same.push_back(device_ids[r]);
      }
    if (seen_before) continue;
    if (listed++ == most)
      return list + "\n  and other texts, the next on rank " + std::to_string(device_ids[first]);
    if (!list.empty()) list += "\n";
    list += "  " + std::string(same.size() == 1 ? "rank " : "ranks ") + format_ids(same) + ": " +
            text_of_rank[first];
  }
  return list;
}

namespace {

// Combines numbers of all ranks elementwise; `combine` computes what `op` does.
template <std::size_t n, class Combine>
void combine_all(const Communicator& comm, const std::uint64_t (&mine)[n], std::uint64_t (&result)[n],
                 MPI_Op op, Combine combine) {
  if (auto* board = SharedSlots::of(comm)) {
    std::fill(std::begin(result), std::end(result), 0);
    return board->exchange(comm, mine, sizeof mine, [&](int, const std::byte* notice) {
      std::uint64_t theirs[n];
      std::memcpy(theirs, notice, sizeof theirs);
      for (std::size_t i = 0; i < n; ++i) result[i] = combine(result[i], theirs[i]);
    });
  }
  check(mpi::Allreduce(mine, result, static_cast<int>(n), MPI_UINT64_T, op, comm.impl().handle),
        "MPI_Allreduce", comm);
}
template <std::size_t n>
void all_largest(const Communicator& comm, const std::uint64_t (&mine)[n], std::uint64_t (&largest)[n]) {
  combine_all(comm, mine, largest, MPI_MAX, [](auto a, auto b) { return std::max(a, b); });
}
std::uint64_t sum_of_all(const Communicator& comm, std::uint64_t mine) {
  const std::uint64_t own[1] = {mine};
  std::uint64_t sum[1];
  combine_all(comm, own, sum, MPI_SUM, [](auto a, auto b) { return a + b; });
  return sum[0];
}

// Calls that were deferred on this channel are compared now: the next agreement no longer has them.
bool all_can_compare(const Communicator& comm, bool can, std::uint64_t deferred) {
  const std::uint64_t mine[3] = {can ? 0u : 1u, deferred, ~deferred};
  std::uint64_t largest[3];
  all_largest(comm, mine, largest);
  return largest[0] == 0 && largest[1] == ~largest[2];
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Lines [first, first + count) of a text, with the numbers of those before and behind.
std::string excerpt(const std::vector<std::string>& lines, std::size_t first, std::size_t count) {
  const std::size_t begin = std::min(first, lines.size()), end = std::min(lines.size(), begin + count);
  const auto left_out = [](std::size_t n) {
    return n == 0 ? std::string() : "  (" + format_count(static_cast<std::int64_t>(n), "line") + ")\n";
  };
  std::string text = left_out(begin);
  for (std::size_t n = begin; n < end; ++n) text += lines[n] + "\n";
  return text + left_out(lines.size() - end);
}

// The first line that is not the same on all ranks, since programs are pages long, and the lines around it.
std::string differing_lines(const std::vector<std::string>& texts, const std::vector<int>& device_ids) {
  constexpr std::size_t lines_before = 3, lines_shown = 12, most_texts = 8;
  std::vector<std::vector<std::string>> lines;
  for (const auto& text : texts) lines.push_back(lines_of(text));
  const auto line_of = [&](std::size_t rank, std::size_t n) {
    return n < lines[rank].size() ? lines[rank][n] : std::string("(nothing more)");
  };
  std::size_t longest = 0, n = 0;
  for (const auto& one : lines) longest = std::max(longest, one.size());
  const auto all_same = [&] {
    for (std::size_t rank = 1; rank < lines.size(); ++rank)
      if (line_of(rank, n) != line_of(0, n)) return false;
    return true;
  };
  while (n < longest && all_same()) ++n;
  std::vector<std::string> around;
  for (const auto& one : lines) around.push_back(excerpt(one, n - std::min(n, lines_before), lines_shown));
  if (n == 0 || n == longest) return ":\n" + list_by_text(around, device_ids, most_texts);
  std::vector<std::string> differing;
  for (std::size_t rank = 0; rank < lines.size(); ++rank) {
    const auto line = line_of(rank, n);
    differing.push_back(line.substr(std::min(line.size(), line.find_first_not_of(' '))));
  }
  return ", first in line " + std::to_string(n + 1) + ":\n" +
         list_by_text(differing, device_ids, most_texts) + "\nThe lines around it:\n" +
         list_by_text(around, device_ids, most_texts);
}

[[noreturn]] void disagree(const Communicator& channel, const std::string& text) {
  const auto texts = gather_texts(channel, text);
  throw DisagreementError(
      "the ranks disagree on what comes next" + differing_lines(texts, channel.device_ids()) +
      "\nEvery rank must build and evaluate the same arrays in the same order, from the same "
      "data; look for a branch that depends on the rank, for data that only one of them has "
      "read, or for an exception that one of them has caught.");
}

}  // namespace

Asks agree(const Communicator& comm, std::uint64_t fingerprint, const std::function<std::string()>& describe,
           Asks asks) {
  const bool is_everybody = comm.size() == world().size();
  if (comm.size() == 1) {
    if (is_everybody) note_agreed_stop(stop_signal_here());
    asks.apart = 0;
    return asks;
  }
  const Communicator& channel = channel_of(comm);
  DeferredCalls deferred(channel);
  if (deferred.by_all() != 0) fingerprint = mix(deferred.by_all(), fingerprint);
  const std::uint64_t mine[9] = {
      fingerprint,           ~fingerprint,        asks.for_plan,
      asks.for_failed_value, deferred.by_parts(), static_cast<std::uint64_t>(stop_signal_here()),
      asks.for_fewer_groups, asks.apart,          ~asks.apart};
  std::uint64_t largest[9], difference = 0;
  bool is_alike = false, all_compare = false;
  {
    const Waiting waiting("agreement", channel, 0);
    const Rendezvous rendezvous(channel.impl().set->rendezvous_count, channel.device_ids(),
                                RendezvousKind::agreement, describe);
    all_largest(channel, mine, largest);
    const bool has_one_call = largest[0] == ~largest[1];
    if (has_one_call && largest[4] != 0) difference = sum_of_all(channel, deferred.settle_parts());
    is_alike = has_one_call && difference == 0;
    if (!has_one_call) all_compare = all_can_compare(channel, asks.for_comparison, deferred.by_all());
  }
  if (is_everybody) note_agreed_stop(static_cast<int>(largest[5]));
  if (!is_alike && !all_compare) disagree(channel, describe() + deferred.text());
  return {largest[2] != 0, largest[3] != 0, largest[6] != 0, largest[7] != ~largest[8] ? 1u : 0u, !is_alike};
}

void agree_on_call(const Communicator& comm, const std::string& call) {
  if (settings().check > 0) agree(comm, hash_bytes(call.data(), call.size()), [&] { return call; });
}

bool all_ok(const Communicator& comm, bool ok) {
  if (comm.size() == 1) return ok;
  const Waiting waiting("agreement on success", comm, 0);
  const std::uint64_t mine[1] = {ok ? 0u : 1u};
  std::uint64_t failures[1];
  all_largest(comm, mine, failures);
  return failures[0] == 0;
}

namespace {
// The lowest rank with a text, and that text, on every rank.
struct FirstText {
  int rank = 0;
  std::string text;  // "": no rank has one
  bool from_all = false;
};
FirstText first_text(const Communicator& comm, const std::string& mine) {
  if (comm.size() == 1) return {0, mine, true};
  const Waiting waiting("agreement on success", comm, 0);
  const std::uint64_t own[2] = {mine.empty() ? 0u : static_cast<std::uint64_t>(comm.size() - comm.rank()),
                                mine.empty() ? 1u : 0u};
  std::uint64_t largest[2];
  all_largest(comm, own, largest);
  if (largest[0] == 0) return {};
  const int first = comm.size() - static_cast<int>(largest[0]);
  auto bytes = static_cast<std::int64_t>(mine.size());
  check(mpi::Bcast(&bytes, 1, MPI_INT64_T, comm.impl().mpi_rank(first), comm.impl().handle), "MPI_Bcast",
        comm);
  std::string text = comm.rank() == first ? mine : std::string(static_cast<std::size_t>(bytes), '\0');
  spread_text(comm, text, first);
  return {first, std::move(text), largest[1] == 0};
}
}  // namespace

std::string first_error(const Communicator& comm, const std::string& mine) {
  const auto first = first_text(comm, mine);
  return first.text.empty() ? ""
                            : "rank " + std::to_string(comm.device_ids()[first.rank]) + ": " + first.text;
}

std::string common_error(const Communicator& comm, const std::string& mine) {
  const auto first = first_text(comm, mine);
  if (first.text.empty() || first.from_all) return first.text;
  return "rank " + std::to_string(comm.device_ids()[first.rank]) + ": " + first.text;
}

void check_collective(const Communicator& comm, const char* what,
                      std::initializer_list<std::int64_t> numbers) {
  if (settings().check < 2 || comm.size() == 1) return;
  Hasher hash;
  hash.add(std::string_view(what));
  for (const auto number : numbers) hash.add(number);
  agree(comm, hash.value(), [&] {
    std::string text = what;
    for (const auto number : numbers) text += " " + std::to_string(number);
    const auto purpose = current_purpose();
    return text + (purpose.empty() ? "" : ", for " + purpose);
  });
}

}  // namespace tessera::comm
