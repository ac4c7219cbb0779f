#include "comm/watch/rendezvous.hpp"

#include <algorithm>

#include "base/hash.hpp"
#include "comm/watch/rank_status.hpp"

namespace tessera::comm {
namespace {

bool contains(const HostRanks& set, int place) {
  return (set[static_cast<std::size_t>(place) / 64] >> (place % 64) & 1) != 0;
}

std::uint64_t number_of_group(const std::vector<int>& device_ids, RendezvousKind kind) {
  const auto hash = hash_bytes(device_ids.data(), device_ids.size() * sizeof(int));
  return std::max<std::uint64_t>(1, mix(hash, static_cast<std::uint64_t>(kind)));
}

// One change of this rank's account; `version` is odd during it.
class Change {
 public:
  explicit Change(Attendance& account) : account_(account), before_(account.version) {
    account_.version.store(before_ + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
  }
  ~Change() { account_.version.store(before_ + 2, std::memory_order_release); }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  Attendance& account_;
  std::uint64_t before_;
};

// A snapshot of one rank's account.
struct Standing {
  std::uint64_t version = 0, group = 0;
  std::int64_t number = 0;
  HostRanks members{};
};

Standing standing_of(const Attendance& account) {
  Standing now;
  now.version = account.version.load(std::memory_order_acquire);
  now.group = account.group.load(std::memory_order_relaxed);
  now.number = account.number.load(std::memory_order_relaxed);
  for (std::size_t w = 0; w < now.members.size(); ++w)
    now.members[w] = account.members[w].load(std::memory_order_relaxed);
  return now;
}

// Assumes attendance if another group has taken the slot: the answer is unknown, so no rank is accused.
bool may_have_attended(const Attendance& account, const Standing& rendezvous) {
  const auto& slot = account.attended[rendezvous.group % Attendance::kept];
  const auto group = slot.group.load(std::memory_order_relaxed);
  if (group == 0) return false;
  return group != rendezvous.group ||
         slot.rendezvous_count.load(std::memory_order_relaxed) >= rendezvous.number;
}

bool stood_still(const std::vector<Standing>& before, const std::function<const Attendance&(int)>& at) {
  std::atomic_thread_fence(std::memory_order_acquire);
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i].version % 2 != 0 ||
        at(static_cast<int>(i)).version.load(std::memory_order_relaxed) != before[i].version)
      return false;
  return true;
}

}  // namespace

// A rank outside of any rendezvous can continue, and so can a rank that waits only for ranks that can
// continue (transitively). All remaining ranks wait for ever.
std::vector<int> stuck_ranks(int places, const std::function<const Attendance&(int)>& at) {
  places = std::min(places, most_host_ranks);
  std::vector<Standing> standing;
  for (int i = 0; i < places; ++i) standing.push_back(standing_of(at(i)));
  std::vector<std::vector<int>> waits_for(standing.size());
  for (int i = 0; i < places; ++i)
    for (int j = 0; j < places && standing[i].group != 0; ++j)
      if (j != i && contains(standing[i].members, j) && !may_have_attended(at(j), standing[i]))
        waits_for[i].push_back(j);
  if (!stood_still(standing, at)) return {};
  std::vector<bool> goes_on(standing.size());
  for (int i = 0; i < places; ++i) goes_on[i] = standing[i].group == 0;
  for (bool found = true; found;) {
    found = false;
    for (int i = 0; i < places; ++i)
      if (!goes_on[i] &&
          std::all_of(waits_for[i].begin(), waits_for[i].end(), [&](int j) { return goes_on[j]; }))
        goes_on[i] = found = true;
  }
  std::vector<int> stuck;
  for (int i = 0; i < places; ++i)
    if (!goes_on[i]) stuck.push_back(i);
  return stuck;
}

Rendezvous::Rendezvous(RendezvousCount& count, const std::vector<int>& device_ids, RendezvousKind kind,
                       const std::function<std::string()>& describe) {
  RankStatus& here = my_status();
  if (count.group == 0) {
    count.group = number_of_group(device_ids, kind);
    count.members = host_ranks_of(device_ids);
  }
  ++count.rendezvous_count;
  set_intention(&describe);
  const Change change(here.attendance);
  auto& slot = here.attendance.attended[count.group % Attendance::kept];
  slot.group.store(count.group, std::memory_order_relaxed);
  slot.rendezvous_count.store(count.rendezvous_count, std::memory_order_relaxed);
  if (stays_out_of_circles()) return;
  here.attendance.number.store(count.rendezvous_count, std::memory_order_relaxed);
  for (std::size_t w = 0; w < count.members.size(); ++w)
    here.attendance.members[w].store(count.members[w], std::memory_order_relaxed);
  here.attendance.group.store(count.group, std::memory_order_relaxed);
}

Rendezvous::~Rendezvous() {
  {
    RankStatus& here = my_status();
    const Change change(here.attendance);
    here.attendance.group.store(0, std::memory_order_relaxed);
  }
  set_intention(nullptr);
}

}  // namespace tessera::comm
