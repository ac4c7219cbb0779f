#include "comm/host/host_memory.hpp"

#include <tessera/error.hpp>

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
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

constexpr std::size_t least_bytes = std::size_t{64} << 10;  // below this, a message is as fast
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::int64_t slack_bytes = std::int64_t{64} << 20;
constexpr std::size_t most_mappings = 256;  // peers' blocks that stay mapped for later reads

// Maps a part of a file, aligned to a huge page if it is at least as large as one. nullptr if the system
// refuses.
std::byte* map_part(int file, std::int64_t begin, std::size_t bytes) {
  const std::size_t spare = bytes >= huge_page ? huge_page : 0;
  void* reserved =
      mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return nullptr;
  auto* start = static_cast<std::byte*>(reserved);
  const std::size_t skipped =
      spare == 0 ? 0 : (huge_page - reinterpret_cast<std::uintptr_t>(start) % huge_page) % huge_page;
  if (skipped > 0) munmap(start, skipped);
  if (spare > skipped) munmap(start + skipped + bytes, spare - skipped);
  void* mapped = mmap(start + skipped, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, begin);
  if (mapped == MAP_FAILED) {
    munmap(start + skipped, bytes);
    return nullptr;
  }
#ifdef MADV_HUGEPAGE
  if (spare > 0) madvise(mapped, bytes, MADV_HUGEPAGE);
#endif
  return static_cast<std::byte*>(mapped);
}

// An unnamed file that holds all blocks: one descriptor, however many blocks there are. Its length exceeds
// what any job needs and unwritten pages take no memory, so no offset is used twice.
class SharedFile {
 public:
  explicit SharedFile(std::int64_t serial) : serial_(serial), file_(memfd_create("tessera", MFD_CLOEXEC)) {
    constexpr std::int64_t enough = std::int64_t{1} << 46;
    rlimit limit{};  // writing beyond the limit raises a signal
    const bool is_limited = getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < enough;
    const auto length = is_limited ? static_cast<std::int64_t>(limit.rlim_cur) : enough;
    if (file_ >= 0 && ftruncate(file_, length) == 0) free_ = length;
  }
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;
  ~SharedFile() {
    if (file_ >= 0) close(file_);
  }
  int descriptor() const { return file_; }
  std::int64_t serial() const { return serial_; }
  // Reserves `bytes` and returns their offset; -1 if the file has no room.
  std::int64_t place_for(std::int64_t bytes, std::int64_t alignment) {
    const std::int64_t begin = (end_ + alignment - 1) / alignment * alignment;
    if (begin + bytes > free_) return -1;
    end_ = begin + bytes;
    return begin;
  }
  // Returns the memory to the system even while peers still have it mapped.
  void empty(std::int64_t begin, std::size_t bytes) const {
    fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, begin, static_cast<off_t>(bytes));
  }

 private:
  std::int64_t serial_ = 0, free_ = 0, end_ = 0;
  int file_;
};

int open_file_of(std::int64_t process, std::int64_t file) {
  return open(("/proc/" + std::to_string(process) + "/fd/" + std::to_string(file)).c_str(),
              O_RDWR | O_CLOEXEC);
}

struct Block {
  std::byte* data = nullptr;
  std::size_t capacity = 0;
  std::shared_ptr<SharedFile> file = nullptr;
  std::int64_t start = 0, serial = 0;  // in the file; among all blocks
};

// This rank's blocks. Freed ones are kept for the next request of their size, since peers have them mapped
// already.
//
// After fork() the child gets private copies of the blocks, as of all other memory: neither process sees the
// other's later writes. The parent waits until the copies are made.
class Blocks {
 public:
  static Blocks& instance() {
    static auto* blocks = new Blocks;  // never destroyed: static array handles of the program may outlive it
    return *blocks;
  }

