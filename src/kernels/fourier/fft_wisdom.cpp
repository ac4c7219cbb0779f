#include "kernels/fourier/fft_wisdom.hpp"

#include <fftw3.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>

#include "base/own_file.hpp"
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
    const auto text = path<R>().empty() ? std::nullopt : read_own_file(path<R>());
    if (!text) return false;
    if constexpr (std::is_same_v<R, double>)
      return fftw_import_wisdom_from_string(text->c_str()) != 0;
    else
      return fftwf_import_wisdom_from_string(text->c_str()) != 0;
  }();
  (void)once;
}

template <class R> void Wisdom<R>::save() {
  if (path<R>().empty()) return;
  std::unique_ptr<char, decltype(&std::free)> text(nullptr, &std::free);
  if constexpr (std::is_same_v<R, double>)
    text.reset(fftw_export_wisdom_to_string());
  else
    text.reset(fftwf_export_wisdom_to_string());
  if (text != nullptr) replace_own_file(path<R>(), text.get());  // without it the next run measures again
}

template struct Wisdom<double>;
template struct Wisdom<float>;

}  // namespace tessera::kernels
