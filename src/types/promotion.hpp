// JAX's type promotion lattice, with weak types for scalars.
#pragma once
#include <tessera/dtype.hpp>

#include <span>

namespace tessera {

struct WeakDtype {
  Dtype dtype;
  bool weak = false;
};

// bool < ints < floats < complex; u8+s8 -> s16, u32+s32 -> s64, u64+signed -> f32 (weak), int+float -> the
// float, bf16+f16 -> f32. A weak operand only raises the kind: s32 array + 2.5 -> f32, f64 array + 1 -> f64;
// with bool it stays weak: bool array + 1 -> s32 (weak).
WeakDtype promote(std::span<const WeakDtype>);
WeakDtype promote(WeakDtype, WeakDtype);
// Integers and bool become float32.
Dtype to_inexact(Dtype);

}  // namespace tessera
