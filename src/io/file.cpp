#include "io/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include <tessera/error.hpp>

#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "io/many.hpp"
#include "types/other_memory.hpp"

namespace tessera::io {
namespace {

std::string mend_of(int error) {
  switch (error) {
    case ENOENT: return "check the path; relative paths start at the directory that the job runs in";
    case EACCES:
    case EPERM:
    case EROFS: return "check the permissions of the file and of its directory";
    case EISDIR: return "give the path of a file";
    case ENOSPC:
    case EDQUOT: return "free some space or write elsewhere";
    case ENAMETOOLONG: return "use a shorter path";
    case EMFILE: return "raise the limit of open files (ulimit -n)";
    default: return "check the file system";
  }
}

}  // namespace

void raise_access(int error, const std::string& text) {
  const std::string words = text + ": " + std::strerror(error) + "; " + mend_of(error);
  switch (error) {
    case ENOENT:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG: throw IoError(words);
    default: throw AccessError(words);
  }
}

File::File(std::string call, std::string path, Mode mode) : call_(std::move(call)), path_(std::move(path)) {
  const bool is_read = mode == Mode::read || mode == Mode::read_if_there;
  const int flags = is_read               ? O_RDONLY | O_NONBLOCK
                    : mode == Mode::write ? O_RDWR
                                          : O_RDWR | O_CREAT | O_EXCL;
  descriptor_ = uninterrupted([&] { return ::open(path_.c_str(), flags | O_CLOEXEC, 0666); });
  if (mode == Mode::read_if_there && descriptor_ < 0 && (errno == ENOENT || errno == ENOTDIR)) return;
  if (descriptor_ < 0)
    fail_errno(is_read               ? "cannot be opened"
               : mode == Mode::write ? "cannot be opened for writing"
                                     : "cannot be created");
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) fail_errno("cannot be examined");
  if (S_ISREG(facts.st_mode)) return;
  ::close(std::exchange(descriptor_, -1));
  fail(S_ISDIR(facts.st_mode) ? "is a directory" : "is not a regular file (a pipe or a device)",
       "give the path of a file");
}
File::File(std::string call, std::string path, std::string content)
    : call_(std::move(call)), path_(std::move(path)), content_(std::move(content)) {}
