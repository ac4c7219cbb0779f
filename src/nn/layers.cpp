// Layers: structs of arrays, called on data.
#include <tessera/nn.hpp>

#include "base/call.hpp"
#include "ops/in_float32.hpp"

namespace tessera::nn {

Array Dense::operator()(const Operand& x) const {
  const Call call("Dense", x.where);
  return matmul(x, weight) + bias;
}

Dense dense(const random::Key& key, std::int64_t inputs, std::int64_t outputs, const Initializer& initializer,
            Dtype dtype, Where where) {
  const Call call("dense", where);
  return {initializer(key, {inputs, outputs}, dtype, where), zeros({outputs}, dtype, where)};
}

Mlp mlp(const random::Key& key, const std::vector<std::int64_t>& sizes, const Initializer& initializer,
        Dtype dtype, Where where) {
  const Call call("mlp", where);
  if (sizes.size() < 2)
    throw ArgumentError(call_text() + ": " + std::to_string(sizes.size()) +
                        " sizes make no layer; {784, 128, 10} are two layers");
  const auto keys = random::split(key, static_cast<int>(sizes.size()), where);
  Mlp network;
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    network.push_back(dense(keys[i], sizes[i], sizes[i + 1], initializer, dtype, where));
  return network;
}

Array apply(const Mlp& network, const Operand& x, const std::function<Array(const Array&)>& activation) {
  const Call call("apply", x.where);
  Array h = x.array;
  for (std::size_t i = 0; i < network.size(); ++i) {
    h = network[i](h);
    if (i + 1 == network.size()) break;
    const UserCode user;
    h = activation(h);
  }
  return h;
}

Mlp split_in_pairs(Mlp network, const Mesh& mesh, const std::string& axis, Where where) {
  const Call call("split_in_pairs", where);
  (void)NamedSharding(mesh, P(axis), where);  // refuses an axis that a network without pairs would not use
  for (std::size_t i = 0; i < network.size(); ++i) {
    auto& [weight, bias] = network[i];
    const bool begins = i % 2 == 1 && i + 2 < network.size(),
               ends = i % 2 == 0 && i >= 2 && i + 1 < network.size();
    weight = device_put(weight, mesh, begins ? P(None, axis) : ends ? P(axis, None) : P());
    bias = device_put(bias, mesh, begins ? P(axis) : P());
  }
  return network;
}

Array standardize(const Operand& x, int axis, double epsilon) {
  const Call call("standardize", x.where);
  if (is_half(x.array.dtype()))
    return in_float32(x.array, [&](const Array& wide) { return standardize(wide, axis, epsilon); });
  const Array centred = x.array - mean(x, axis, true);
  return centred * rsqrt(mean(square(centred), axis, true) + epsilon);
}

Array LayerNorm::operator()(const Operand& x) const {
  const Call call("LayerNorm", x.where);
  return standardize(x) * scale + shift;
}

LayerNorm layer_norm(std::int64_t features, Dtype dtype, Where where) {
  const Call call("layer_norm", where);
  return {ones({features}, dtype), zeros({features}, dtype)};
}

Array Embedding::operator()(const Operand& numbers) const {
  const Call call("Embedding", numbers.where);
  return take(table, numbers, 0);
}

Embedding embedding(const random::Key& key, std::int64_t numbers, std::int64_t features, Dtype dtype,
                    Where where) {
  const Call call("embedding", where);
  return {variance_scaling(key, {numbers, features}, {.fan = Fan::out, .draw = Draw::normal}, dtype, where)};
}

Array dropout(const random::Key& key, const Operand& x, double rate, Where where) {
  const Call call("dropout", where);
  if (!(rate >= 0 && rate < 1))
    throw ArgumentError(call_text() + ": rate is " + std::to_string(rate) +
                        "; it is the share of elements that become 0, in [0, 1)");
  if (rate == 0) return x.array;
  const Array is_kept = random::bernoulli(key, 1 - rate, x.array.shape(), where);
  return tessera::where(is_kept, x.array / (1 - rate), 0);
}

}  // namespace tessera::nn
