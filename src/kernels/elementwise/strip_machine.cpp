#include "kernels/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/strip_machine.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <limits>
#include <type_traits>
#include <unordered_map>

#include "kernels/elementwise/strip_machine.hpp"

HWY_BEFORE_NAMESPACE();
namespace tessera::kernels {
namespace HWY_NAMESPACE {
namespace {

#if HWY_TARGET == HWY_AVX3
constexpr int vector_bytes = 64;
#elif HWY_TARGET == HWY_AVX2
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif
constexpr std::size_t strip_bytes = vectors_in_strip * vector_bytes;

template <class T> struct Vectors {
  typedef T V __attribute__((vector_size(vector_bytes)));
  typedef T Loose
      __attribute__((vector_size(vector_bytes), aligned(1), may_alias));  // in memory, of any alignment
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef Bits I __attribute__((vector_size(vector_bytes)));
};
template <class T> using V = typename Vectors<T>::V;
using Code = const StripInstruction*;
// Eight is the number of vectors that the calling convention passes in registers.
template <class T>
using Instruction = void (*)(Code, std::size_t, V<T>, V<T>, V<T>, V<T>, V<T>, V<T>, V<T>, V<T>);

// Loads stay in ascending order, the pattern that hardware prefetchers recognise.
template <class T> HWY_INLINE V<T> load(const std::byte* at) {
  asm volatile("" ::: "memory");
  return *reinterpret_cast<const typename Vectors<T>::Loose*>(at);
}
template <class T> HWY_INLINE void store(const std::byte* at, V<T> v) {
  *reinterpret_cast<typename Vectors<T>::Loose*>(const_cast<std::byte*>(at)) = v;
}
template <class T> HWY_INLINE V<T> same(T value) { return value - V<T>{}; }  // -0 stays -0

constexpr bool is_max(StripOp op) { return op == StripOp::maximum || op == StripOp::fmax; }
// The result of fmax and fmin is the other operand where one is NaN; maximum and minimum return the NaN.
constexpr bool prefers_numbers(StripOp op) { return op == StripOp::fmax || op == StripOp::fmin; }

// Operations that are one instruction on x86, while compare and select take four. They return the second
// operand for NaN and for two zeros.
template <StripOp op, class T> HWY_INLINE V<T> native(V<T> a, V<T> b) {
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::FixedTag<T, vector_bytes / sizeof(T)> d;
  const auto va = hn::LoadU(d, reinterpret_cast<const T*>(&a)),
             vb = hn::LoadU(d, reinterpret_cast<const T*>(&b));
  V<T> result;
  hn::StoreU(is_max(op) ? hn::Max(va, vb) : hn::Min(va, vb), d, reinterpret_cast<T*>(&result));
  return result;
#else
  return (is_max(op) ? a > b : a < b) ? a : b;
#endif
}

template <StripOp op, class T> HWY_INLINE V<T> apply(V<T> a, V<T> b) {
  if constexpr (op == StripOp::add)
    return a + b;
  else if constexpr (op == StripOp::subtract)
    return a - b;
  else if constexpr (op == StripOp::multiply)
    return a * b;
  else if constexpr (op == StripOp::divide)
    return a / b;
  else if constexpr (prefers_numbers(op))
    return ((is_max(op) ? a > b : a < b) | (b != b)) ? a : b;
  else
    return ((is_max(op) ? a > b : a < b) | (a != a)) ? a : b;
}
template <StripOp op, class T> HWY_INLINE V<T> apply(V<T> a) {
  using I = typename Vectors<T>::I;
  using Bits = typename Vectors<T>::Bits;
  constexpr Bits sign = std::numeric_limits<Bits>::min();
  if constexpr (op == StripOp::negative)
    return (V<T>)((I)a ^ sign);
  else if constexpr (op == StripOp::abs)
    return (V<T>)((I)a & ~sign);
  else if constexpr (op == StripOp::square)
    return a * a;
  else if constexpr (op == StripOp::reciprocal)
    return T(1) / a;
  else
    return native<StripOp::maximum, T>(V<T>{}, a) + T(0);  // a NaN stays; -0 + 0 is 0
}

#define TESSERA_STRIP V<T> a0, V<T> a1, V<T> a2, V<T> a3, V<T> a4, V<T> a5, V<T> a6, V<T> a7
#define TESSERA_NEXT \
  return reinterpret_cast<Instruction<T>>(code[1].run)(code + 1, offset, a0, a1, a2, a3, a4, a5, a6, a7)
#define TESSERA_EACH(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)

template <class T, StripOp op, bool reversed> void with_memory(Code code, std::size_t offset, TESSERA_STRIP) {
  const std::byte* b = code->address + offset;
#define TESSERA_DO(k)                                                 \
  a##k = reversed ? apply<op, T>(load<T>(b + k * vector_bytes), a##k) \
                  : apply<op, T>(a##k, load<T>(b + k * vector_bytes));
  TESSERA_EACH(TESSERA_DO)
#undef TESSERA_DO
  TESSERA_NEXT;
}
template <class T, StripOp op, bool reversed> void with_scalar(Code code, std::size_t offset, TESSERA_STRIP) {
  const T value = *reinterpret_cast<const T*>(code->address);
  const V<T> b = same<T>(value);
  // With a number other than 0 as one operand, the machine's instruction agrees with the definition above,
  // whichever operand was written first.
  if constexpr (op >= StripOp::maximum && op <= StripOp::fmin) {
    if (value < T(0) || value > T(0)) {
#define TESSERA_DO(k) a##k = prefers_numbers(op) ? native<op, T>(a##k, b) : native<op, T>(b, a##k);
      TESSERA_EACH(TESSERA_DO)
#undef TESSERA_DO
      TESSERA_NEXT;
    }
  }
#define TESSERA_DO(k) a##k = reversed ? apply<op, T>(b, a##k) : apply<op, T>(a##k, b);
  TESSERA_EACH(TESSERA_DO)
#undef TESSERA_DO
  TESSERA_NEXT;
}
template <class T, StripOp op> void unary(Code code, std::size_t offset, TESSERA_STRIP) {
#define TESSERA_DO(k) a##k = apply<op, T>(a##k);
  TESSERA_EACH(TESSERA_DO)
#undef TESSERA_DO
  TESSERA_NEXT;
}
template <class T> void load_strip(Code code, std::size_t offset, TESSERA_STRIP) {
  const std::byte* b = code->address + offset;
#define TESSERA_DO(k) a##k = load<T>(b + k * vector_bytes);
  TESSERA_EACH(TESSERA_DO)
#undef TESSERA_DO
  TESSERA_NEXT;
}
template <class T> void load_scalar(Code code, std::size_t offset, TESSERA_STRIP) {
  a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = same<T>(*reinterpret_cast<const T*>(code->address));
  TESSERA_NEXT;
}
template <class T> void store_strip(Code code, std::size_t offset, TESSERA_STRIP) {
  const std::byte* b = code->address + offset;
#define TESSERA_DO(k) store<T>(b + k * vector_bytes, a##k);
  TESSERA_EACH(TESSERA_DO)
#undef TESSERA_DO
  TESSERA_NEXT;
}
template <class T> void prefetch_strip(Code code, std::size_t offset, TESSERA_STRIP) {
  for (std::size_t line = 0; line < strip_bytes; line += 64)
    __builtin_prefetch(code->address + offset + line);
  TESSERA_NEXT;
}
template <class T> void end_strip(Code, std::size_t, V<T>, V<T>, V<T>, V<T>, V<T>, V<T>, V<T>, V<T>) {}

using Untyped = void (*)();
template <class T, StripOp op> Untyped binary_function(StripOperand operand, bool reversed) {
  const Instruction<T> functions[2][2] = {{with_memory<T, op, false>, with_memory<T, op, true>},
                                          {with_scalar<T, op, false>, with_scalar<T, op, true>}};
  return reinterpret_cast<Untyped>(functions[operand == StripOperand::scalar][reversed]);
}
template <class T, StripOp op> Untyped unary_function() {
  return reinterpret_cast<Untyped>(Instruction<T>(unary<T, op>));
}

template <class T> Untyped function_of(StripOp op, StripOperand operand, bool reversed) {
  switch (op) {
    case StripOp::load:
      return reinterpret_cast<Untyped>(operand == StripOperand::scalar ? Instruction<T>(load_scalar<T>)
                                                                       : Instruction<T>(load_strip<T>));
    case StripOp::store: return reinterpret_cast<Untyped>(Instruction<T>(store_strip<T>));
    case StripOp::prefetch: return reinterpret_cast<Untyped>(Instruction<T>(prefetch_strip<T>));
    case StripOp::end: return reinterpret_cast<Untyped>(Instruction<T>(end_strip<T>));
    case StripOp::add: return binary_function<T, StripOp::add>(operand, reversed);
    case StripOp::subtract: return binary_function<T, StripOp::subtract>(operand, reversed);
    case StripOp::multiply: return binary_function<T, StripOp::multiply>(operand, reversed);
    case StripOp::divide: return binary_function<T, StripOp::divide>(operand, reversed);
    case StripOp::maximum: return binary_function<T, StripOp::maximum>(operand, reversed);
    case StripOp::minimum: return binary_function<T, StripOp::minimum>(operand, reversed);
    case StripOp::fmax: return binary_function<T, StripOp::fmax>(operand, reversed);
    case StripOp::fmin: return binary_function<T, StripOp::fmin>(operand, reversed);
    case StripOp::negative: return unary_function<T, StripOp::negative>();
    case StripOp::abs: return unary_function<T, StripOp::abs>();
    case StripOp::square: return unary_function<T, StripOp::square>();
    case StripOp::reciprocal: return unary_function<T, StripOp::reciprocal>();
    case StripOp::relu: return unary_function<T, StripOp::relu>();
    case StripOp::none: break;
  }
  return nullptr;
}

Untyped StripFunction(bool wide, StripOp op, StripOperand operand, bool reversed) {
  return wide ? function_of<double>(op, operand, reversed) : function_of<float>(op, operand, reversed);
}
std::int64_t StripBytes() { return strip_bytes; }
// The accumulator starts undefined: code begins with a load. Both types use the same registers.
void RunStrips(Code code, std::int64_t strips) {
  const V<float> any = {};
  for (std::int64_t strip = 0; strip < strips; ++strip)
    reinterpret_cast<Instruction<float>>(code->run)(code, static_cast<std::size_t>(strip) * strip_bytes, any,
                                                    any, any, any, any, any, any, any);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tessera::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tessera::kernels {
HWY_EXPORT(StripFunction);
HWY_EXPORT(StripBytes);
HWY_EXPORT(RunStrips);

StripOp strip_op_of(MapFn fn, Dtype dtype) {
  static const std::unordered_map<MapFn, StripOp> known = [] {
    const std::pair<const Map*, StripOp> maps[] = {{&map<"add">, StripOp::add},
                                                   {&map<"subtract">, StripOp::subtract},
                                                   {&map<"multiply">, StripOp::multiply},
                                                   {&map<"divide">, StripOp::divide},
                                                   {&map<"maximum">, StripOp::maximum},
                                                   {&map<"minimum">, StripOp::minimum},
                                                   {&map<"fmax">, StripOp::fmax},
                                                   {&map<"fmin">, StripOp::fmin},
                                                   {&map<"negative">, StripOp::negative},
                                                   {&map<"abs">, StripOp::abs},
                                                   {&map<"square">, StripOp::square},
                                                   {&map<"relu">, StripOp::relu},
                                                   {&map<"reciprocal">, StripOp::reciprocal}};
    std::unordered_map<MapFn, StripOp> filling;
    for (const auto& [known_map, op] : maps)
      for (const Dtype d : {float32, float64}) filling[known_map->of(d)] = op;
    return filling;
  }();
  if (!is_floating(dtype)) return StripOp::none;
  const auto found = known.find(fn);
  return found == known.end() ? StripOp::none : found->second;
}

std::int64_t strip_elements(Dtype dtype) {
  return HWY_DYNAMIC_DISPATCH(StripBytes)() / static_cast<std::int64_t>(itemsize(dtype));
}
void (*strip_function(Dtype dtype, StripOp op, StripOperand operand, bool reversed))() {
  return HWY_DYNAMIC_DISPATCH(StripFunction)(dtype == float64, op, operand, reversed);
}
void run_strips(const StripInstruction* code, std::int64_t strips) {
  HWY_DYNAMIC_DISPATCH(RunStrips)(code, strips);
}
}  // namespace tessera::kernels
#endif
