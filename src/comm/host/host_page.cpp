#include "comm/host/host_page.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

namespace tessera::comm {

std::string HostPage::new_name() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  char name[64];
  std::snprintf(name, sizeof name, "/tessera-%010d-%010lld-%09ld", getpid(),
                static_cast<long long>(now.tv_sec), now.tv_nsec);
  return name;
}

void HostPage::map(const std::string& name, std::size_t bytes, int flags) {
  const int file = shm_open(name.c_str(), flags, 0600);
  if (file < 0) return;
  // posix_fallocate rather than ftruncate: on a full /dev/shm the first touch would be a SIGBUS.
  if ((flags & O_CREAT) == 0 || posix_fallocate(file, 0, static_cast<off_t>(bytes)) == 0) {
    void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (mapped != MAP_FAILED) data_ = mapped, bytes_ = bytes;
  } else {
    shm_unlink(name.c_str());
  }
  ::close(file);
}

void HostPage::create(const std::string& name, std::size_t bytes) {
  map(name, bytes, O_CREAT | O_EXCL | O_RDWR);
}
void HostPage::open(const std::string& name, std::size_t bytes) { map(name, bytes, O_RDWR); }
void HostPage::unlink(const std::string& name) { shm_unlink(name.c_str()); }

void HostPage::close() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
}

}  // namespace tessera::comm
