// Checks of spellings that programs outside the project use, written here as they write them. Unevaluated: no
// function is called; the functions' results are tested in their own folders.
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
