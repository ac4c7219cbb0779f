// Elementwise kernels on dense memory: one Map per operation, one function per dtype in it.
//
// Names and rules are NumPy's; behaviour that NumPy leaves to the machine is defined here:
//   integer x // 0 and x % 0 are 0; INT_MIN // -1 wraps to INT_MIN, INT_MIN % -1 is 0; a shift by the width
//   or more, or by a negative count, gives 0 (right_shift of a negative number gives -1); integer arithmetic
//   wraps; integer power with a negative exponent is 0 unless the base is 1 or -1; reciprocal of an integer
//   0 is 0.
// maximum, minimum and clip propagate NaN. float32 and float64 run on the widest vectors of the machine.
#pragma once
#include <tessera/dtype.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::kernels {

// in: one pointer per operand; out may be the same memory as an operand of the same item size.
using MapFn = void (*)(const void* const* in, void* out, std::int64_t n);

// One operation. Every operand has dtype `in`, with two exceptions: where(bool, T, T) is looked up by T,
// complex(re, im) by the real dtype.
class Map {
 public:
  explicit constexpr Map(const char* name) : name_(name) {}
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;

  const char* name() const { return name_; }
  // The function for a dtype, or nullptr. If there are two, TESSERA_MATH chooses.
  MapFn of(Dtype in) const;
  Dtype result(
      Dtype in) const;  // bool for comparisons and tests, the real dtype for abs/real/imag of complex ...
  int arity() const;    // operands; 0 when no dtype has a function

 private:
  friend class MapTable;
  const char* name_;
  int arity_ = 0;
  std::array<MapFn, dtype_count> functions_{}, precise_{};
  std::array<Dtype, dtype_count> results_{};
};

// A string that can be a template argument.
template <std::size_t size> struct MapName {
  char text[size];
  constexpr MapName(const char (&name)[size]) { std::copy_n(name, size, text); }
};
// The single object of that name: map<"exp">. The files of this folder register its functions
// (map_table.hpp).
template <MapName name> inline constinit Map map{name.text};

// All operations that have a function, sorted by name.
const std::vector<const Map*>& all_maps();

// Every pair of dtypes. float -> integer truncates and saturates, NaN gives 0; complex -> real takes the
// real part; x -> bool is x != 0; integer -> narrower integer wraps.
MapFn find_cast(Dtype from, Dtype to);

}  // namespace tessera::kernels
