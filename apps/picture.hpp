// Pictures of numbers for a terminal.
#pragma once
#include <tessera/tessera.hpp>

#include <cstdio>
#include <string>

namespace apps {

// A curve as bars, a matrix as shades: at most 72 columns and 24 lines. Collective; written once.
inline void picture(const std::string& title, const tessera::Array& x) {
  const std::string text = tessera::viz::terminal(x);
  if (tessera::is_main_process()) std::printf("%s\n%s\n", title.c_str(), text.c_str());
}

}  // namespace apps
