// Loops over dense operands. The compiler vectorises them for the instruction set of the including file.
#if defined(TESSERA_KERNELS_MAP_LOOPS_INL_HPP) == defined(HWY_TARGET_TOGGLE)
#ifdef TESSERA_KERNELS_MAP_LOOPS_INL_HPP
#undef TESSERA_KERNELS_MAP_LOOPS_INL_HPP
#else
#define TESSERA_KERNELS_MAP_LOOPS_INL_HPP
#endif

#include <hwy/highway.h>

#include "base/independent.hpp"
#include "kernels/elementwise/map_table.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {

// An operand may be the same memory as the output, but not overlap it otherwise.
template <class F, class T, class R = T> void map1(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  R* r = static_cast<R*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = F::of(a[i]);
}

template <class F, class T, class R = T>
[[gnu::noinline]] void map2(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  R* r = static_cast<R*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = F::of(a[i], b[i]);
}

// The function with its operands exchanged: a > b is b < a.
template <MapFn map> void exchanged(const void* const* in, void* out, std::int64_t n) {
  const void* other_way[] = {in[1], in[0]};
  map(other_way, out, n);
}

template <class F, class T> void map3(const void* const* in, void* out, std::int64_t n) {
  const T* a = static_cast<const T*>(in[0]);
  const T* b = static_cast<const T*>(in[1]);
  const T* c = static_cast<const T*>(in[2]);
  T* r = static_cast<T*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = F::of(a[i], b[i], c[i]);
}

template <class T> void map_where(const void* const* in, void* out, std::int64_t n) {
  const std::uint8_t* condition = static_cast<const std::uint8_t*>(in[0]);
  const T* a = static_cast<const T*>(in[1]);
  const T* b = static_cast<const T*>(in[2]);
  T* r = static_cast<T*>(out);
  TESSERA_INDEPENDENT
  for (std::int64_t i = 0; i < n; ++i) r[i] = condition[i] ? a[i] : b[i];
}

template <class T> void map_constant_bool(std::uint8_t value, void* out, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) static_cast<std::uint8_t*>(out)[i] = value;
}

// Registers one function per element type.
template <class F, class... T> void add1(MapTable& table, Map& map) {
  (table.add(map, 1, dtype_of<T>(), map1<F, T>), ...);
}
template <class F, class... T> void add2(MapTable& table, Map& map) {
  (table.add(map, 2, dtype_of<T>(), map2<F, T>), ...);
}
template <class F, class... T> void add3(MapTable& table, Map& map) {
  (table.add(map, 3, dtype_of<T>(), map3<F, T>), ...);
}
template <class F, class... T> void test1(MapTable& table, Map& map) {
  (table.add(map, 1, dtype_of<T>(), map1<F, T, std::uint8_t>, bool_), ...);
}
template <class F, class... T> void test2(MapTable& table, Map& map) {
  (table.add(map, 2, dtype_of<T>(), map2<F, T, std::uint8_t>, bool_), ...);
}
// Registers a comparison, and the comparison with exchanged operands (less and greater).
template <class F, class... T> void test2_both_ways(MapTable& table, Map& map, Map& mirrored) {
  test2<F, T...>(table, map);
  (table.add(mirrored, 2, dtype_of<T>(), exchanged<map2<F, T, std::uint8_t>>, bool_), ...);
}

struct Equal {
  template <class T> static std::uint8_t of(T a, T b) { return a == b; }
};
struct NotEqual {
  template <class T> static std::uint8_t of(T a, T b) { return a != b; }
};
struct Less {
  template <class T> static std::uint8_t of(T a, T b) { return a < b; }
};
struct LessEqual {
  template <class T> static std::uint8_t of(T a, T b) { return a <= b; }
};
struct LogicalAnd {
  template <class T> static std::uint8_t of(T a, T b) { return (a != T(0)) & (b != T(0)); }
};
struct LogicalOr {
  template <class T> static std::uint8_t of(T a, T b) { return (a != T(0)) | (b != T(0)); }
};
struct LogicalXor {
  template <class T> static std::uint8_t of(T a, T b) { return (a != T(0)) ^ (b != T(0)); }
};
struct LogicalNot {
  template <class T> static std::uint8_t of(T a) { return a == T(0); }
};

}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();
#endif
