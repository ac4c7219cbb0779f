// The blocks of a custom op's call without their types, and what its kernel's signature says about them.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/detail/never.hpp>
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

namespace tessera {

template <class T> class BlockView;
class Blocks;

namespace detail {

struct BlockData {
  void* data = nullptr;  // address of the element at index 0 in every dim
  Dtype dtype;
  Shape shape;                        // without margins
  std::vector<std::int64_t> strides;  // in elements
  std::vector<std::int64_t> start;    // global index of the element at index 0
  Shape global;
  // Elements before and after it along each dim that can be read.
  std::vector<std::pair<std::int64_t, std::int64_t>> margins;
};

// DtypeError unless T is the element type, InternalError unless there is such an operand.
const BlockData& block_at(const std::vector<BlockData>&, std::size_t i, Dtype wanted, const char* what);

// Dtypes by the parameters of a kernel; not known: it asks when it runs.
struct KernelSignature {
  bool is_known = false;
  std::vector<Dtype> in, out;
};

template <class P> struct BlockParameter : std::false_type {};
template <class T> struct BlockParameter<BlockView<T>> : std::true_type { using Element = T; };
template <class P> using BareParameter = std::remove_cvref_t<P>;

template <class P> using BlockElement = typename BlockParameter<BareParameter<P>>::Element;

template <class... P> KernelSignature signature_of_parameters() {
  KernelSignature signature{true, {}, {}};
  const auto add = [&]<class T>(std::type_identity<T>) {
    (std::is_const_v<T> ? signature.in : signature.out).push_back(dtype_of<std::remove_const_t<T>>());
  };
  (add(std::type_identity<BlockElement<P>>()), ...);
  return signature;
}
template <class... P> constexpr bool has_operands_first() {
  bool in_order = true, is_behind = false;
  ((in_order = in_order && !(is_behind && std::is_const_v<BlockElement<P>>),
    is_behind = is_behind || !std::is_const_v<BlockElement<P>>),
   ...);
  return in_order && is_behind;
}

using KernelFunction = std::function<void(const Blocks&)>;

template <class... P> struct TypedKernel {
  static constexpr bool is_one = sizeof...(P) > 0 && (BlockParameter<BareParameter<P>>::value && ...);
  template <class F> static KernelFunction wrap(F f);
  static KernelSignature signature() { return signature_of_parameters<P...>(); }
};
struct UntypedKernel {
  static constexpr bool is_one = false;
};
template <class Call> struct KernelOfCall : UntypedKernel {};
template <class R, class C, bool n, class... P> struct KernelOfCall<R (C::*)(P...) const noexcept(n)>
    : TypedKernel<P...> {};
template <class R, class C, bool n, class... P> struct KernelOfCall<R (C::*)(P...) noexcept(n)>
    : TypedKernel<P...> {};
template <class R, bool n, class... P> struct KernelOfCall<R (*)(P...) noexcept(n)> : TypedKernel<P...> {};

template <class F> auto kernel_of_function() {
  if constexpr (requires { &F::operator(); })
    return std::type_identity<KernelOfCall<decltype(&F::operator())>>();
  else
    return std::type_identity<KernelOfCall<F>>();
}
template <class F> using KernelOf = typename decltype(kernel_of_function<F>())::type;

}  // namespace detail
}  // namespace tessera
