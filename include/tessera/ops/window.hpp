/// @file
/// Windows over arrays: pooling, transposed convolution, stencils of a function of neighbours.
///
/// **Sharding.** The result is split as the operand is, by any number of dims. **Communication.** Not
/// collective: every function here records. Of a split dim a rank receives the slices that its window
/// reaches over and nothing more. Gradients send the same halo back. Errors are raised on every rank when
/// recorded.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <tessera/array.hpp>

namespace tessera {

/// How a window moves; empty lists mean 1, or 0, for every dim.
struct WindowOptions {
  std::vector<int> strides = {};                  ///< steps of the window, at least 1
  std::vector<std::pair<int, int>> padding = {};  ///< (before, after) each dim, of what changes nothing
};
/// The reduction ("sum", "prod", "max" or "min") of each window of x, an extent for each dim
/// (jax.lax.reduce_window): (n - window + padding) / stride + 1 in each dim. Combines log2(window) shifted
/// arrays per dim. Equal elements share the gradient of an extremum. ShapeError for a window that does not
/// fit, ArgumentError for another kind, another number of entries and for entries that are not positive.
[[nodiscard]] Array reduce_window(const Operand& x, const std::string& kind, std::vector<int> window,
                                  WindowOptions options = {});

/// How conv_transpose undoes the moves of a conv; empty lists mean 1, or 0, for every spatial dim.
struct ConvTransposeOptions {
  std::vector<int> strides = {};                  ///< of the conv that it transposes
  std::vector<std::pair<int, int>> padding = {};  ///< of that conv: cut off here
  std::vector<int> output_padding = {};           ///< further elements behind, less than a stride
  int groups = 1;                                 ///< parts of the channels that are convolved apart
};
/// The transpose of conv, which spreads every element over a window: x (images, features, spatial...) and
/// kernel (features, channels / groups, taps...) give (images, channels, (n - 1) stride + taps -
/// padding...). ShapeError and ArgumentError as conv.
[[nodiscard]] Array conv_transpose(const Operand& x, const Operand& kernel,
                                   ConvTransposeOptions options = {});

/// Values outside of an array that a stencil reads over its ends.
enum class Boundary {
  wrap,       ///< the other end
  constant,   ///< a value
  edge,       ///< the last element
  reflect,    ///< mirrored without the edge
  symmetric,  ///< mirrored with the edge
};
/// result[i] = x[i + offset] along an axis, in x's shape. ShapeError for an offset that reaches further than
/// the array, but for `wrap` and `constant`.
[[nodiscard]] Array shifted(const Operand& x, int offset, int axis, Boundary boundary = Boundary::wrap,
                            double value = 0);

/// The neighbours of every element, as a stencil's function sees them: u() the array itself, u(1, 0) the
/// ones one step further along the first axis, and so on, an offset for each axis.
class Neighbours {
 public:
  /// For stencil.
  Neighbours(Operand x, Boundary boundary, double value)
      : x_(std::move(x)), boundary_(boundary), value_(value) {}
  /// The array shifted by an offset for each axis; none is the array itself.
  template <class... I> Array operator()(I... offsets) const { return at({static_cast<int>(offsets)...}); }
  /// The same with the offsets in a vector. ArgumentError for another number of them.
  Array at(std::vector<int> offsets) const;

 private:
  Operand x_;
  Boundary boundary_;
  double value_;
};
/// f(neighbours): an array made of x's neighbourhoods, on several split axes at once.
///
///     heat = stencil([](const Neighbours& u) { return u(1, 0) + u(-1, 0) + u(0, 1) + u(0, -1) - 4 * u(); },
///                    x)
template <class F> auto stencil(F f, const Operand& x, Boundary boundary = Boundary::wrap, double value = 0) {
  return f(Neighbours(x, boundary, value));
}

}  // namespace tessera
