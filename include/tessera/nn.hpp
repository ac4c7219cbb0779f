/// @file
/// Neural networks: layers, initializers, activations, losses, and batches of data. Optimizers:
/// tessera/optim.hpp.
///
/// A layer is a tree (tree.hpp): a plain struct of arrays, called on data. A network is any tree of layers
/// together with a function of it; jit, grad, vmap, device_put and checkpoints accept it directly. Formulas
/// and defaults are those of JAX (jax.nn), Flax and Optax, draws those of jax.nn.initializers for the same
/// key.
///
/// **Sharding.** Nothing here depends on layouts: layers consist of ops that follow their operands, so a
/// network is data-parallel if its batch is split, and tensor-parallel if its weights are (split_in_pairs).
/// Weights are uncommitted until they are placed, and draws send nothing.
///
/// **Communication.** Not collective: every function here records. The traffic of a call is that of its ops:
/// see matmul, mean and take.
///
/// **Errors**, on every rank when recorded: ShapeError for extents that do not match, DtypeError for labels
/// that are not integers, ArgumentError for invalid numbers.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/mesh.hpp>
#include <tessera/ops.hpp>
#include <tessera/random.hpp>
#include <tessera/sharding.hpp>
#include <tessera/tree.hpp>

namespace tessera::nn {

using Where = std::source_location;  ///< the line of the call

/// @name Activations
/// Elementwise functions of real numbers; relu, gelu, silu, sigmoid, softplus, softmax and log_softmax are
/// those of tessera/ops.hpp.
/// @{

using tessera::gelu;
using tessera::log_softmax;
using tessera::relu;
using tessera::sigmoid;
using tessera::silu;
using tessera::softmax;
using tessera::softplus;

/// x for positive x, else slope x.
Array leaky_relu(const Operand& x, double negative_slope = 0.01);
/// x for positive x, else alpha (exp(x) - 1).
Array elu(const Operand& x, double alpha = 1);
/// 1.0507 elu(x, 1.6733): keeps mean 0 and variance 1 (Klambauer et al. 2017).
Array selu(const Operand& x);
/// clip(x, 0, 6).
Array relu6(const Operand& x);
/// x Phi(x) with the exact normal distribution function; gelu is its approximation by tanh.
Array exact_gelu(const Operand& x);
/// x tanh(softplus(x)).
Array mish(const Operand& x);
/// log(sigmoid(x)), accurate also for very negative x.
Array log_sigmoid(const Operand& x);
/// x / (1 + |x|).
Array soft_sign(const Operand& x);
/// clip(x, -1, 1).
Array hard_tanh(const Operand& x);
/// relu6(x + 3) / 6.
Array hard_sigmoid(const Operand& x);
/// The first half of an axis times the sigmoid of the second (Dauphin et al. 2017). ShapeError for an odd
/// extent.
Array glu(const Operand& x, int axis = -1);
/// Rows of zeros with a one at the label: labels (...) give (..., classes). A label outside of [0, classes)
/// gives zeros.
Array one_hot(const Operand& labels, std::int64_t classes, Dtype dtype = float32);
/// @}

/// @name Initializers
/// Draws with variance scale / fan, so that signals neither grow nor fade from layer to layer; the values are
/// those of jax.nn.initializers for the same key. A weight is (..., inputs, outputs): fan_in is inputs times
/// the extents of the leading dims (a window), fan_out likewise. ShapeError for fewer than two dims.
/// @{

/// The fan by which an initializer's scale is divided: inputs, outputs, or the mean of both.
enum class Fan { in, out, average };
/// truncated_normal is truncated at two standard deviations and widened to keep the variance.
enum class Draw { truncated_normal, normal, uniform };
/// The parameters behind the named initializers.
struct VarianceScaling {
  double scale = 1;                    ///< variance times fan
  Fan fan = Fan::in;                   ///< the divisor of the scale
  Draw draw = Draw::truncated_normal;  ///< the distribution
  int in_axis = -2;                    ///< dim of the inputs: 1 for the kernel of conv
  int out_axis = -1;                   ///< dim of the outputs: 0 for the kernel of conv
};
/// A weight of this shape, of a floating-point dtype.
Array variance_scaling(const random::Key& key, Shape shape, VarianceScaling options = {},
                       Dtype dtype = float32, Where = Where::current());

/// LeCun et al. 1998: variance 1 / fan_in. For selu, tanh and linear layers; Flax's default.
Array lecun_normal(const random::Key& key, const Shape& shape, Dtype dtype = float32,
                   Where = Where::current());
/// The same variance, uniform.
Array lecun_uniform(const random::Key& key, const Shape& shape, Dtype dtype = float32,
                    Where = Where::current());
/// Glorot and Bengio 2010 (Xavier): variance 2 / (fan_in + fan_out).
Array glorot_normal(const random::Key& key, const Shape& shape, Dtype dtype = float32,
                    Where = Where::current());
/// The same variance, uniform.
Array glorot_uniform(const random::Key& key, const Shape& shape, Dtype dtype = float32,
                     Where = Where::current());
/// He et al. 2015 (Kaiming): variance 2 / fan_in. For relu and its relatives.
Array he_normal(const random::Key& key, const Shape& shape, Dtype dtype = float32, Where = Where::current());
/// The same variance, uniform.
Array he_uniform(const random::Key& key, const Shape& shape, Dtype dtype = float32, Where = Where::current());

/// How a layer's weight is drawn: by one of the functions above, or by a function of your own of key, shape
/// and dtype.
class Initializer {
 public:
  /// From a function.
  template <class F>
  requires(std::is_invocable_r_v<Array, F&, const random::Key&, const Shape&, Dtype>) Initializer(F draw)
      : draw_([draw](const random::Key& key, const Shape& shape, Dtype dtype, Where) mutable {
          return draw(key, shape, dtype);
        }) {}
  /// From a function that also takes the line to cite.
  template <class F>
  requires(std::is_invocable_r_v<Array, F&, const random::Key&, const Shape&, Dtype, Where>)
      Initializer(F draw)
      : draw_(std::move(draw)) {}
  /// A weight.
  Array operator()(const random::Key& key, const Shape& shape, Dtype dtype, Where where) const {
    return draw_(key, shape, dtype, where);
  }

