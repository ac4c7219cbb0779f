// File system calls that fail, are short or are interrupted. Preloaded into the ranks of a job:
//
//   mpirun -x LD_PRELOAD=libfailing_files.so -x TEST_FILES_UNDER=/tmp/x -n 3 program
//
// Only files below TEST_FILES_UNDER count. The program chooses the failure by
// test_files_arm("KIND:N:WHAT:RANK:TIMES"): the N-th call of the kind from then on ("any": of all kinds;
// open, read, write, fsync, resize, rename) on the rank, and the TIMES - 1 calls after it (1 by default).
// WHAT: EIO, ESTALE, ENOSPC, EACCES, EMFILE; EINTR (a retry succeeds); short (half of the bytes); flip (one
// bit of the data read). TEST_FILES_FAIL arms from the start.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "environment.hpp"

namespace {

const std::vector<std::pair<std::string, int>> errors = {{"EIO", EIO},       {"ESTALE", ESTALE},
                                                         {"ENOSPC", ENOSPC}, {"EACCES", EACCES},
                                                         {"EMFILE", EMFILE}, {"EINTR", EINTR}};

struct Plan {
  const std::string under = setting("TEST_FILES_UNDER");
  std::string kind, what;
  long nth = 0, times = 1, calls = 0;
  int rank = 0, error = 0;
  std::set<int> open_ones;
  std::mutex mutex;

  Plan() { arm(setting("TEST_FILES_FAIL")); }
  void arm(const std::string& spec) {
    const std::scoped_lock lock(mutex);
    calls = nth = error = 0, times = 1;
    std::vector<std::string> words{""};
    for (const char c : spec)
      if (c == ':')
        words.emplace_back();
      else
        words.back() += c;
    if (words.size() < 3) return;
    kind = words[0], nth = std::atol(words[1].c_str()), what = words[2];
    if (words.size() > 3) rank = std::atoi(words[3].c_str());
    if (words.size() > 4) times = std::atol(words[4].c_str());
    for (const auto& [name, number] : errors)
      if (name == what) error = number;
  }
  bool counts(const char* path) const {
    return !under.empty() && std::strncmp(path, under.c_str(), under.size()) == 0;
  }
  bool counts(int descriptor) const { return open_ones.count(descriptor) != 0; }
  // Whether this call is to fail.
  template <class File> bool strikes(const char* name, File file) {
    const std::scoped_lock lock(mutex);
    if (!counts(file) || (kind != "any" && kind != name)) return false;
    ++calls;
    return (rank < 0 || rank == own_rank()) && calls >= nth && calls < nth + times && nth > 0;
  }
  void note(int descriptor, const char* path) {
    const std::scoped_lock lock(mutex);
    if (descriptor >= 0 && counts(path)) open_ones.insert(descriptor);
  }
  void forget(int descriptor) {
    const std::scoped_lock lock(mutex);
    open_ones.erase(descriptor);
  }
  int fail() const {
    errno = error;
    return -1;
  }
};
Plan& plan() {
  static Plan* const one = new Plan;
  return *one;
}

template <class F> F* real(const char* name) { return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name)); }

using Open = int(const char*, int, ...);
int open_as(const char* name, const char* path, int flags, mode_t mode) {
  if (plan().strikes("open", path) && plan().error != 0) return plan().fail();
  const int descriptor = real<Open>(name)(path, flags, mode);
  plan().note(descriptor, path);
  return descriptor;
}
mode_t mode_in(int flags, va_list more) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0;
}

using Read = ssize_t(int, void*, std::size_t, off_t);
ssize_t pread_as(const char* name, int descriptor, void* out, std::size_t bytes, off_t at) {
  const bool strikes = plan().strikes("read", descriptor);
  if (strikes && plan().error != 0) return plan().fail();
  if (strikes && plan().what == "short") bytes = (bytes + 1) / 2;
  const auto got = real<Read>(name)(descriptor, out, bytes, at);
  if (strikes && plan().what == "flip" && got > 0) static_cast<unsigned char*>(out)[got / 2] ^= 1;
  return got;
}
using Write = ssize_t(int, const void*, std::size_t, off_t);
ssize_t pwrite_as(const char* name, int descriptor, const void* in, std::size_t bytes, off_t at) {
  const bool strikes = plan().strikes("write", descriptor);
  if (strikes && plan().error != 0) return plan().fail();
  if (strikes && plan().what == "short") bytes = (bytes + 1) / 2;
  return real<Write>(name)(descriptor, in, bytes, at);
}

}  // namespace

extern "C" {

void test_files_arm(const char* spec) { plan().arm(spec); }
long test_files_calls() {
  const std::scoped_lock lock(plan().mutex);
  return plan().calls;
}

int open(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_in(flags, more);
  va_end(more);
  return open_as("open", path, flags, mode);
}
int open64(const char* path, int flags, ...) {
  va_list more;
  va_start(more, flags);
  const mode_t mode = mode_in(flags, more);
  va_end(more);
  return open_as("open64", path, flags, mode);
}
int close(int descriptor) {
  plan().forget(descriptor);
  return real<int(int)>("close")(descriptor);
}

ssize_t pread(int descriptor, void* out, std::size_t bytes, off_t at) {
  return pread_as("pread", descriptor, out, bytes, at);
}
ssize_t pread64(int descriptor, void* out, std::size_t bytes, off64_t at) {
  return pread_as("pread64", descriptor, out, bytes, at);
}
ssize_t read(int descriptor, void* out, std::size_t bytes) {
  const bool strikes = plan().strikes("read", descriptor);
  if (strikes && plan().error != 0) return plan().fail();
  if (strikes && plan().what == "short") bytes = (bytes + 1) / 2;
  return real<ssize_t(int, void*, std::size_t)>("read")(descriptor, out, bytes);
}
ssize_t pwrite(int descriptor, const void* in, std::size_t bytes, off_t at) {
  return pwrite_as("pwrite", descriptor, in, bytes, at);
}
ssize_t pwrite64(int descriptor, const void* in, std::size_t bytes, off64_t at) {
  return pwrite_as("pwrite64", descriptor, in, bytes, at);
}
ssize_t write(int descriptor, const void* in, std::size_t bytes) {
  const bool strikes = plan().strikes("write", descriptor);
  if (strikes && plan().error != 0) return plan().fail();
  if (strikes && plan().what == "short") bytes = (bytes + 1) / 2;
  return real<ssize_t(int, const void*, std::size_t)>("write")(descriptor, in, bytes);
}
int fsync(int descriptor) {
  if (plan().strikes("fsync", descriptor) && plan().error != 0) return plan().fail();
  return real<int(int)>("fsync")(descriptor);
}
int ftruncate(int descriptor, off_t bytes) {
  if (plan().strikes("resize", descriptor) && plan().error != 0) return plan().fail();
  return real<int(int, off_t)>("ftruncate")(descriptor, bytes);
}
int ftruncate64(int descriptor, off64_t bytes) {
  if (plan().strikes("resize", descriptor) && plan().error != 0) return plan().fail();
  return real<int(int, off64_t)>("ftruncate64")(descriptor, bytes);
}
int rename(const char* from, const char* to) {
  if (plan().strikes("rename", from) && plan().error != 0) return plan().fail();
  return real<int(const char*, const char*)>("rename")(from, to);
}

}  // extern "C"
