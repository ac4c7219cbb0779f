// FFTW's wisdom of this machine, kept per user between runs: $XDG_CACHE_HOME/tessera/fftw-f64.wisdom (else
// ~/.cache/tessera/...). TESSERA_FFT_WISDOM names another folder; "off" keeps nothing.
#pragma once

namespace tessera::kernels {

template <class R> struct Wisdom {
  static void load();  // once; an unreadable file is ignored
  static void save();  // replaces the file atomically, so that ranks may save at the same time
};

}  // namespace tessera::kernels
