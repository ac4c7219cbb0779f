/// @file
/// Windows over arrays: pooling, transposed convolution, stencils of a function of neighbours.
///
/// **Sharding.** The result is split as the operand is, in any number of dims. **Communication.** Not
/// collective: every function here records. Along a split dim a rank receives only the slices that its window
/// reaches. Gradients send the same halo back. Errors are raised on every rank when recorded.
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
  std::vector<std::pair<int, int>> padding = {};  ///< (before, after) each dim: neutral elements
};
/// The reduction ("sum", "prod", "max" or "min") of each window of x, whose extents are given per dim
/// (jax.lax.reduce_window): (n - window + padding) / stride + 1 in each dim. Combines log2(window) shifted
/// arrays per dim. Ties share the gradient of an extremum. ShapeError for a window that does not fit,
/// ArgumentError for another kind, another number of entries and for entries that are not positive.
[[nodiscard]] Array reduce_window(const Operand& x, const std::string& kind, std::vector<int> window,
                                  WindowOptions options = {});

/// Parameters of the conv that conv_transpose transposes; empty lists mean 1, or 0, for every spatial dim.
struct ConvTransposeOptions {
  std::vector<int> strides = {};                  ///< strides of the conv that is transposed
  std::vector<std::pair<int, int>> padding = {};  ///< padding of that conv: removed from the result
  std::vector<int> output_padding = {};           ///< additional elements at the end, fewer than a stride
  int groups = 1;                                 ///< groups of channels that are convolved separately
};
/// The transpose of conv, which spreads every element over a window: x (images, features, spatial...) and
/// kernel (features, channels / groups, taps...) give (images, channels, (n - 1) stride + taps - padding...).
/// ShapeError and ArgumentError as conv.
[[nodiscard]] Array conv_transpose(const Operand& x, const Operand& kernel,
                                   ConvTransposeOptions options = {});

/// The values that a stencil reads beyond the ends of an array.
enum class Boundary {
  wrap,       ///< the other end
  constant,   ///< a value
  edge,       ///< the last element
  reflect,    ///< mirrored without the edge
  symmetric,  ///< mirrored with the edge
};
/// result[i] = x[i + offset] along an axis, in x's shape. ShapeError for an offset longer than the array,
/// except with `wrap` and `constant`.
[[nodiscard]] Array shifted(const Operand& x, int offset, int axis, Boundary boundary = Boundary::wrap,
                            double value = 0);

/// The neighbours of every element, as passed to a stencil's function: u() is the array itself, u(1, 0) the
/// elements one step further along the first axis, and so on, with one offset per axis.
class Neighbours {
 public:
  /// For stencil.
  Neighbours(Operand x, Boundary boundary, double value)
      : x_(std::move(x)), boundary_(boundary), value_(value) {}
  /// The array shifted by one offset per axis; without offsets the array itself.
  template <class... I> Array operator()(I... offsets) const { return at({static_cast<int>(offsets)...}); }
  /// The same with the offsets in a vector. ArgumentError for another number of them.
  Array at(std::vector<int> offsets) const;

 private:
  Operand x_;
  Boundary boundary_;
  double value_;
};
/// f(neighbours): an array computed from x's neighbourhoods, on several split axes at once.
///
///     heat = stencil([](const Neighbours& u) { return u(1, 0) + u(-1, 0) + u(0, 1) + u(0, -1) - 4 * u(); },
///                    x)
template <class F> auto stencil(F f, const Operand& x, Boundary boundary = Boundary::wrap, double value = 0) {
  return f(Neighbours(x, boundary, value));
}

}  // namespace tessera