File::File(File&& other) noexcept
    : call_(std::move(other.call_)),
      path_(std::move(other.path_)),
      content_(std::move(other.content_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}
File::~File() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void File::fail(const std::string& facts, const std::string& mend) const {
  throw IoError(call_ + ": " + in_quotes(path_) + " " + facts + "; " + mend);
}
void File::fail_errno(const char* what) const {
  const int error = errno;
  raise_access(error, call_ + ": " + in_quotes(path_) + " " + what);
}

std::int64_t File::bytes() const {
  if (descriptor_ < 0) return static_cast<std::int64_t>(content_.size());
  struct stat facts {};
  if (::fstat(descriptor_, &facts) != 0) fail_errno("cannot be examined");
  return facts.st_size;
}

std::int64_t File::copy_of_content(void* out, std::int64_t bytes, std::int64_t offset) const {
  const auto all = static_cast<std::int64_t>(content_.size());
  const auto count = std::clamp<std::int64_t>(all - offset, 0, bytes);
  if (count > 0) std::memcpy(out, content_.data() + offset, static_cast<std::size_t>(count));
  return count;
}

void File::read(void* out, std::int64_t bytes, std::int64_t offset) const {
  auto* to = static_cast<std::byte*>(out);
  for (std::int64_t done = 0; done < bytes;) {
    const auto wanted = std::min(bytes - done, std::int64_t{1} << 30);
    const auto got = descriptor_ < 0 ? copy_of_content(to + done, wanted, offset + done)
                                     : uninterrupted([&]() -> std::int64_t {
                                         return ::pread(descriptor_, to + done, wanted, offset + done);
                                       });
    if (got < 0) fail_errno("cannot be read");
    if (got == 0)
      fail("ends after " + std::to_string(offset + done) + " bytes, where " + std::to_string(offset + bytes) +
               " are needed",
           "it was cut short: copy or write it again");
    done += got;
  }
}

namespace {

// Pages that a file loses while they are mapped would end the process (SIGBUS) when any of its threads reads
// them. The handler puts zeros in their place and marks the mapping; its reader asks for the mark.
struct Mapping {
  std::atomic<std::byte*> start = nullptr;
  std::atomic<std::size_t> length = 0;
  std::atomic<bool> has_lost_bytes = false;
};
struct Mappings {
  std::array<Mapping, 64> all;
  std::mutex guard;
  struct sigaction before {};
  std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
};
Mappings& mappings() {
  static auto* const kept = new Mappings;  // never destroyed: a handler may run at any time
  return *kept;
}
Mapping* mapping_at(const void* address) {
  for (Mapping& mapping : mappings().all) {
    const std::byte* const start = mapping.start;
    if (start != nullptr && !std::less<const void*>()(address, start) &&
        std::less<const void*>()(address, start + mapping.length))
      return &mapping;
  }
  return nullptr;
}

void on_lost_page(int signal, siginfo_t* info, void*) {
  Mapping* const mapping = info->si_code > 0 ? mapping_at(info->si_addr) : nullptr;
  const int error = errno;
  if (mapping != nullptr) {
    std::byte* const start = mapping->start;
    const auto place = static_cast<std::size_t>(static_cast<std::byte*>(info->si_addr) - start);
    const std::size_t from = place - place % mappings().page;
    mapping->has_lost_bytes = true;
    if (::mmap(start + from, mapping->length - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
               0) != MAP_FAILED) {
      errno = error;
      return;
    }
  }
  sigaction(SIGBUS, &mappings().before, nullptr);  // another page: who handled it before comes next
  if (info->si_code <= 0) std::raise(signal);
}

// Nothing if all places are taken.
Mapping* guarded(void* start, std::size_t length) {
  const std::scoped_lock lock(mappings().guard);
  struct sigaction present {};
  sigaction(SIGBUS, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) == 0 || present.sa_sigaction != on_lost_page) {
    mappings().before = present;
    struct sigaction action {};
    action.sa_sigaction = on_lost_page;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, nullptr);
  }
  for (Mapping& mapping : mappings().all)
    if (mapping.start == nullptr) {
      mapping.length = length, mapping.has_lost_bytes = false;
      mapping.start = static_cast<std::byte*>(start);
      return &mapping;
    }
  return nullptr;
}

}  // namespace

bool has_lost_bytes(const Buffer& mapped) {
  const Mapping* const mapping = mapping_at(mapped.data());
  return mapping != nullptr && mapping->has_lost_bytes;
}

Buffer File::mapped(std::int64_t bytes, std::int64_t offset) const {
  constexpr std::int64_t worth_it = 256 << 10;
  if (descriptor_ < 0 || bytes < worth_it || offset + bytes > this->bytes()) return {};
  const std::int64_t page = ::sysconf(_SC_PAGESIZE), before = offset % page;
  const auto length = static_cast<std::size_t>(before + bytes);
  void* const start = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor_, offset - before);
  if (start == MAP_FAILED) return {};
  Mapping* const mapping = guarded(start, length);
  if (mapping == nullptr) {
    ::munmap(start, length);
    return {};
  }
  Buffer buffer = Buffer::borrow(static_cast<std::byte*>(start) + before, static_cast<std::size_t>(bytes),
                                 [start, length, bytes, mapping] {
                                   mapping->start = nullptr;
                                   ::munmap(start, length);
                                   count_other_memory(-bytes, 0);
                                 });
  count_other_memory(bytes, 0);
  std::vector<unsigned char> cached((length + static_cast<std::size_t>(page) - 1) /
                                    static_cast<std::size_t>(page));
  const bool is_cached = ::mincore(start, length, cached.data()) == 0 &&
                         std::ranges::all_of(cached, [](unsigned char c) { return (c & 1) != 0; });
  return is_cached ? buffer : Buffer();
}

