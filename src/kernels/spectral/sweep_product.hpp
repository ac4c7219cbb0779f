// A block of sweeps (band_chase.hpp) times columns: I - V T V^H, whose V is a parallelogram.
//
//        V            V T            The vector loop skips the zeros outside both shapes by vectors of rows.
//      | \ |         |....|
//      |..\|         |....|
//      |...|         |....|
//       \..|          \...|
//        \.|           \..|
#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "kernels/dense/panel_product.hpp"
#include "kernels/spectral/band_chase.hpp"

namespace tessera::kernels {

template <class T> class SweepProduct {
 public:
  // v and vt = V T (rows x columns each); column j of v is zero outside the rows j ... j + width - 1.
  void pack(std::int64_t rows, std::int64_t columns, std::int64_t width, const T* v, const T* vt);
  // z := (I - V T V^H) z (rows x columns)
  void apply(std::int64_t columns, T* z, std::int64_t ld) const;

 private:
  PackedPanel<T> v_adjoint_, vt_;  // of complex types
  std::int64_t rows_ = 0, columns_ = 0, width_ = 0;
  Buffer packed_;  // of real types
};

}  // namespace tessera::kernels
