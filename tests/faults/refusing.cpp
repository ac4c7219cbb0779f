// Preloaded into ranks: a system that refuses calls, as containers and hardened kernels do. TEST_REFUSES
// lists them: read (process_vm_readv), files (memfd_create), proc (/proc/PID/fd), code (executable memory).
// Refused calls are reported when the process ends.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr const char* kinds[] = {"read", "files", "proc", "code"};
std::atomic<bool> has_refused[4];

bool refuses(const char* what) {
  const char* list = std::getenv("TEST_REFUSES");
  if (list == nullptr || std::strstr(list, what) == nullptr) return false;
  for (int i = 0; i < 4; ++i)
    if (std::strcmp(kinds[i], what) == 0) has_refused[i] = true;
  return true;
}
template <class Function> Function next_of(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

struct Report {
  ~Report() {
    for (int i = 0; i < 4; ++i)
      if (has_refused[i]) std::fprintf(stderr, "refused: %s\n", kinds[i]);
  }
} report;

bool is_anothers_file(const char* path) {
  return std::strncmp(path, "/proc/", 6) == 0 && std::strstr(path, "/fd/") != nullptr;
}

}  // namespace

extern "C" {

ssize_t process_vm_readv(pid_t process, const iovec* here, unsigned long here_count, const iovec* there,
                         unsigned long there_count, unsigned long flags) {
  if (refuses("read")) return errno = EPERM, -1;
  return next_of<decltype(&process_vm_readv)>("process_vm_readv")(process, here, here_count, there,
                                                                  there_count, flags);
}

int memfd_create(const char* name, unsigned flags) noexcept {
  if (refuses("files")) return errno = EPERM, -1;
  return next_of<int (*)(const char*, unsigned)>("memfd_create")(name, flags);
}

int open(const char* path, int flags, ...) {
  va_list words;
  va_start(words, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(words, mode_t) : 0;
  va_end(words);
  if (is_anothers_file(path) && refuses("proc")) return errno = EACCES, -1;
  return next_of<int (*)(const char*, int, ...)>("open")(path, flags, mode);
}

int mprotect(void* start, size_t bytes, int protection) noexcept {
  if ((protection & PROT_EXEC) != 0 && refuses("code")) return errno = EACCES, -1;
  return next_of<int (*)(void*, size_t, int)>("mprotect")(start, bytes, protection);
}

}  // extern "C"
