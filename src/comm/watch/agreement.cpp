#include "comm/watch/agreement.hpp"

#include <numeric>

#include "base/hash.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/group_cache.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {

std::vector<std::string> gather_texts(const Communicator& comm, const std::string& mine) {
  if (comm.size() == 1) return {mine};
  const Waiting waiting("exchange of texts", comm, 0);
  const int bytes = static_cast<int>(mine.size());
  std::vector<int> bytes_of(comm.size()), offset_of(bytes_of.size());
  check(MPI_Allgather(&bytes, 1, MPI_INT, bytes_of.data(), 1, MPI_INT, comm.impl().handle), "MPI_Allgather",
        comm);
  std::exclusive_scan(bytes_of.begin(), bytes_of.end(), offset_of.begin(), 0);
  std::string all(offset_of.back() + bytes_of.back(), '\0');
  check(MPI_Allgatherv(mine.data(), bytes, MPI_CHAR, all.data(), bytes_of.data(), offset_of.data(), MPI_CHAR,
                       comm.impl().handle),
        "MPI_Allgatherv", comm);
  std::vector<std::string> texts;
  for (std::size_t r = 0; r < bytes_of.size(); ++r) texts.push_back(all.substr(offset_of[r], bytes_of[r]));
  return texts;
}

std::string list_by_text(const std::vector<std::string>& text_of_rank, const std::vector<int>& device_ids) {
  std::string list;
  for (std::size_t first = 0; first < text_of_rank.size(); ++first) {
    std::vector<int> same;
    bool seen_before = false;
    for (std::size_t r = 0; r < text_of_rank.size(); ++r)
      if (text_of_rank[r] == text_of_rank[first]) {
        seen_before = seen_before || r < first;
        same.push_back(device_ids[r]);
      }
    if (seen_before) continue;
    if (!list.empty()) list += "\n";
    list += "  " + std::string(same.size() == 1 ? "rank " : "ranks ") + format_ids(same) + ": " +
            text_of_rank[first];
  }
  return list;
}

void agree(const Communicator& comm, std::uint64_t fingerprint,
           const std::function<std::string()>& describe) {
  if (comm.size() == 1) return;
  // Every group of all devices agrees on one channel, so that a rank whose program ended meets the others
  // there (leave()).
  const Communicator& channel = comm.size() == world().size() ? control() : comm;
  const std::uint64_t mine[2] = {fingerprint, ~fingerprint};
  std::uint64_t largest[2];
  {
    const Waiting waiting("agreement", channel, 0);
    check(MPI_Allreduce(mine, largest, 2, MPI_UINT64_T, MPI_MAX, channel.impl().handle), "MPI_Allreduce",
          channel);
  }
  if (largest[0] == ~largest[1]) return;
  throw DisagreementError("the ranks disagree on what comes next:\n" +
                          list_by_text(gather_texts(channel, describe()), channel.device_ids()) +
                          "\nEvery rank must build and evaluate the same arrays in the same order; look for "
                          "a branch that depends on the rank.");
}

void agree_on_call(const Communicator& comm, const std::string& call) {
  if (settings().check > 0) agree(comm, hash_bytes(call.data(), call.size()), [&] { return call; });
}

bool all_ok(const Communicator& comm, bool ok) {
  if (comm.size() == 1) return ok;
  const Waiting waiting("agreement on success", comm, 0);
  int mine = ok ? 1 : 0, all = 0;
  check(MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm.impl().handle), "MPI_Allreduce", comm);
  return all == 1;
}

std::string first_error(const Communicator& comm, const std::string& mine) {
  if (comm.size() == 1)
    return mine.empty() ? "" : "rank " + std::to_string(comm.device_ids()[0]) + ": " + mine;
  const Waiting waiting("agreement on success", comm, 0);
  const int bid = mine.empty() ? comm.size() : comm.rank();
  int lowest = 0;
  check(MPI_Allreduce(&bid, &lowest, 1, MPI_INT, MPI_MIN, comm.impl().handle), "MPI_Allreduce", comm);
  if (lowest == comm.size()) return "";
  int bytes = static_cast<int>(mine.size());
  check(MPI_Bcast(&bytes, 1, MPI_INT, lowest, comm.impl().handle), "MPI_Bcast", comm);
  std::string text = comm.rank() == lowest ? mine : std::string(bytes, '\0');
  check(MPI_Bcast(text.data(), bytes, MPI_CHAR, lowest, comm.impl().handle), "MPI_Bcast", comm);
  return "rank " + std::to_string(comm.device_ids()[lowest]) + ": " + text;
}

}  // namespace tessera::comm
