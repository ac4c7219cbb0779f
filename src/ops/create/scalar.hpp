// Scalars: 0-d leaves whose value every rank holds. A weak one keeps full precision until it is combined
// with an array.
#pragma once
#include <complex>
#include <optional>

#include "graph/node.hpp"

namespace tessera {

// A number as the user wrote it. Of an integer `floating` has the value too if that is known: C++'s unsigned
// numbers past int64 arrive as negative ones, and have 0 there.
struct ScalarValue {
  std::complex<double> floating;
  std::int64_t integer = 0;
  bool is_integer = false;
  template <class V> void fields(V&& visit) const {
    visit("value", floating);
    visit("integer", integer);
    visit("is_integer", is_integer);
  }
};

// The numbers by their bits, as those of params are.
inline std::uint64_t field_hash(const ScalarValue& s) {
  return mix(mix(field_hash(s.floating), field_hash(s.integer)), field_hash(s.is_integer));
}
inline bool same_field(const ScalarValue& a, const ScalarValue& b) {
  return same_field(a.floating, b.floating) && a.integer == b.integer && a.is_integer == b.is_integer;
}
inline std::string field_text(const ScalarValue& s) {
  return s.is_integer ? field_text(s.integer) : field_text(s.floating);
}

Array make_scalar(const ScalarValue&, Dtype, bool weak);
Array make_scalar(double, Dtype);
// A weak integer of which both are known: Python's, which may lie past int64.
Array make_plain_integer(std::uint64_t bits, bool is_negative, std::source_location where);
// Whether the integer lies below (-1) or above (1) all values of an integer dtype; 0 if it fits.
int side_of(const ScalarValue&, Dtype);
// The value of an array made by make_scalar.
std::optional<ScalarValue> scalar_value(const Array&);
// Whether the op is that of zeros().
bool fills_with_zero(const OpDef&, const Params&);
// The params of a 0-d array with the element of a constant array; nullptr for other ops.
ParamsPtr params_of_one_element(const OpDef&, const Params&);
// Writes the value as an element of `dtype` to `out`.
void write_scalar(const ScalarValue&, Dtype, void* out);

}  // namespace tessera
