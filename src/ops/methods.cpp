// Methods of Array: each records what the function of the same name records, at the user's line.
#include "ops/functions.hpp"

namespace tessera {

Array Array::sum(Axes axis, bool keepdims, Where where) const {
  return tessera::sum({*this, where}, std::move(axis), keepdims);
}
Array Array::prod(Axes axis, bool keepdims, Where where) const {
  return tessera::prod({*this, where}, std::move(axis), keepdims);
}
Array Array::mean(Axes axis, bool keepdims, Where where) const {
  return tessera::mean({*this, where}, std::move(axis), keepdims);
}
Array Array::var(Axes axis, bool keepdims, Where where) const {
  return tessera::var({*this, where}, std::move(axis), keepdims);
}
Array Array::std(Axes axis, bool keepdims, Where where) const {
  return tessera::std({*this, where}, std::move(axis), keepdims);
}
Array Array::max(Axes axis, bool keepdims, Where where) const {
  return tessera::max({*this, where}, std::move(axis), keepdims);
}
Array Array::min(Axes axis, bool keepdims, Where where) const {
  return tessera::min({*this, where}, std::move(axis), keepdims);
}
Array Array::all(Axes axis, bool keepdims, Where where) const {
  return tessera::all({*this, where}, std::move(axis), keepdims);
}
Array Array::any(Axes axis, bool keepdims, Where where) const {
  return tessera::any({*this, where}, std::move(axis), keepdims);
}
Array Array::argmax(Where where) const { return tessera::argmax({*this, where}); }
Array Array::argmax(int axis, bool keepdims, Where where) const {
  return tessera::argmax({*this, where}, axis, keepdims);
}
Array Array::argmin(Where where) const { return tessera::argmin({*this, where}); }
Array Array::argmin(int axis, bool keepdims, Where where) const {
  return tessera::argmin({*this, where}, axis, keepdims);
}
Array Array::cumsum(int axis, Where where) const { return tessera::cumsum({*this, where}, axis); }
Array Array::cumprod(int axis, Where where) const { return tessera::cumprod({*this, where}, axis); }
Array Array::reshape(Shape shape, Where where) const {
  return tessera::reshape({*this, where}, std::move(shape));
}
Array Array::ravel(Where where) const { return tessera::ravel(Operand(*this, where)); }
Array Array::transpose(Where where) const { return tessera::transpose(Operand(*this, where)); }
Array Array::transpose(std::vector<int> permutation, Where where) const {
  return tessera::transpose({*this, where}, std::move(permutation));
}
Array Array::swapaxes(int a, int b, Where where) const { return tessera::swapaxes({*this, where}, a, b); }
Array Array::squeeze(Axes axes, Where where) const {
  return tessera::squeeze({*this, where}, std::move(axes));
}
Array Array::astype(Dtype dtype, Where where) const { return tessera::astype({*this, where}, dtype); }
Array Array::dot(const Array& other, Where where) const {
  return tessera::dot({*this, where}, {other, where});
}
Array Array::round(Where where) const { return tessera::round(Operand(*this, where)); }
Array Array::real(Where where) const { return tessera::real(Operand(*this, where)); }
Array Array::imag(Where where) const { return tessera::imag(Operand(*this, where)); }
Array Array::conj(Where where) const { return tessera::conj(Operand(*this, where)); }
Array Array::copy(Where where) const { return tessera::copy(Operand(*this, where)); }

}  // namespace tessera
