#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/complex/multiply.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/elementwise/complex/multiply.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// (ar br - ai bi, ar bi + ai br), each product rounded, so that no vector length decides the bits.
template <class T> HWY_INLINE void MultiplySome(const T* a, const T* b, T* to) {
#if HWY_TARGET == HWY_SCALAR
  const T ar = a[0], ai = a[1], br = b[0], bi = b[1];
  to[0] = ar * br - ai * bi, to[1] = ar * bi + ai * br;
#else
  const hn::ScalableTag<T> d;
  const auto x = hn::LoadU(d, a), y = hn::LoadU(d, b);
  const auto by_real = hn::Mul(hn::DupEven(x), y), by_imaginary = hn::Mul(hn::DupOdd(x), hn::Reverse2(d, y));
  hn::StoreU(hn::OddEven(hn::Add(by_real, by_imaginary), hn::Sub(by_real, by_imaginary)), d, to);
#endif
}
template <class T> HWY_INLINE void ConjSome(const T* a, const T*, T* to) {
#if HWY_TARGET == HWY_SCALAR
  to[0] = a[0], to[1] = -a[1];
#else
  const hn::ScalableTag<T> d;
  const auto x = hn::LoadU(d, a);
  hn::StoreU(hn::OddEven(hn::Neg(x), x), d, to);
#endif
}

// Calls some(a, b, to) for one vector after the other; the last one's operands are copied. GCC 12 would fuse
// the products of a loop over the rest, whatever -ffp-contract says.
template <class T, void some(const T*, const T*, T*)>
void ByVectors(const T* a, const T* b, T* to, std::int64_t n) {
  constexpr auto most = std::max<std::size_t>(hn::MaxLanes(hn::ScalableTag<T>()), 2);
  const auto lanes = std::max<std::int64_t>(static_cast<std::int64_t>(hn::Lanes(hn::ScalableTag<T>())), 2);
  std::int64_t i = 0;
  for (; i + lanes <= 2 * n; i += lanes) some(a + i, b + i, to + i);
  if (i == 2 * n) return;
  HWY_ALIGN T last[3][most] = {};
  std::copy(a + i, a + 2 * n, last[0]);
  std::copy(b + i, b + 2 * n, last[1]);
  some(last[0], last[1], last[2]);
  std::copy_n(last[2], 2 * n - i, to + i);
}
template <class T> void Multiply(const void* const* in, void* out, std::int64_t n) {
  ByVectors<T, MultiplySome<T>>(static_cast<const T*>(in[0]), static_cast<const T*>(in[1]),
                                static_cast<T*>(out), n);
}
template <class T> void Conj(const void* const* in, void* out, std::int64_t n) {
  ByVectors<T, ConjSome<T>>(static_cast<const T*>(in[0]), static_cast<const T*>(in[0]), static_cast<T*>(out),
                            n);
}

void AddProducts(MapTable& table) {
  table.add(map<"multiply">, 2, complex64, Multiply<float>);
  table.add(map<"multiply">, 2, complex128, Multiply<double>);
  table.add(map<"conj">, 1, complex64, Conj<float>);
  table.add(map<"conj">, 1, complex128, Conj<double>);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(AddProducts);
void add_product_maps(MapTable& table) { HWY_DYNAMIC_DISPATCH(AddProducts)(table); }
}  // namespace tessera::kernels
#endif
