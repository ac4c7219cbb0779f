// Programs outside the project are compiled against the public API: each declaration is written here as they
// write it. Unevaluated, so a spelling is checked whether or not its function has been reached yet; what the
// functions compute is tested in their rooms.
#pragma once
#include <tessera/tessera.hpp>

#include <type_traits>

#define GIVES(type, ...) \
  static_assert(std::is_same_v<std::remove_cvref_t<decltype(__VA_ARGS__)>, type>, #__VA_ARGS__)
#define COMPILES(...) \
  static_assert(      \
      requires { __VA_ARGS__; }, #__VA_ARGS__)

namespace tessera::test {
extern const Array x, y, z;
extern const Mesh mesh;
extern const Sharding sharding;
extern const Shape shape;
extern const Device device;
extern const HostArray host;
extern std::ostream& out;
}  // namespace tessera::test
