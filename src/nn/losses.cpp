// Losses, one number per example.
#include <tessera/nn.hpp>

#include "base/call.hpp"
#include "types/extents.hpp"

namespace tessera::nn {
namespace {

void check_labels(const Array& logits, const Array& labels) {
  if (!is_integer(labels.dtype()))
    throw DtypeError(call_text() + ": labels are integers, these are " + name(labels.dtype()) +
                     "; astype(labels, int32) makes integers of them");
  const Shape& shape = logits.shape();
  if (shape.size() == 0 || labels.shape() != without_last(shape, 1))
    throw ShapeError(
        call_text() + ": logits " + to_string(shape) + " and labels " + to_string(labels.shape()) +
        " do not fit; labels have the shape of the logits without the last dimension, the classes");
}

}  // namespace

Array softmax_cross_entropy(const Operand& logits, const Operand& probabilities) {
  const Call call("softmax_cross_entropy", logits.where);
  return -sum(probabilities.array * log_softmax(logits), -1);
}

// Selects by comparison instead of by index, so that a rank with some of the classes needs no other rank's.
Array softmax_cross_entropy_with_integer_labels(const Operand& logits, const Operand& labels) {
  const Call call("softmax_cross_entropy_with_integer_labels", logits.where);
  check_labels(logits.array, labels.array);
  const Array is_label = expand_dims(labels, -1) == arange(logits.array.shape().back());
  return -sum(where(is_label, log_softmax(logits), 0), -1);
}

Array sigmoid_binary_cross_entropy(const Operand& logits, const Operand& labels) {
  const Call call("sigmoid_binary_cross_entropy", logits.where);
  return -labels.array * log_sigmoid(logits) - (1 - labels.array) * log_sigmoid(-logits.array);
}

Array squared_error(const Operand& predictions, const Operand& targets) {
  const Call call("squared_error", predictions.where);
  return square(predictions.array - targets.array);
}

Array huber_loss(const Operand& predictions, const Operand& targets, double delta, Where where) {
  const Call call("huber_loss", where);
  if (!(delta > 0))
    throw ArgumentError(call_text() + ": delta is " + std::to_string(delta) + "; it must be positive");
  const Array error = abs(predictions.array - targets.array), quadratic = minimum(error, delta);
  return 0.5 * square(quadratic) + delta * (error - quadratic);
}

Array accuracy(const Operand& logits, const Operand& labels) {
  const Call call("accuracy", logits.where);
  check_labels(logits.array, labels.array);
  return mean(astype(argmax(logits, -1) == labels.array, float32));
}

}  // namespace tessera::nn