void File::write(const void* in, std::int64_t bytes, std::int64_t offset) {
  const auto* from = static_cast<const std::byte*>(in);
  const auto most = is_faulty("half_written") ? (bytes + 1) / 2 : std::int64_t{1} << 30;
  for (std::int64_t done = 0; done < bytes;) {
    const auto put = uninterrupted(
        [&] { return ::pwrite(descriptor_, from + done, std::min(bytes - done, most), offset + done); });
    if (put <= 0) fail_errno("cannot be written");
    fault_point("half_written");
    done += put;
  }
}

void File::resize(std::int64_t bytes) {
  if (uninterrupted([&] { return ::ftruncate(descriptor_, bytes); }) != 0)
    fail_errno(("cannot be made " + format_bytes(bytes) + " long").c_str());
}
void File::sync() {
  if (uninterrupted([&] { return ::fsync(descriptor_); }) != 0) fail_errno("cannot be brought to the disk");
}

void File::begin_sync() { ::sync_file_range(descriptor_, 0, 0, SYNC_FILE_RANGE_WRITE); }

std::vector<std::string> names_in(const std::string& call, const std::string& folder) {
  std::vector<std::string> names;
  DIR* const open = ::opendir(folder.c_str());
  if (open == nullptr && errno == ENOENT) return names;
  errno = open == nullptr ? errno : 0;
  while (const dirent* const entry = open == nullptr ? nullptr : ::readdir(open)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
    errno = 0;
  }
  const int error = errno;
  if (open != nullptr) ::closedir(open);
  if (error != 0) raise_access(error, call + ": the directory " + in_quotes(folder) + " cannot be read");
  std::sort(names.begin(), names.end());
  return names;
}

std::string read_text(const std::string& call, const std::string& path) {
  const File file(call, path, File::Mode::read);
  std::string text(file.bytes(), '\0');
  file.read(text.data(), static_cast<std::int64_t>(text.size()), 0);
  return text;
}

void sync_folder_of(const std::string& call, const std::string& path) {
  const auto slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
  const int descriptor =
      uninterrupted([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
  if (descriptor < 0)
    raise_access(errno, call + ": the directory " + in_quotes(folder) + " cannot be opened");
  const int failed = uninterrupted([&] { return ::fsync(descriptor); });
  const int error = errno;
  ::close(descriptor);
  // Some file systems cannot sync a directory and return EINVAL: nothing more can be done then.
  if (failed != 0 && error != EINVAL)
    raise_access(error, call + ": the directory " + in_quotes(folder) + " cannot be brought to the disk");
}

void sync_folders(const std::string& call, const std::vector<std::string>& folders) {
  side_by_side(std::ssize(folders), sync_threads,
               [&](std::int64_t i) { sync_folder_of(call, folders[static_cast<std::size_t>(i)] + "/x"); });
}

void remove_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr std::size_t batch = 4096;
  std::error_code none;
  std::vector<std::string> files;
  const auto remove = [&] {
    side_by_side(std::ssize(files), sync_threads,
                 [&](std::int64_t i) { ::unlink(files[static_cast<std::size_t>(i)].c_str()); });
    files.clear();
  };
  using Files = fs::recursive_directory_iterator;
  const bool is_link = fs::is_symlink(folder, none);  // what it leads to stays
  for (auto at = is_link ? Files() : Files(folder, none); at != Files(); at.increment(none)) {
    if (at->symlink_status(none).type() != fs::file_type::directory) files.push_back(at->path().string());
    if (files.size() == batch) remove();
  }
  remove();
  fs::remove_all(folder, none);  // the folders
}

namespace {

// The contiguous runs of a box in the file: trailing dims that the box covers completely belong to one run.
//
//   file (4, 6), box [1:3, 2:5]      . . . . . .
//   -> 2 runs of 3 elements          . . # # # .
//                                    . . # # # .
struct Runs {
  std::int64_t bytes = 0;  // of one run
  std::int64_t count = 0;
  Box outer;                                // the dims in front of the run's
  std::vector<std::int64_t> outer_strides;  // bytes
  std::int64_t first = 0;                   // file offset of outer index 0
};

Runs runs_of(const DenseInFile& file, const Box& box) {
  Runs runs;
  if (is_empty(box)) return runs;
  const auto strides = row_major_strides(file.shape);
  std::size_t d = box.size();
  runs.bytes = file.itemsize;
  runs.first = file.offset;
  bool whole = true;
  while (d > 0 && whole) {
    --d;
    runs.bytes *= box[d].size();
    runs.first += box[d].start * strides[d] * file.itemsize;
    whole = box[d].size() == file.shape[d];
  }
  runs.count = 1;
  for (std::size_t o = 0; o < d; ++o) {
    runs.outer.push_back(box[o]);
    runs.outer_strides.push_back(strides[o] * file.itemsize);
    runs.count *= box[o].size();
  }
  return runs;
}

// Calls visit(file offset) for each run, in the order of the file.
template <class Visit> void for_each_run(const Runs& runs, Visit&& visit) {
  if (runs.count == 0) return;
  std::vector<std::int64_t> at;
  for (const auto& range : runs.outer) at.push_back(range.start);
  for (std::int64_t n = 0; n < runs.count; ++n) {
    std::int64_t offset = runs.first;
    for (std::size_t d = 0; d < at.size(); ++d) offset += at[d] * runs.outer_strides[d];
    visit(offset);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < runs.outer[d].stop) break;
      at[d] = runs.outer[d].start;
    }
  }
}

