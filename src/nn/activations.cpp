// Activations composed of ops, which fuse into one pass over the block.
#include <tessera/nn.hpp>

#include <numbers>

#include "base/call.hpp"

namespace tessera::nn {

Array leaky_relu(const Operand& x, double negative_slope) {
  const Call call("leaky_relu", x.where);
  return where(x.array >= 0, x.array, negative_slope * x.array);
}

// The branch that is not selected must not overflow, since its derivative would be 0 times infinity.
Array elu(const Operand& x, double alpha) {
  const Call call("elu", x.where);
  const Array is_positive = x.array > 0;
  return where(is_positive, x.array, alpha * expm1(where(is_positive, 0, x.array)));
}

Array selu(const Operand& x) {
  const Call call("selu", x.where);
  return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717);
}

Array relu6(const Operand& x) {
  const Call call("relu6", x.where);
  return where(x.array <= 0, 0, where(x.array >= 6, 6, x.array));  // the slope is 0 at 0 and 6
}

Array exact_gelu(const Operand& x) {
  const Call call("exact_gelu", x.where);
  return 0.5 * x.array * erfc(-std::numbers::sqrt2 / 2 * x.array);
}

Array mish(const Operand& x) {
  const Call call("mish", x.where);
  return x.array * tanh(softplus(x));
}

Array log_sigmoid(const Operand& x) {
  const Call call("log_sigmoid", x.where);
  return -softplus(-x.array);
}

Array soft_sign(const Operand& x) {
  const Call call("soft_sign", x.where);
  return x.array / (1 + abs(x));
}

Array hard_tanh(const Operand& x) {
  const Call call("hard_tanh", x.where);
  return where(x.array < -1, -1, where(x.array > 1, 1, x.array));  // the slope is 1 at -1 and 1
}

Array hard_sigmoid(const Operand& x) {
  const Call call("hard_sigmoid", x.where);
  return relu6(x.array + 3) / 6;
}

Array glu(const Operand& x, int axis) {
  const Call call("glu", x.where);
  const std::vector<Array> halves = split(x, 2, axis);
  return halves[0] * sigmoid(halves[1]);
}

Array one_hot(const Operand& labels, std::int64_t classes, Dtype dtype) {
  const Call call("one_hot", labels.where);
  if (!is_integer(labels.array.dtype()))
    throw DtypeError(call_text() + ": labels are integers, these are " + name(labels.array.dtype()) +
                     "; astype(labels, int32) makes integers of them");
  if (classes < 0)
    throw ArgumentError(call_text() + ": " + std::to_string(classes) + " classes; there must be 0 or more");
  // A plain number keeps its width beside the classes: 2^32 is no label 0.
  const Array strong = astype(labels, labels.array.dtype());
  return astype(expand_dims(strong, -1) == arange(classes), dtype);
}

}  // namespace tessera::nn
