#include "comm/host/host_memory.hpp"

#include <tessera/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/session.hpp"
#include "comm/host/host_sharing.hpp"
#include "comm/mpi/mpi_call.hpp"
#include "types/free_list.hpp"
#include "types/freed_memory.hpp"
#include "types/other_memory.hpp"

namespace tessera::comm {
namespace {

constexpr std::size_t least_bytes = std::size_t{64} << 10;  // below, a message is as quick
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::int64_t slack_bytes = std::int64_t{64} << 20;
constexpr std::size_t most_mappings = 256;  // of peers' blocks that are kept for the next time

// A mapping of all of a file, at the start of a huge page if it is as large as one. nullptr if the system
// refuses.
std::byte* map_file(int file, std::size_t bytes) {
  const std::size_t spare = bytes >= huge_page ? huge_page : 0;
  void* reserved =
      mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(reserved);
  const std::size_t skipped =
      spare == 0 ? 0 : (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
  if (skipped > 0) munmap(start, skipped);
  if (spare > skipped) munmap(start + skipped + bytes, spare - skipped);
  void* mapped = mmap(start + skipped, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  if (mapped == MAP_FAILED) {
    munmap(start + skipped, bytes);
    return nullptr;
  }
#ifdef MADV_HUGEPAGE
  if (spare > 0) madvise(mapped, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(mapped);
}

int open_file_of(std::int64_t process, std::int64_t file) {
  return open(("/proc/" + std::to_string(process) + "/fd/" + std::to_string(file)).c_str(),
              O_RDWR | O_CLOEXEC);
}

struct Block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;
  int file = -1;
  std::int64_t serial = 0;
};

// This rank's blocks. Freed ones are kept for the next request of their size; so peers find them mapped.
class Blocks {
 public:
  static Blocks& instance() {
    static auto* blocks = new Blocks;  // outlives every static array handle of the program
    return *blocks;
  }

  // A block without data where the system has none to share.
  Block take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    Block block;
    if (const auto kept = kept_.take(bytes)) {
      block = kept->block;
      count_other_memory(0, -static_cast<std::int64_t>(block.capacity));
    } else {
      const std::size_t capacity = shared_capacity(bytes, 4096);
      block = make(capacity);
      if (block.data == nullptr && !kept_.empty()) {  // what is kept holds files and mappings too
        drop_all();
        block = make(capacity);
      }
      if (block.data == nullptr) return block;
    }
    mark_taken(block.data, bytes, block.capacity);
    live_[block.data] = block;
    live_bytes_ += static_cast<std::int64_t>(block.capacity);
    peak_bytes_ = std::max(peak_bytes_, live_bytes_);
    count_other_memory(static_cast<std::int64_t>(block.capacity), 0);
    return block;
  }

  void give(const Block& block) {
    const std::scoped_lock lock(mutex_);
    const auto bytes = static_cast<std::int64_t>(block.capacity);
    live_.erase(block.data);
    live_bytes_ -= bytes;
    count_other_memory(-bytes, bytes);
    mark_freed(block.data, block.capacity);
    if (!kept_.give(block.capacity, block)) unmap(block);
    kept_.shrink(peak_bytes_ + slack_bytes, block.capacity, [](const auto& found) { unmap(found.block); });
  }

  void drop() {
    const std::scoped_lock lock(mutex_);
    drop_all();
  }

  HostAddress address_of(const std::byte* place) {
    const std::scoped_lock lock(mutex_);
    auto found = live_.upper_bound(place);
    if (found == live_.begin()) return {};
    const Block& block = std::prev(found)->second;
    if (place >= block.data + block.capacity) return {};
    return {getpid(), block.file, block.serial, static_cast<std::int64_t>(block.capacity),
            place - block.data};
  }

 private:
  Blocks() {
    on_release_pooled_memory([] { instance().drop(); });
  }

  Block make(std::size_t capacity) {
    if (capacity >= huge_page) capacity = (capacity + huge_page - 1) / huge_page * huge_page;
    const int file = memfd_create("tessera", MFD_CLOEXEC);
    if (file < 0) return {};
    std::byte* data = ftruncate(file, static_cast<off_t>(capacity)) == 0 ? map_file(file, capacity) : nullptr;
    if (data == nullptr) {
      close(file);
      return {};
    }
    return {data, capacity, file, ++made_};
  }

  static void unmap(const Block& block) {
    unmark(block.data, block.capacity);
    // Peers may have it mapped still: the memory goes now all the same.
    fallocate(block.file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(block.capacity));
    munmap(block.data, block.capacity);
    close(block.file);
    count_other_memory(0, -static_cast<std::int64_t>(block.capacity));
  }
  void drop_all() {
    kept_.clear([](const auto& found) { unmap(found.block); });
  }

  std::mutex mutex_;
  std::map<const std::byte*, Block> live_;
  FreeList<Block> kept_;
  std::int64_t live_bytes_ = 0, peak_bytes_ = 0, made_ = 0;
};

struct Mapping {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data != nullptr) munmap(data, bytes);
  }
};

using BlockName = std::pair<std::int64_t, std::int64_t>;  // process, serial
struct Mappings {
  std::map<BlockName, std::shared_ptr<Mapping>> known;
  std::deque<BlockName> order;  // the oldest first
};

struct Sharing {
  std::vector<int> host_of;  // by rank: the first rank of those that share memory with it; -1: alone
  bool mine = false;         // this rank shares
};
Sharing& sharing() { return state<Sharing>(); }

// Each block holds a file: as many as the system lets this process have, within reason.
void raise_limit_of_files() {
  constexpr rlim_t enough = 65536;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= std::min(limit.rlim_max, enough)) return;
  limit.rlim_cur = std::min(limit.rlim_max, enough);
  setrlimit(RLIMIT_NOFILE, &limit);
}