 private:
  std::function<Array(const random::Key&, const Shape&, Dtype, Where)> draw_;
};
/// @}

/// @name Layers
/// @{

/// x W + b.
struct Dense {
  Array weight;  ///< (inputs, outputs)
  Array bias;    ///< (outputs,)
  /// (..., inputs) gives (..., outputs).
  Array operator()(const Operand& x) const;
};
/// A layer with drawn weights and a bias of zeros.
Dense dense(const random::Key& key, std::int64_t inputs, std::int64_t outputs,
            const Initializer& initializer = lecun_normal, Dtype dtype = float32, Where = Where::current());

/// A sequence of layers, with relu between them.
using Mlp = std::vector<Dense>;
/// Layer i is drawn with split(key, number of sizes)[i]: sizes {784, 128, 10} make two layers. ArgumentError
/// for fewer than two sizes.
Mlp mlp(const random::Key& key, const std::vector<std::int64_t>& sizes,
        const Initializer& initializer = he_normal, Dtype dtype = float32, Where = Where::current());
/// The output of the network: an activation follows every layer except the last.
Array apply(
    const Mlp& network, const Operand& x,
    const std::function<Array(const Array&)>& activation = [](const Array& h) { return relu(h); });
/// The network committed to a mesh for tensor parallelism along one axis: the first and last layer
/// replicated, the others in pairs, the first of a pair split by columns and the second by rows, so that one
/// all-reduce over the axis per pair is the only traffic (Shoeybi et al. 2019, Megatron-LM).
///
///     x ──W0──relu──W1 | | |──relu──W2 ≡──relu──W3── y        | split columns   ≡ split rows
Mlp split_in_pairs(Mlp network, const Mesh& mesh, const std::string& axis, Where = Where::current());

/// Mean 0 and variance 1 along the last dim, then scaled and shifted (Ba et al. 2016).
struct LayerNorm {
  Array scale;  ///< (features,)
  Array shift;  ///< (features,)
  /// Has x's shape and layout. For a split last dim the mean and the variance are summed over ranks.
  Array operator()(const Operand& x) const;
};
/// A layer that scales by 1 and shifts by 0.
LayerNorm layer_norm(std::int64_t features, Dtype dtype = float32, Where = Where::current());
/// (x - mean) / sqrt(var + epsilon) along one axis, the variance divided by n.
Array standardize(const Operand& x, int axis = -1, double epsilon = 1e-6);

/// Looks up a row of a table for each number.
struct Embedding {
  Array table;  ///< (numbers, features)
  /// Integers (...) give (..., features). Numbers out of range are clamped, as take does.
  Array operator()(const Operand& numbers) const;
};
/// A table of normal draws with variance 1 / features.
Embedding embedding(const random::Key& key, std::int64_t numbers, std::int64_t features,
                    Dtype dtype = float32, Where = Where::current());

/// Each element is 0 with probability `rate`, else divided by 1 - rate, which preserves the mean (Srivastava
/// et al. 2014). The same elements in every layout. For training only. ArgumentError unless 0 <= rate < 1.
Array dropout(const random::Key& key, const Operand& x, double rate, Where = Where::current());
/// @}

/// Options of dot_product_attention.
struct AttentionOptions {
  std::optional<Array> bias = {};  ///< added to the scores; broadcasts to (batch, heads, queries, keys)
  std::optional<Array> mask = {};  ///< bool, broadcasts alike: false keys are ignored
  double scale = 0;                ///< factor of the scores; 0: 1 / sqrt(features)
  bool is_causal = false;          ///< query i uses only the keys 0 to i
  std::int64_t key_block = 0;      ///< keys processed at a time; 0: chosen
};

/// @name Attention
/// @{

/// softmax(scale q k^T + bias) v (jax.nn.dot_product_attention). q (batch, queries, heads, features), k and v
/// (batch, keys, kv_heads, features), where kv_heads divides heads; also without the batch dim. The result
/// has q's layout.
///
/// Split batches and heads need no communication. With split keys and unsplit queries each rank uses its own
/// keys, and maxima, sums and results are combined. With keys and queries split over one axis, the blocks of
/// keys and values are sent to all ranks one after the other, with an online softmax (Milakov and Gimelshein,
/// 2018; Rabe and Staats, 2021): a rank holds only one block at a time, and the scores of a block are
/// recomputed for the gradient. ShapeError for other shapes, DtypeError for a mask that is not bool.
Array dot_product_attention(const Operand& q, const Operand& k, const Operand& v,
                            const AttentionOptions& options = {});
/// @}

/// @name Losses
/// One number per example (the last dim is summed over, except by the elementwise ones): take the mean over
/// the batch yourself. For a split batch that mean costs one all-reduce of one number.
/// @{

/// -sum(p log_softmax(logits)) along the last dim, for probabilities p of the logits' shape.
Array softmax_cross_entropy(const Operand& logits, const Operand& probabilities);
/// The same for integer labels (...) and logits (..., classes).
Array softmax_cross_entropy_with_integer_labels(const Operand& logits, const Operand& labels);
/// Elementwise: -y log(sigmoid(x)) - (1 - y) log(1 - sigmoid(x)), for labels y in [0, 1].
Array sigmoid_binary_cross_entropy(const Operand& logits, const Operand& labels);
/// Elementwise: (prediction - target)^2; half of it is Optax's l2_loss.
Array squared_error(const Operand& predictions, const Operand& targets);
/// Elementwise: half of the square up to delta, linear beyond (Huber 1964). ArgumentError unless delta > 0.
Array huber_loss(const Operand& predictions, const Operand& targets, double delta = 1,
                 Where = Where::current());
/// The fraction of examples whose largest logit is that of the label: a scalar.
Array accuracy(const Operand& logits, const Operand& labels);
/// @}

/// @name Batches
/// @{

/// An epoch: all examples once, in random order, in batches. Made by shuffled_batches.
template <class Tree> class Batches {
 public:
  /// For shuffled_batches: arrays (batches, batch, ...).
  Batches(Tree arrays, std::int64_t count) : arrays_(std::move(arrays)), count_(count) {}
  std::int64_t size() const { return count_; }  ///< number of batches
  /// Batch i of [0, size()): arrays (batch, ...) in the requested layout. Sends nothing.
  Tree operator[](std::int64_t i) const {
    return tree_map([i](const Array& x) { return x(static_cast<int>(i)); }, arrays_);
  }

  /// For `for (const auto& [x, y] : batches)`.
  class Iterator {
   public:
    Iterator(const Batches* batches, std::int64_t i) : batches_(batches), i_(i) {}  ///< at batch i
    Tree operator*() const { return (*batches_)[i_]; }                              ///< the batch
    /// The next one.
    Iterator& operator++() { return ++i_, *this; }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    const Batches* batches_;
    std::int64_t i_;
  };
  Iterator begin() const { return {this, 0}; }     ///< the first batch
  Iterator end() const { return {this, count_}; }  ///< the iterator past the last batch

 private:
  Tree arrays_;
  std::int64_t count_;
};

/// The order of an epoch, int32 (batches, batch): a permutation of `examples` drawn from the key, without the
/// examples that do not fill a batch. ArgumentError unless 1 <= batch <= examples.
Array shuffled_order(const random::Key& key, std::int64_t examples, std::int64_t batch,
                     Where = Where::current());

namespace detail {
// Rows selected by an order (batches, batch), each batch in the layout of its spec.
Array scattered_batches(const Array& x, const Array& order, const Mesh& mesh,
                        const PartitionSpec& batch_spec);
std::int64_t common_examples(const std::vector<Array>& leaves, Where);
}  // namespace detail

/// The examples of a tree of arrays (examples, ...) in random order, the same for every layout and number of
/// ranks: the order depends only on the key. Each batch is split over the mesh by batch_spec; P("data")
/// splits the examples of every batch. The rows are scattered once per epoch, when the first batch is
/// requested: each is sent from its rank directly to its destination, and nothing is gathered. ShapeError if
/// the arrays differ in their number of examples, ArgumentError unless 1 <= batch <= examples; examples that
/// do not fill a batch are left out of this epoch.
template <class Tree>
Batches<Tree> shuffled_batches(const random::Key& key, const Tree& data, std::int64_t batch, const Mesh& mesh,
                               const PartitionSpec& batch_spec, Where where = Where::current()) {
  const Array order = shuffled_order(key, detail::common_examples(tree_leaves(data), where), batch, where);
  return {
      tree_map([&](const Array& x) { return detail::scattered_batches(x, order, mesh, batch_spec); }, data),
      order.shape()[0]};
}
/// @}

}  // namespace tessera::nn

namespace tessera {
using nn::one_hot;
}  // namespace tessera
