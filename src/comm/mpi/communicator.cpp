#include "comm/mpi/communicator.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <unordered_map>
#include <utility>

#include "base/hash.hpp"
#include "base/recent.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/mpi/group_cache.hpp"
#include "comm/mpi/idle_groups.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/waiting.hpp"

namespace tessera::comm {
namespace {

struct HashIds {
  std::size_t operator()(const std::vector<int>& ids) const {
    return hash_bytes(ids.data(), ids.size() * sizeof(int));
  }
};

bool mpi_is_up() {
  int initialized = 0, finalized = 0;
  mpi::Initialized(&initialized);
  mpi::Finalized(&finalized);
  return initialized && !finalized;
}

using Held = std::shared_ptr<const Communicator>;

struct Communicators {
  static constexpr std::size_t most_orders = 256;
  Held alone, world, control;
  std::unordered_map<std::vector<int>, Held, HashIds> by_set;  // in ascending order
  RecentMap<std::vector<int>, Held, HashIds> by_order{most_orders};
  std::size_t most_groups = 256, asks_from = most_groups;  // sets; asks_from grows while they stay in use

  Communicators() = default;
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  ~Communicators() {
    if (!mpi_is_up()) return;
    std::vector<std::vector<int>> all;
    for (const auto& [ids, held] : by_set) all.push_back(ids);
    std::sort(all.begin(), all.end());  // alike on all ranks
    for (const auto& ids : all) free(*by_set.at(ids));
    for (const auto& held : {control, world})
      if (held) free(*held);
  }

