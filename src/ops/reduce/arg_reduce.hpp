// The params of argmax and argmin.
#pragma once
namespace tessera {

struct ArgParams {
  static constexpr int all_dims = -1;
  int dim;  // all_dims: the row-major position in the array
  bool max;
  template <class V> void fields(V&& visit) const {
    visit("dim", dim);
    visit("max", max);
  }
};

}  // namespace tessera
