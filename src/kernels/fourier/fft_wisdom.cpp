#include "kernels/fourier/fft_wisdom.hpp"

#include <fftw3.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <type_traits>

#include "base/settings.hpp"

namespace tessera::kernels {
namespace {

std::string wisdom_file(const char* precision) {
  const auto text = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  std::string folder = settings().fft_wisdom;
  if (folder == "off") return "";
  if (folder.empty()) {
    const std::string cache = text("XDG_CACHE_HOME"), home = text("HOME");
    if (!cache.empty())
      folder = cache + "/tessera";
    else if (!home.empty())
      folder = home + "/.cache/tessera";
    else
      return "";
  }
  return folder + "/fftw-" + precision + ".wisdom";
}

template <class R> const std::string& path() {
  static const std::string file = wisdom_file(std::is_same_v<R, double> ? "f64" : "f32");
  return file;
}

}  // namespace

template <class R> void Wisdom<R>::load() {
  static const bool once = [] {
    if (path<R>().empty()) return false;
    if constexpr (std::is_same_v<R, double>)
      return fftw_import_wisdom_from_filename(path<R>().c_str()) != 0;
    else
      return fftwf_import_wisdom_from_filename(path<R>().c_str()) != 0;
  }();
  (void)once;
}

template <class R> void Wisdom<R>::save() {
  if (path<R>().empty()) return;
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path<R>()).parent_path(), error);
  const std::string draft = path<R>() + "." + std::to_string(getpid());
  int written = 0;
  if constexpr (std::is_same_v<R, double>)
    written = fftw_export_wisdom_to_filename(draft.c_str());
  else
    written = fftwf_export_wisdom_to_filename(draft.c_str());
  if (written == 0 || std::rename(draft.c_str(), path<R>().c_str()) != 0) std::remove(draft.c_str());
}

template struct Wisdom<double>;
template struct Wisdom<float>;

}  // namespace tessera::kernels
