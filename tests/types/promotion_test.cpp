// The promotion lattice as documented by JAX: every pair of dtypes, and every dtype with a Python-like number
// of each kind.
#include "types/promotion.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace tessera::test {
namespace {

// Rows and columns: bool, signed and unsigned integers, floats, complex, the two 16-bit floats, then the
// plain numbers 1, 1.0 and 1i.
const char* const jax_gives[] = {
    "pred s8 s16 s32 s64 u8 u16 u32 u64 f32 f64 c64 c128 bf16 f16 s32 f32 c64",    // bool
    "s8 s8 s16 s32 s64 s16 s32 s64 f32 f32 f64 c64 c128 bf16 f16 s8 f32 c64",      // int8
    "s16 s16 s16 s32 s64 s16 s32 s64 f32 f32 f64 c64 c128 bf16 f16 s16 f32 c64",   // int16
    "s32 s32 s32 s32 s64 s32 s32 s64 f32 f32 f64 c64 c128 bf16 f16 s32 f32 c64",   // int32
    "s64 s64 s64 s64 s64 s64 s64 s64 f32 f32 f64 c64 c128 bf16 f16 s64 f32 c64",   // int64
    "u8 s16 s16 s32 s64 u8 u16 u32 u64 f32 f64 c64 c128 bf16 f16 u8 f32 c64",      // uint8
    "u16 s32 s32 s32 s64 u16 u16 u32 u64 f32 f64 c64 c128 bf16 f16 u16 f32 c64",   // uint16
    "u32 s64 s64 s64 s64 u32 u32 u32 u64 f32 f64 c64 c128 bf16 f16 u32 f32 c64",   // uint32
    "u64 f32 f32 f32 f32 u64 u64 u64 u64 f32 f64 c64 c128 bf16 f16 u64 f32 c64",   // uint64
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128 f32 f32 f32 f32 c64",    // float32
    "f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 f64 c128 c128 f64 f64 f64 f64 c128",  // float64
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128 c64 c64 c64 c64 c64",   // complex64
    "c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128 c128",
    "bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 bf16 f32 f64 c64 c128 bf16 f32 bf16 bf16 c64",  // bfloat16
    "f16 f16 f16 f16 f16 f16 f16 f16 f16 f32 f64 c64 c128 f32 f16 f16 f16 c64",              // float16
    "s32 s8 s16 s32 s64 u8 u16 u32 u64 f32 f64 c64 c128 bf16 f16 s32 f32 c64",               // 1
    "f32 f32 f32 f32 f32 f32 f32 f32 f32 f32 f64 c64 c128 bf16 f16 f32 f32 c64",             // 1.0
    "c64 c64 c64 c64 c64 c64 c64 c64 c64 c64 c128 c64 c128 c64 c64 c64 c64 c64",             // 1i
};

WeakDtype operand(int n) {
  const Dtype numbers[] = {int32, float32, complex64};
  return n < dtype_count ? WeakDtype{Dtype{n}, false} : WeakDtype{numbers[n - dtype_count], true};
}
std::string text(WeakDtype d) { return short_name(d.dtype) + (d.weak ? " (weak)" : ""); }

TEST(Promotion, of_any_two_is_what_jax_gives) {
  for (int a = 0; a < dtype_count + 3; ++a) {
    std::istringstream row(jax_gives[a]);
    std::string expected;
    for (int b = 0; row >> expected; ++b) {
      EXPECT_EQ(short_name(promote(operand(a), operand(b)).dtype), expected)
          << text(operand(a)) << " with " << text(operand(b));
      const WeakDtype both[] = {operand(a), operand(b)};
      EXPECT_EQ(short_name(promote(both).dtype), expected)
          << text(operand(a)) << " with " << text(operand(b));
    }
  }
}

TEST(Promotion, a_number_that_meets_only_bool_stays_weak) {
  const WeakDtype counted = promote(WeakDtype{bool_, false}, WeakDtype{int32, true});
  EXPECT_EQ(text(counted), "s32 (weak)");
  EXPECT_EQ(text(promote(counted, {int8, false})), "s8");
  EXPECT_EQ(text(promote(WeakDtype{int16, false}, WeakDtype{int32, true})), "s16");
}

}  // namespace
}  // namespace tessera::test
