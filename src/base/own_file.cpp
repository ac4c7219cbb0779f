#include "base/own_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace tessera {
namespace {

bool is_ours(int descriptor) {
  struct stat facts {};
  return ::fstat(descriptor, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_uid == ::geteuid() &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool write_all(int descriptor, const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const auto put = ::write(descriptor, text.data() + done, text.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    done += static_cast<std::size_t>(put);
  }
  return true;
}

}  // namespace

std::optional<std::string> read_own_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return std::nullopt;
  std::optional<std::string> text;
  if (is_ours(descriptor)) {
    text.emplace();
    char piece[4096];
    ssize_t got = 0;
    while ((got = ::read(descriptor, piece, sizeof piece)) > 0)
      text->append(piece, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  return text;
}

bool replace_own_file(const std::string& path, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::string draft = path + ".XXXXXX";
  const int descriptor = ::mkostemp(draft.data(), O_CLOEXEC);
  if (descriptor < 0) return false;
  const bool written = write_all(descriptor, text);
  ::close(descriptor);
  if (written && std::rename(draft.c_str(), path.c_str()) == 0) return true;
  std::remove(draft.c_str());
  return false;
}

}  // namespace tessera