constexpr std::int64_t window_bytes = 256 << 10;  // stays in the cache until its runs are copied
constexpr std::int64_t short_run_bytes = 32
                                         << 10;  // shorter runs are read together, with the gaps between them

// Long runs, and those with long gaps between them.
bool is_read_run_by_run(const Runs& runs) {
  return runs.bytes >= short_run_bytes || runs.count <= 1 ||
         runs.outer_strides.back() - runs.bytes > short_run_bytes;
}

}  // namespace

std::int64_t window_bytes_of(const DenseInFile& file, const Box& box) {
  const Runs runs = runs_of(file, box);
  if (is_read_run_by_run(runs)) return 0;
  std::int64_t span = runs.bytes;
  for (std::size_t d = 0; d < runs.outer.size(); ++d)
    span += (runs.outer[d].size() - 1) * runs.outer_strides[d];
  return std::min(span, window_bytes + short_run_bytes);
}
bool is_one_run(const DenseInFile& file, const Box& box) { return runs_of(file, box).count <= 1; }
std::int64_t run_bytes(const DenseInFile& file, const Box& box) { return runs_of(file, box).bytes; }

void read_box(const File& file, const DenseInFile& dense, const Box& box, std::byte* out) {
  const Runs runs = runs_of(dense, box);
  if (is_read_run_by_run(runs)) {
    for_each_run(runs, [&](std::int64_t offset) {
      file.read(out, runs.bytes, offset);
      out += runs.bytes;
    });
    return;
  }
  // Collects runs until they span a window or the gap is too large to be read along.
  std::vector<std::int64_t> pending;
  const std::unique_ptr<std::byte[]> window(
      new std::byte[static_cast<std::size_t>(window_bytes_of(dense, box))]);
  const auto flush = [&] {
    if (pending.empty()) return;
    file.read(window.get(), pending.back() + runs.bytes - pending.front(), pending.front());
    for (const auto offset : pending) {
      std::memcpy(out, window.get() + (offset - pending.front()), runs.bytes);
      out += runs.bytes;
    }
    pending.clear();
  };
  for_each_run(runs, [&](std::int64_t offset) {
    if (!pending.empty() &&
        (offset - pending.front() > window_bytes || offset - pending.back() - runs.bytes > short_run_bytes))
      flush();
    pending.push_back(offset);
  });
  flush();
}

Buffer mapped_box(const File& file, const DenseInFile& dense, const Box& box) {
  const Runs runs = runs_of(dense, box);
  return runs.count == 1 ? file.mapped(runs.bytes, runs.first) : Buffer();
}

void write_box(File& file, const DenseInFile& dense, const Box& box, const std::byte* in) {
  const Runs runs = runs_of(dense, box);
  for_each_run(runs, [&](std::int64_t offset) {
    file.write(in, runs.bytes, offset);
    in += runs.bytes;
  });
}

}  // namespace tessera::io