// Whether every rank of a host can open every other's files.
bool all_can_share(MPI_Comm host, int rank, int host_size) {
  struct Card {
    std::int64_t process, file, password;
  };
  const int file = memfd_create("tessera", MFD_CLOEXEC);
  const Card mine{getpid(), file, getpid() * std::int64_t{1'000'003} + rank};
  int works =
      file >= 0 && pwrite(file, &mine.password, sizeof mine.password, 0) == sizeof mine.password ? 1 : 0;
  std::vector<Card> cards(host_size);
  check(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, host),
        "MPI_Allgather", "the ranks of this host");
  for (const auto& card : cards) {
    const int other = open_file_of(card.process, card.file);
    std::int64_t password = 0;
    if (other < 0 || pread(other, &password, sizeof password, 0) != sizeof password ||
        password != card.password)
      works = 0;
    if (other >= 0) close(other);
  }
  int all_work = 0;
  check(MPI_Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce",
        "the ranks of this host");
  if (file >= 0) close(file);
  return all_work == 1;
}

}  // namespace

Buffer allocate_on_host(std::size_t bytes) {
  if (bytes < least_bytes || !sharing().mine) return Buffer::allocate(bytes);
  const Block block = Blocks::instance().take(bytes);
  if (block.data == nullptr) return Buffer::allocate(bytes);
  return Buffer::wrap(block.data, bytes, [block] { Blocks::instance().give(block); });
}

HostAddress host_address(const void* place) {
  return sharing().mine && place != nullptr
             ? Blocks::instance().address_of(static_cast<const std::byte*>(place))
             : HostAddress{};
}

bool share_memory(std::span<const int> ranks) {
  const auto host_of = [](int rank) {
    const auto r = static_cast<std::size_t>(rank);
    return r < sharing().host_of.size() ? sharing().host_of[r] : -1;
  };
  return !ranks.empty() && host_of(ranks[0]) >= 0 && std::all_of(ranks.begin(), ranks.end(), [&](int rank) {
    return host_of(rank) == host_of(ranks[0]);
  });
}

Buffer map(const HostAddress& address) {
  const BlockName name{address.process, address.serial};
  auto& [mappings, order] = state<Mappings>();
  auto& known = mappings[name];
  if (known == nullptr) {
    known = std::make_shared<Mapping>();
    const int file = open_file_of(address.process, address.file);
    if (file >= 0)
      known->bytes = static_cast<std::size_t>(address.block_bytes),
      known->data = map_file(file, known->bytes);
    const int error = errno;
    if (file >= 0) close(file);
    if (known->data == nullptr) {
      mappings.erase(name);
      throw SystemError("cannot map " + std::to_string(address.block_bytes) + " bytes of process " +
                        std::to_string(address.process) + " on this host: " + std::strerror(error));
    }
    order.push_back(name);
  }
  const auto mapping = known;
  if (order.size() > most_mappings) {  // handles that are out keep theirs alive
    mappings.erase(order.front());
    order.pop_front();
  }
  return Buffer::borrow(mapping->data + address.offset,
                        mapping->bytes - static_cast<std::size_t>(address.offset), [mapping] {});
}

std::vector<int> first_ranks_of_hosts(bool works, MPI_Comm host, MPI_Comm world) {
  int rank = 0, size = 1;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  int first = rank;
  check(MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce", "the ranks of this host");
  if (!works) first = -1;
  std::vector<int> by_rank(size);
  check(MPI_Allgather(&first, 1, MPI_INT, by_rank.data(), 1, MPI_INT, world), "MPI_Allgather", "all ranks");
  return by_rank;
}

void find_sharing_ranks(MPI_Comm host, MPI_Comm world) {
  int rank = 0, host_size = 1;
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(host, &host_size);
  if (host_size > 1) raise_limit_of_files();
  sharing().mine = host_size > 1 && all_can_share(host, rank, host_size);
  sharing().host_of = first_ranks_of_hosts(sharing().mine, host, world);
}

}  // namespace tessera::comm
