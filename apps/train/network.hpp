// Dense networks as trees, and their losses. Where a layer's arrays lie decides how it is computed; nothing
// here mentions a mesh but `placed`.
#pragma once
#include <tessera/tessera.hpp>

#include <cmath>
#include <vector>

namespace train {

using namespace tessera;

struct Dense {
  Array weight, bias;
};
using Network = std::vector<Dense>;

// sizes {784, 128, 10}: two layers. Weights are normal with variance 2 / inputs (He et al. 2015), as relu
// wants them.
inline Network initial_network(const random::Key& key, const std::vector<std::int64_t>& sizes) {
  Network network;
  const auto keys = random::split(key, static_cast<int>(sizes.size()));
  for (std::size_t i = 0; i + 1 < sizes.size(); ++i)
    network.push_back(
        {random::normal(keys[i], {sizes[i], sizes[i + 1]}) * std::sqrt(2.0 / static_cast<double>(sizes[i])),
         zeros({sizes[i + 1]})});
  return network;
}

inline Array logits_of(const Network& network, Array x) {
  for (std::size_t i = 0; i < network.size(); ++i) {
    x = matmul(x, network[i].weight) + network[i].bias;
    if (i + 1 < network.size()) x = relu(x);
  }
  return x;
}

// The mean over the batch of -log of the probability that the network gives the right label.
inline Array cross_entropy(const Network& network, const Array& x, const Array& labels) {
  const Array logits = logits_of(network, x);
  const Array is_label = astype(expand_dims(labels, 1) == arange(logits.shape()[1]), logits.dtype());
  return -mean(sum(log_softmax(logits) * is_label, 1));
}

inline Array squared_error(const Network& network, const Array& x, const Array& targets) {
  return mean(sum(square(logits_of(network, x) - targets), 1));
}

inline Array accuracy(const Network& network, const Array& x, const Array& labels) {
  return mean(astype(argmax(logits_of(network, x), 1) == astype(labels, int32), float32));
}

// Over a mesh of axes "data" and "model": inner layers in pairs, split by columns and then by rows, so that
// only the second product has to be summed over "model"; the first and the last layer on every rank.
//
//   x ──W0──relu──W1 | | |──relu──W2 ≡──relu──W3── logits        | split columns   ≡ split rows
inline Network placed(Network network, const Mesh& mesh) {
  for (std::size_t i = 0; i < network.size(); ++i) {
    auto& [weight, bias] = network[i];
    const bool is_pair = i % 2 == 1 && i + 2 < network.size(),
               ends_pair = i % 2 == 0 && i >= 2 && i + 1 < network.size();
    weight = device_put(weight, mesh, is_pair ? P(None, "model") : ends_pair ? P("model", None) : P());
    bias = device_put(bias, mesh, is_pair ? P("model") : P());
  }
  return network;
}

}  // namespace train