  // Returns a block without data if the system cannot provide shared memory.
  Block take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    Block block;
    if (is_child_) return block;
    const std::size_t capacity = capacity_for(bytes);
    if (const auto kept = kept_.take(bytes, most_reused(bytes, capacity))) {
      block = kept->block;
      count_other_memory(0, -static_cast<std::int64_t>(block.capacity));
    } else {
      if (bytes_over_bound(capacity) > 0) drop_all();
      if (const auto over = bytes_over_bound(capacity); over > 0) shrink_malloc_pool(over);
      block = make(capacity);
      if (block.data == nullptr && !kept_.empty()) {  // kept blocks also use up files and mappings
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
    if (is_child_) {
      munmap(block.data, block.capacity);
      return count_other_memory(-bytes, 0);
    }
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
    return {getpid(),
            block.file->descriptor(),
            block.file->serial(),
            block.serial,
            block.start,
            static_cast<std::int64_t>(block.capacity),
            place - block.data};
  }

 private:
  Blocks() {
    on_release_pooled_memory([] { instance().drop(); });
    pthread_atfork([] { instance().before_fork(); }, [] { instance().after_fork_in_parent(); },
                   [] { instance().after_fork_in_child(); });
  }

  static std::size_t capacity_for(std::size_t bytes) {
    const std::size_t shared = shared_capacity(bytes, 4096);
    return shared < huge_page ? shared : (shared + huge_page - 1) / huge_page * huge_page;
  }
  Block make(std::size_t capacity) {
    static const std::int64_t page = sysconf(_SC_PAGESIZE);
    const bool is_huge = capacity >= huge_page;
    const auto bytes = static_cast<std::int64_t>(capacity), step = is_huge ? std::int64_t{huge_page} : page;
    std::int64_t start = file_ ? file_->place_for(bytes, step) : -1;
    if (start < 0) {  // no file yet, or it is full because of the system's limit on file lengths
      const auto next = std::make_shared<SharedFile>(++files_);
      start = next->place_for(bytes, step);
      if (start < 0) return {};
      file_ = next;
    }
    std::byte* const data = map_part(file_->descriptor(), start, capacity);
    if (data == nullptr) return {};
    return {data, capacity, file_, start, ++made_};
  }

  static void unmap(const Block& block) {
    unmark(block.data, block.capacity);
    block.file->empty(block.start, block.capacity);
    munmap(block.data, block.capacity);
    count_other_memory(0, -static_cast<std::int64_t>(block.capacity));
  }

  void before_fork() {
    mutex_.lock();
    if (live_.empty() || is_child_ || pipe2(copied_, O_CLOEXEC) != 0) copied_[0] = copied_[1] = -1;
  }
  void after_fork_in_parent() {
    if (copied_[0] >= 0) {
      close(copied_[1]);
      char end = 0;
      while (read(copied_[0], &end, 1) < 0 && errno == EINTR) {}
      close(copied_[0]);
    }
    mutex_.unlock();
  }
  void after_fork_in_child() {
    if (!is_child_) {
      for (const auto& [place, block] : live_) replace_by_copy(block);
      kept_.clear([](const auto& found) {
        unmark(found.block.data, found.block.capacity);
        munmap(found.block.data, found.block.capacity);
      });
      is_child_ = true;
    }
    for (const int end : copied_)
      if (end >= 0) close(end);
    mutex_.unlock();
  }
  static void replace_by_copy(const Block& block) {
    void* const copy =
        mmap(nullptr, block.capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy != MAP_FAILED) {
      // The copy is complete, including the tail that the caller did not request.
      unmark(block.data, block.capacity);
      std::memcpy(copy, block.data, block.capacity);
      // By the system call: UCX, below MPICH, wraps mremap and loses the place where the copy has to go.
      const long moved = syscall(SYS_mremap, copy, block.capacity, block.capacity,
                                 MREMAP_MAYMOVE | MREMAP_FIXED, block.data);
      if (moved != -1) return;
    }
    // There is no copy: the child must not write to its parent's block.
    mprotect(block.data, block.capacity, PROT_READ);
  }

  void drop_all() {
    kept_.clear([](const auto& found) { unmap(found.block); });
  }

  std::mutex mutex_;
  std::map<const std::byte*, Block> live_;
  FreeList<Block> kept_;
  std::shared_ptr<SharedFile> file_;  // the file from which the next block is taken
  std::int64_t live_bytes_ = 0, peak_bytes_ = 0, made_ = 0, files_ = 0;
  bool is_child_ = false;
  int copied_[2] = {-1, -1};  // ends of the pipe by which the parent waits for the child during fork()
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

using Name = std::pair<std::int64_t, std::int64_t>;  // process, serial of a block or a file

// Keeps peers' files open, so that later blocks can be mapped even when this process may open no more files.
class PeersFiles {
 public:
  PeersFiles() = default;
  PeersFiles(const PeersFiles&) = delete;
  PeersFiles& operator=(const PeersFiles&) = delete;
  ~PeersFiles() {
    for (const auto& [name, file] : open_) close(file);
  }
  int of(const HostAddress& address) {
    const Name name{address.process, address.file_serial};
    if (const auto known = open_.find(name); known != open_.end()) return known->second;
    const int file = open_file_of(address.process, address.file);
    if (file >= 0) open_[name] = file;
    return file;
  }

 private:
  std::map<Name, int> open_;
};
struct Mappings {
  PeersFiles files;
  std::map<Name, std::shared_ptr<Mapping>> known;
  std::deque<Name> order;  // the oldest first
};

struct Sharing {
  std::vector<int> host_of;  // by rank: the first rank of those that share memory with it; -1: none
  bool mine = false;         // this rank shares memory
  bool is_refused = false;   // refuse_host_memory()
};
Sharing& sharing() { return state<Sharing>(); }

// Whether every rank of a host can map every other's blocks.
bool all_can_share(MPI_Comm host, int rank, int host_size) {
  struct Card {
    HostAddress place;
    std::int64_t password;
  };
  // A recorded rank shares nothing: what arrives at it comes by messages.
  const Block block = tape_use() == TapeUse::none ? Blocks::instance().take(least_bytes) : Block();
  Card mine{{}, getpid() * std::int64_t{1'000'003} + rank};
  int works = block.data != nullptr ? 1 : 0;
  if (works == 1) {
    std::memcpy(block.data, &mine.password, sizeof mine.password);
    mine.place = Blocks::instance().address_of(block.data);
  }
  std::vector<Card> cards(host_size);
  check(mpi::Allgather(&mine, sizeof mine, MPI_BYTE, cards.data(), sizeof mine, MPI_BYTE, host),
        "MPI_Allgather", "the ranks of this host");
  for (const auto& card : cards) {
    if (works == 0 || !card.place.is_visible()) {
      works = 0;
    } else {
      try {
        const Buffer theirs = map(card.place);
        if (std::memcmp(theirs.data(), &card.password, sizeof card.password) != 0) works = 0;
      } catch (const SystemError&) {
        works = 0;
      }
    }
  }
  int all_work = 0;
  check(mpi::Allreduce(&works, &all_work, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce",
        "the ranks of this host");
  if (block.data != nullptr) Blocks::instance().give(block);
  return all_work == 1;
}

}  // namespace

Buffer allocate_on_host(std::size_t bytes) {
  if (bytes < least_bytes || !sharing().mine || sharing().is_refused) return Buffer::allocate(bytes);
  const Block block = Blocks::instance().take(bytes);
  if (block.data == nullptr) return Buffer::allocate(bytes);
  return Buffer::wrap(block.data, bytes, [block] { Blocks::instance().give(block); });
}

void refuse_host_memory(bool refuse) { sharing().is_refused = refuse; }

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
  const Name name{address.process, address.serial};
  auto& [files, mappings, order] = state<Mappings>();
  auto& known = mappings[name];
  if (known == nullptr) {
    known = std::make_shared<Mapping>();
    const int file = sharing().is_refused ? (errno = EMFILE, -1) : files.of(address);
    if (file >= 0)
      known->bytes = static_cast<std::size_t>(address.block_bytes),
      known->data = map_part(file, address.start, known->bytes);
    const int error = errno;
    if (known->data == nullptr) {
      mappings.erase(name);
      throw SystemError("cannot map " + std::to_string(address.block_bytes) + " bytes of process " +
                        std::to_string(address.process) + " on this host: " + std::strerror(error));
    }
    order.push_back(name);
  }
  const auto mapping = known;
  if (order.size() > most_mappings) {  // Buffers in use keep their mappings alive
    mappings.erase(order.front());
    order.pop_front();
  }
  return Buffer::borrow(mapping->data + address.offset,
                        mapping->bytes - static_cast<std::size_t>(address.offset), [mapping] {});
}

std::vector<int> first_ranks_of_hosts(bool works, MPI_Comm host, MPI_Comm world) {
  int rank = 0, size = 1;
  mpi::Comm_rank(world, &rank);
  mpi::Comm_size(world, &size);
  int first = rank;
  check(mpi::Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce", "the ranks of this host");
  if (!works) first = -1;
  std::vector<int> by_rank(size);
  check(mpi::Allgather(&first, 1, MPI_INT, by_rank.data(), 1, MPI_INT, world), "MPI_Allgather", "all ranks");
  return by_rank;
}

void find_sharing_ranks(MPI_Comm host, MPI_Comm world) {
  int rank = 0, host_size = 1;
  mpi::Comm_rank(world, &rank);
  mpi::Comm_size(host, &host_size);
  sharing().mine = host_size > 1 && all_can_share(host, rank, host_size);
  sharing().host_of = first_ranks_of_hosts(sharing().mine, host, world);
}

}  // namespace tessera::comm
