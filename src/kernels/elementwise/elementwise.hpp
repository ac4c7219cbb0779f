// Elementwise kernels on dense memory, found by name and dtype.
//
// Names and rules are NumPy's; where NumPy leaves the machine's behaviour visible, ours is defined:
//   integer x // 0 and x % 0 are 0; INT_MIN // -1 wraps to INT_MIN, INT_MIN % -1 is 0; a shift by the width
//     or more, or by a
//   negative count, gives 0 (right_shift of a negative number gives -1); integer arithmetic wraps;
//   integer power with a negative exponent is 0 unless the base is 1 or -1; reciprocal of an integer 0 is 0.
// maximum, minimum and clip propagate NaN. float32 and float64 run on the widest vectors that the machine
// has.
#pragma once
#include <tessera/dtype.hpp>

#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::kernels {

// in: one pointer per operand; out may be the same memory as an operand of the same item size.
using MapFn = void (*)(const void* const* in, void* out, std::int64_t n);

// nullptr when the op does not take that dtype. Every operand has dtype `in`, except: where(bool, T, T) is
// found by T; complex(re, im) by the real dtype.
MapFn find_map(std::string_view op, Dtype in);

// What the op gives for operands of dtype `in`: bool for comparisons and tests, the real dtype for
// abs/real/imag of complex ...
Dtype map_result(std::string_view op, Dtype in);
int map_arity(std::string_view op);         // operands; 0 for an unknown op
std::vector<std::string_view> map_names();  // every op, sorted

// Every pair of dtypes. float -> integer truncates and saturates, NaN gives 0; complex -> real takes the
// real part; x -> bool is x != 0; integer -> narrower integer wraps.
MapFn find_cast(Dtype from, Dtype to);

}  // namespace tessera::kernels
