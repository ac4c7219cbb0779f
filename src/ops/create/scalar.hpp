// Scalars: 0-d leaves whose value every rank knows. A weak one keeps its full-precision value until it meets
// an array.
#pragma once
#include <complex>
#include <optional>

#include "graph/node.hpp"

namespace tessera {

// A number as the user wrote it.
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

Array make_scalar(const ScalarValue&, Dtype, bool weak);
Array make_scalar(double, Dtype);
// The value of an array made by make_scalar.
std::optional<ScalarValue> scalar_value(const Array&);
// Whether it is the op of zeros().
bool fills_with_zero(const OpDef&, const Params&);
// The params of a 0-d array with the one element of a constant array; nullptr for ops that are no constant.
ParamsPtr params_of_one_element(const OpDef&, const Params&);
// The element of `dtype` that stands for the value, at `out`.
void write_scalar(const ScalarValue&, Dtype, void* out);

}  // namespace tessera
