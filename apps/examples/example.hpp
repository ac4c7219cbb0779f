// Pictures for a terminal and checks of results, shared by the examples.
#pragma once
#include <tessera/tessera.hpp>

#include <stdexcept>
#include <string>

#include "picture.hpp"

namespace example {

using namespace tessera;

// Prints "name: off by 1.2e-15 (at most 1e-12)"; throws, which ends the job, if it is more.
inline void expect_close(const std::string& name, const Array& got, const Array& wanted, double tolerance) {
  const double off = item<double>(max(abs(astype(got, float64) - astype(wanted, float64))));
  debug::print("{}: off by {} (at most {})", name, off, tolerance);
  if (!(off <= tolerance)) throw std::runtime_error(name + " is off by " + std::to_string(off));
}

using apps::picture;

inline Mesh all_devices() { return make_mesh({device_count()}, {"x"}); }

}  // namespace example
