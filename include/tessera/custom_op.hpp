/// @file
/// custom_op: a user-defined op with a kernel that works on one rank's blocks.
///
/// A rule of one sentence says which dims of operands and results correspond. Shapes, layouts and
/// communication follow from it, as for the library's own ops:
///
///     "i j, j k -> i k | sum j"   a matrix product: blocks of j give terms, which are added up over ranks
///     "B.. n -> B.. n | whole n"  along the last dim, which is never split; B.. is any number of dims
///     "~i ~j -> i j"              a stencil: the operand's blocks have a margin (halo) along both dims
///
/// A small letter is a dim; dims with the same letter have the same extent and are split together. A capital
/// letter with `..` is any number of dims, `1` a dim of extent 1, `(g c)` a dim whose index is that of g and
/// c together, `{..}` any number of operands like this one. After the bar: letters that are summed (`sum`;
/// also `prod`, `max`, `min`, `any`, `all`: the results of blocks are combined in this way) or `whole` (never
/// split).
///
/// **Sharding.** Determined by the rule. An operand with another layout is moved so that the fewest bytes are
/// sent; `explain` shows each move with the op's name, its rule and its bytes. Kernels get blocks in the
/// rule's layout; no operand is gathered, except along `whole` letters.
///
/// **Communication.** Not collective: calls record. When the op runs: moves of operands, margins from
/// neighbours, the combination of reduced letters, and one agreement at the end of the run, by which an error
/// in one rank's kernel is raised on all ranks.
///
/// **Kernels.** Called once on each rank for its blocks (once per example under vmap), in any order, possibly
/// again for gradients, and not at all if no result is needed: results must depend on the operands alone.
/// Kernels never get empty blocks: these have no results, or the neutral element of their reduction. bfloat16
/// and float16 arrive as float32 unless a typed kernel takes them.
///
/// **Errors.** When recorded, on every rank alike: ArgumentError for an invalid rule, ShapeError for operands
/// that do not fit it, DtypeError for element types that the kernel does not take. When computed, on every
/// rank of the op: UserError with the text of the kernel's exception and the rank (a LinAlgError keeps its
/// type).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/array.hpp>
#include <tessera/detail/blocks.hpp>
#include <tessera/ops/window.hpp>

namespace tessera {

/// One rank's block of an operand (const T) or of a result, as a kernel gets it: block(i, j) with local
/// indices from 0. Along a dim with a margin, indices range from -before to extent + after - 1. Indices are
/// not checked.
template <class T> class BlockView {
 public:
  /// For the library.
  explicit BlockView(const detail::BlockData& block)
      : block_(&block), data_(static_cast<T*>(block.data)), strides_(block.strides.data()) {}
  /// The element at index 0 in every dim. Operands without a margin and results are dense and row-major.
  T* data_handle() const { return data_; }
  const Shape& shape() const { return block_->shape; }            ///< extents, without margins
  std::size_t rank() const { return block_->shape.size(); }       ///< number of dims
  std::int64_t size() const { return block_->shape.elements(); }  ///< number of elements, without margins
  /// The length of one dim, without its margin.
  std::int64_t extent(std::size_t dim) const { return block_->shape[dim]; }
  /// Elements from one index of a dim to the next; 1 along the last dim.
  std::int64_t stride(std::size_t dim) const { return strides_[dim]; }
  /// The global index of the block's index 0.
  std::int64_t start(std::size_t dim) const { return block_->start[dim]; }
  const Shape& global_shape() const { return block_->global; }  ///< the shape of the global array
  /// One index for each dim.
  template <class... I> T& operator()(I... indices) const {
    std::int64_t place = 0;
    std::size_t dim = 0;
    ((place += static_cast<std::int64_t>(indices) * strides_[dim++]), ...);
    return data_[place];
  }

 private:
  const detail::BlockData* block_;
  T* data_;
  const std::int64_t* strides_;
};

/// All blocks of one call of a kernel, with their element types.
class Blocks {
 public:
  /// For the library.
  Blocks(std::vector<detail::BlockData> in, std::vector<detail::BlockData> out)
      : in_(std::move(in)), out_(std::move(out)) {}
  std::size_t inputs() const { return in_.size(); }                   ///< number of operands
  std::size_t outputs() const { return out_.size(); }                 ///< number of results
  Dtype in_dtype(std::size_t i) const { return in_[i].dtype; }        ///< the dtype of operand i
  Dtype out_dtype(std::size_t i = 0) const { return out_[i].dtype; }  ///< the dtype of result i
  /// The block of operand i. DtypeError unless T is its element type.
  template <class T> BlockView<const T> in(std::size_t i) const {
    return BlockView<const T>(detail::block_at(in_, i, dtype_of<T>(), "operand"));
  }
  /// The block of result i; the kernel must write all of it. DtypeError unless T is its element type.
  template <class T> BlockView<T> out(std::size_t i = 0) const {
    return BlockView<T>(detail::block_at(out_, i, dtype_of<T>(), "result"));
  }
  const std::vector<detail::BlockData>& all_in() const { return in_; }    ///< for the library
  const std::vector<detail::BlockData>& all_out() const { return out_; }  ///< for the library

