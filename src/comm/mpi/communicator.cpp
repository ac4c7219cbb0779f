#include "comm/mpi/communicator.hpp"

#include <tessera/error.hpp>

#include <cstdlib>
#include <numeric>
#include <unordered_map>

#include "base/hash.hpp"
#include "base/session.hpp"
#include "base/text.hpp"
#include "comm/mpi/group_cache.hpp"
#include "comm/mpi/mpi_call.hpp"
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
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

// Freed in the order in which they were made, alike on all ranks.
struct Communicators {
  std::unique_ptr<Communicator> alone, world, control;
  std::vector<std::unique_ptr<Communicator>> groups;
  std::unordered_map<std::vector<int>, const Communicator*, HashIds> by_ids;

  Communicators() = default;
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  ~Communicators() {
    if (!mpi_is_up()) return;
    for (auto& one : groups) free(one.get());
    free(control.get());
    free(world.get());
  }

 private:
  static void free(Communicator* one) {
    if (one != nullptr && one->impl().handle != MPI_COMM_NULL) MPI_Comm_free(&one->impl().handle);
  }
};
Communicators& communicators() { return state<Communicators>(); }

std::unique_ptr<Communicator> make(MPI_Comm handle, int rank, std::vector<int> device_ids, int world_size) {
  auto impl = std::make_unique<Communicator::Impl>();
  impl->handle = handle;
  impl->rank = rank;
  impl->rank_of.assign(world_size, -1);
  for (std::size_t r = 0; r < device_ids.size(); ++r) impl->rank_of[device_ids[r]] = static_cast<int>(r);
  impl->name = (device_ids.size() == 1 ? "device " : "devices ") + format_ids(device_ids);
  impl->device_ids = std::move(device_ids);
  return std::make_unique<Communicator>(std::move(impl));
}

const Communicator& this_process_alone() {
  auto& alone = communicators().alone;
  if (!alone) alone = make(MPI_COMM_NULL, 0, {0}, 1);
  return *alone;
}

// Two groups that are made at the same time by overlapping sets of ranks need different tags.
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

const Communicator& group(const std::vector<int>& device_ids) {
  const Communicator& all = world();
  auto& cache = communicators();
  if (device_ids == all.device_ids()) return all;
  if (const auto found = cache.by_ids.find(device_ids); found != cache.by_ids.end()) return *found->second;

  const int rank = find_own_rank(device_ids, all.size(), all.rank());
  MPI_Comm handle = MPI_COMM_NULL;
  if (device_ids.size() > 1) {
    const Waiting waiting("the making of a group", all, 0);
    const std::function<std::string()> describe = [&] {
      const auto purpose = current_purpose();
      return "meets devices " + format_ids(device_ids) + " for the first time" +
             (purpose.empty() ? "" : ", for " + purpose);
    };
    MeetingCount first;
    const Meeting meeting(first, device_ids, MeetingKind::making, describe);
    MPI_Group everybody, members;
    check(MPI_Comm_group(all.impl().handle, &everybody), "MPI_Comm_group", all);
    check(MPI_Group_incl(everybody, static_cast<int>(device_ids.size()), device_ids.data(), &members),
          "MPI_Group_incl", all);
    check(MPI_Comm_create_group(all.impl().handle, members, tag_of(device_ids), &handle),
          "MPI_Comm_create_group", all);
    MPI_Group_free(&members);
    MPI_Group_free(&everybody);
    MPI_Comm_set_errhandler(handle, MPI_ERRORS_RETURN);
  }
  cache.groups.push_back(make(handle, rank, device_ids, all.size()));
  cache.by_ids.emplace(device_ids, cache.groups.back().get());
  return *cache.groups.back();
}

int fortran_handle(const Communicator& comm) { return static_cast<int>(MPI_Comm_c2f(comm.impl().handle)); }

const Communicator& control() {
  const auto& own = communicators().control;
  return own ? *own : world();
}

void set_world(MPI_Comm handle, MPI_Comm control) {
  int rank = 0, size = 1;
  MPI_Comm_rank(handle, &rank);
  MPI_Comm_size(handle, &size);
  std::vector<int> ids(size);
  std::iota(ids.begin(), ids.end(), 0);
  communicators().world = make(handle, rank, ids, size);
  communicators().control = make(control, rank, ids, size);
}

}  // namespace tessera::comm
