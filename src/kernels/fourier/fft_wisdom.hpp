// FFTW's wisdom of this machine, kept per user between runs: $XDG_CACHE_HOME/tessera/fftw-f64.wisdom (else
// ~/.cache/tessera/...). TESSERA_FFT_WISDOM names another folder; "off" keeps nothing.
#pragma once

namespace tessera::kernels {

template <class R> struct Wisdom {
  static void load();  // once; what cannot be read is ignored
  static void save();  // replaces the file in one step, so that ranks that save at the same time do no harm
};

}  // namespace tessera::kernels