 private:
  std::vector<detail::BlockData> in_, out_;
};

namespace detail {
template <class... P> template <class F> KernelFunction TypedKernel<P...>::wrap(F f) {
  static_assert(has_operands_first<P...>(),
                "a kernel takes its operands, BlockView<const T>, before its results, BlockView<T>");
  return [f = std::move(f)](const Blocks& blocks) mutable {
    [&]<std::size_t... n>(std::index_sequence<n...>) {
      constexpr auto inputs = (std::size_t{0} + ... + std::is_const_v<BlockElement<P>>);
      f([&] {
        using T = BlockElement<P>;
        if constexpr (std::is_const_v<T>)
          return blocks.in<std::remove_const_t<T>>(n);
        else
          return blocks.out<T>(n - inputs);
      }()...);
    }
    (std::index_sequence_for<P...>());
  };
}
}  // namespace detail

/// The kernel of a custom op: a function of typed blocks, `void(BlockView<const float> x, BlockView<float>
/// y)`, operands before results; or a function of `const Blocks&` that reads the dtypes itself.
class BlockKernel {
 public:
  BlockKernel() = default;
  /// From a lambda or a function.
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, BlockKernel>) BlockKernel(F f) {
    if constexpr (detail::KernelOf<F>::is_one) {
      function = detail::KernelOf<F>::wrap(std::move(f));
      signature = detail::KernelOf<F>::signature();
    } else {
      static_assert(std::is_invocable_v<F&, const Blocks&>,
                    "a kernel takes typed blocks, (BlockView<const float> x, BlockView<float> y), or const "
                    "Blocks&");
      function = std::move(f);
    }
  }
  detail::KernelFunction function;    ///< for the library
  detail::KernelSignature signature;  ///< for the library
};

/// The margin of operands along a dim that the rule marks with ~: the number of elements of neighbouring
/// blocks before and after a block. `boundary` defines the elements beyond the ends of the array. Without a
/// boundary the operand itself is longer than the result, by before + after elements ("valid" stencils), and
/// index 0 of a block is element `before` of the operand.
struct Halo {
  std::string dim = {};                               ///< the letter behind ~
  int before = 1;                                     ///< elements
  int after = 1;                                      ///< elements
  std::optional<Boundary> boundary = Boundary::wrap;  ///< beyond the ends of the array
  double value = 0;                                   ///< used by Boundary::constant
};

/// A rule of differentiation, made of ops, also other custom ops. For vjp: (operands, results, cotangents of
/// the results) -> a cotangent per operand, where an Array() stands for zeros. For jvp: (operands, results,
/// tangents of the operands) -> a tangent per result.
using DerivativeRule = std::function<std::vector<Array>(
    std::span<const Array> operands, std::span<const Array> results, std::span<const Array> directions)>;
/// The results for a whole batch, with the batch dim in front. dims[i] is the batch dim of operand i, -1 if
/// it has none.
using BatchingRule = std::function<std::vector<Array>(std::span<const Array> operands,
                                                      std::span<const int> dims, std::int64_t size)>;
/// Shapes and dtypes of the results from those of the operands.
using ResultRule = std::function<std::vector<ShapeDtype>(std::span<const ShapeDtype> operands)>;

/// The definition of a custom op.
struct CustomOpOptions {
  std::string name = {};        ///< shown in errors and explain
  std::string rule = {};        ///< the rule: "i j, j k -> i k | sum j"
  BlockKernel kernel = {};      ///< one rank's work
  std::vector<Halo> halo = {};  ///< one for each letter with ~
  /// The types of the results, needed if shapes do not follow from the rule, or dtypes follow neither from a
  /// typed kernel nor from promotion of the operands.
  ResultRule result = {};
  DerivativeRule vjp = {};  ///< none: no gradient
  DerivativeRule jvp = {};  ///< none: vjp, transposed
  /// None: the rule gets one more dim, split like any other, and the kernel is called for each example.
  BatchingRule batch = {};
};

/// A user-defined op: call it with arrays and numbers. A value, cheap to copy.
class CustomOp {
 public:
  /// ArgumentError for an invalid rule, an empty name, a kernel that does not fit the rule or a halo of a
  /// letter without ~.
  explicit CustomOp(CustomOpOptions options, std::source_location where = std::source_location::current());
  /// The result; ArgumentError if there are several.
  [[nodiscard]] Array operator()(const Operand& a) const;
  [[nodiscard]] Array operator()(const Operand& a, const Operand& b) const;
  [[nodiscard]] Array operator()(const Operand& a, const Operand& b, const Operand& c) const;
  [[nodiscard]] Array operator()(const Operand& a, const Operand& b, const Operand& c,
                                 const Operand& d) const;
  /// All results, of any number of operands.
  [[nodiscard]] std::vector<Array> results(
      const std::vector<Array>& operands, std::source_location where = std::source_location::current()) const;
  const std::string& name() const;  ///< the name given to custom_op
  const std::string& rule() const;  ///< the rule

  struct Definition;

 private:
  Array one(std::vector<Array> operands, std::source_location where) const;
  std::shared_ptr<const Definition> definition_;
};

/// CustomOp(options): a user-defined op. Not collective. Create it once and use it often: compiled plans
/// belong to the object and its copies.
///
///     const auto laplace = custom_op({.name = "laplace", .rule = "~i ~j -> i j",
///         .kernel = [](BlockView<const float> u, BlockView<float> y) {
///           for (int i = 0; i < y.extent(0); ++i)
///             for (int j = 0; j < y.extent(1); ++j)
///               y(i, j) = u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1) - 4 * u(i, j);
///         },
///         .halo = {{"i"}, {"j"}}});
///     Array y = laplace(x);
CustomOp custom_op(CustomOpOptions options, std::source_location where = std::source_location::current());

}  // namespace tessera