  static int free(const Communicator& one) {
    return one.impl().handle == MPI_COMM_NULL ? MPI_SUCCESS : mpi::Comm_free(&one.impl().handle);
  }
};
Communicators& communicators() { return state<Communicators>(); }

std::unique_ptr<Communicator::Impl> new_impl(MPI_Comm handle, int rank, std::vector<int> device_ids,
                                             int world_size) {
  auto impl = std::make_unique<Communicator::Impl>();
  impl->handle = handle;
  impl->rank = rank;
  impl->rank_of.assign(world_size, -1);
  for (std::size_t r = 0; r < device_ids.size(); ++r) impl->rank_of[device_ids[r]] = static_cast<int>(r);
  impl->name = (device_ids.size() == 1 ? "device " : "devices ") + format_ids(device_ids);
  impl->device_ids = std::move(device_ids);
  return impl;
}

Held make(MPI_Comm handle, int rank, std::vector<int> device_ids, int world_size) {
  auto impl = new_impl(handle, rank, std::move(device_ids), world_size);
  impl->set = std::make_shared<OfSet>();
  return std::make_shared<Communicator>(std::move(impl));
}

// The same devices in another order.
Held reorder(const Held& set, int rank, const std::vector<int>& device_ids) {
  const auto& own = set->impl();
  auto impl = new_impl(own.handle, rank, device_ids, static_cast<int>(own.rank_of.size()));
  impl->set = own.set;
  impl->ascending = set;
  for (const int id : device_ids) impl->mpi_ranks.push_back(own.rank_of[id]);
  return std::make_shared<Communicator>(std::move(impl));
}

const Communicator& this_process_alone() {
  auto& alone = communicators().alone;
  if (!alone) alone = make(MPI_COMM_NULL, 0, {0}, 1);
  return *alone;
}

// Groups that overlapping sets of ranks create at the same time need different tags.
int tag_of(const std::vector<int>& ids) { return tag_group + static_cast<int>(HashIds()(ids) % 20000); }

int find_own_rank(const std::vector<int>& ids, int world_size, int me) {
  std::vector<bool> seen(world_size);
  int rank = -1;
  for (std::size_t r = 0; r < ids.size(); ++r) {
    const int id = ids[r];
    if (id < 0 || id >= world_size || seen[id])
      throw InternalError("comm::group of devices " + format_ids(ids) + ": device " + std::to_string(id) +
                          " is unknown or stands twice");
    seen[id] = true;
    if (id == me) rank = static_cast<int>(r);
  }
  if (rank < 0)
    throw InternalError("comm::group of devices " + format_ids(ids) + " was called on rank " +
                        std::to_string(me) + ", which is not a member");
  return rank;
}

}  // namespace

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;
int Communicator::rank() const { return impl_->rank; }
int Communicator::size() const { return static_cast<int>(impl_->device_ids.size()); }
const std::vector<int>& Communicator::device_ids() const { return impl_->device_ids; }
const std::string& Communicator::name() const { return impl_->name; }
int Communicator::rank_of(int device_id) const {
  const auto i = static_cast<std::size_t>(device_id);
  return device_id >= 0 && i < impl_->rank_of.size() ? impl_->rank_of[i] : -1;
}

const Communicator& world() {
  if (communicators().world) return *communicators().world;
  const char* promised = std::getenv("OMPI_COMM_WORLD_SIZE");
  if (promised != nullptr && std::atoi(promised) > 1)
    throw ArgumentError("arrays are used in a job of " + std::string(promised) +
                        " ranks before the runtime has started: put the program inside "
                        "tessera::run(argc, argv, ...) or construct a tessera::Runtime first");
  return this_process_alone();
}

namespace {

MPI_Comm make_handle(const std::vector<int>& device_ids) {
  const Communicator& all = world();
  const Waiting waiting("the making of a group", all, 0);
  const std::function<std::string()> describe = [&] {
    const auto purpose = current_purpose();
    return "meets devices " + format_ids(device_ids) + " for the first time" +
           (purpose.empty() ? "" : ", for " + purpose);
  };
  RendezvousCount first;
  const Rendezvous rendezvous(first, device_ids, RendezvousKind::making, describe);
  MPI_Comm handle = MPI_COMM_NULL;
  check(mpi::Comm_of_ranks(all.impl().handle, static_cast<int>(device_ids.size()), device_ids.data(),
                           tag_of(device_ids), &handle),
        "MPI_Comm_create_group", all);
  mpi::Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  return handle;
}

// Devices in ascending order.
const Held& group_of_set(const std::vector<int>& ids) {
  const Communicator& all = world();
  auto& cache = communicators();
  if (static_cast<int>(ids.size()) == all.size()) return cache.world ? cache.world : cache.alone;
  if (const auto found = cache.by_set.find(ids); found != cache.by_set.end()) return found->second;
  const int rank = find_own_rank(ids, all.size(), all.rank());
  const MPI_Comm handle = ids.size() > 1 ? make_handle(ids) : MPI_COMM_NULL;
  return cache.by_set.emplace(ids, make(handle, rank, ids, all.size())).first->second;
}

const Held& find_group(const std::vector<int>& device_ids) {
  const Communicator& all = world();
  auto& cache = communicators();
  if (device_ids == all.device_ids()) return cache.world ? cache.world : cache.alone;
  if (const auto found = cache.by_set.find(device_ids); found != cache.by_set.end()) return found->second;
  if (const auto* found = cache.by_order.find(device_ids)) return *found;
  const int rank = find_own_rank(device_ids, all.size(), all.rank());
  auto ids = device_ids;
  std::sort(ids.begin(), ids.end());
  const Held& set = group_of_set(ids);
  return ids == device_ids ? set : cache.by_order.insert(device_ids, reorder(set, rank, device_ids));
}

}  // namespace

const Communicator& group(const std::vector<int>& device_ids) { return *find_group(device_ids); }
std::shared_ptr<const Communicator> hold_group(const std::vector<int>& device_ids) {
  return find_group(device_ids);
}

bool has_too_many_groups() { return communicators().by_set.size() > communicators().asks_from; }
std::size_t group_count() {
  const auto& sets = communicators().by_set;
  return static_cast<std::size_t>(
      std::count_if(sets.begin(), sets.end(), [](const auto& one) { return one.first.size() > 1; }));
}
std::size_t set_most_groups(std::size_t most) {
  communicators().asks_from = most;
  return std::exchange(communicators().most_groups, most);
}

namespace {

// Whether this rank can free the set: nothing on this rank holds it, no agreement on it is deferred, and all
// of its members are among comm's.
bool is_idle(const std::vector<int>& ids, const Held& held, const Communicator& comm) {
  return ids.size() > 1 && static_cast<int>(ids.size()) < comm.size() && held.use_count() == 1 &&
         held->impl().set->put_off.calls == 0 &&
         std::all_of(ids.begin(), ids.end(), [&](int id) { return comm.rank_of(id) >= 0; });
}

std::set<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

}  // namespace

void free_idle_groups(const Communicator& comm) {
  auto& cache = communicators();
  cache.by_order = RecentMap<std::vector<int>, Held, HashIds>(Communicators::most_orders);
  std::map<std::vector<int>, std::string> idle;  // in an order that all ranks share
  std::string mine;
  for (const auto& [ids, held] : cache.by_set)
    if (is_idle(ids, held, comm)) mine += (idle[ids] = std::to_string(HashIds()(ids))) + " ";
  std::vector<std::set<std::string>> idle_of;
  for (const auto& text : gather_texts(comm, mine)) idle_of.push_back(words_of(text));
  const Waiting waiting("the freeing of groups that nobody uses", comm, 0);
  for (const auto& [ids, of_ids] : idle) {
    const std::string& word = of_ids;  // clang 16 captures no structured binding where OpenMP is on
    if (!std::all_of(ids.begin(), ids.end(), [&](int id) {
          return idle_of[static_cast<std::size_t>(comm.rank_of(id))].contains(word);
        }))
      continue;
    check(Communicators::free(*cache.by_set.at(ids)), "MPI_Comm_free", comm);
    cache.by_set.erase(ids);
  }
  cache.asks_from = std::max(cache.most_groups, 2 * cache.by_set.size());
}

const Communicator& control() {
  const auto& own = communicators().control;
  return own ? *own : world();
}

void set_world(MPI_Comm handle, MPI_Comm control) {
  int rank = 0, size = 1;
  mpi::Comm_rank(handle, &rank);
  mpi::Comm_size(handle, &size);
  std::vector<int> ids(size);
  std::iota(ids.begin(), ids.end(), 0);
  communicators().world = make(handle, rank, ids, size);
  communicators().control = make(control, rank, ids, size);
}

}  // namespace tessera::comm
