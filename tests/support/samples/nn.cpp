// Networks: activations, layers, attention, losses.
#include <tessera/nn.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void network_samples(Table& t) {
  using namespace nn;
  t.add("activations", {{{5, 4}}}, [](In x) -> Out {
    return {leaky_relu(x[0], 0.1), elu(x[0]),       selu(x[0]),  exact_gelu(x[0]), mish(x[0]),
            log_sigmoid(x[0]),     soft_sign(x[0]), glu(x[0], 1)};
  });
  t.add(
      "activations_with_corners", {{{5, 3}, -4, 8}},
      [](In x) -> Out {
        return {relu6(x[0]), hard_tanh(x[0]), hard_sigmoid(x[0])};
      },
      Smooth::once);
  t.add("layers", {{{5, 4}}, {{4, 3}}, {{3}}}, [](In x) -> Out {
    const Array h = Dense{x[1], x[2]}(x[0]);
    return {LayerNorm{x[2], x[2] * 2}(h), standardize(x[0], 0), Embedding{x[0]}(array({3, 0, 3, 1}))};
  });
  t.add("losses", {{{5, 4}}, {{5, 4}, 0, 1}, {{5}, 0, 3, int32}}, [](In x) -> Out {
    return {softmax_cross_entropy(x[0], x[1]), softmax_cross_entropy_with_integer_labels(x[0], x[2]),
            sigmoid_binary_cross_entropy(x[0], x[1]), squared_error(x[0], x[1]), huber_loss(x[0], x[1], 0.7)};
  });
  t.add_values("labels", {{{5, 4}}, {{5}, 0, 3, int32}}, [](In x) -> Out {
    return {one_hot(x[1], 4), accuracy(x[0], x[1])};
  });
  t.add_values("attention", {{{2, 5, 4, 3}}, {{2, 7, 2, 3}}, {{2, 7, 2, 3}}},
               [](In x) -> Out { return {dot_product_attention(x[0], x[1], x[2])}; });
  t.add_values("attention_masked", {{{6, 2, 3}}, {{6, 2, 3}}, {{6, 2, 3}}, {{2, 6, 6}}}, [](In x) -> Out {
    return {dot_product_attention(x[0], x[1], x[2], {.is_causal = true}),
            dot_product_attention(x[0], x[1], x[2], {.bias = x[3], .scale = 0.3})};
  });
  t.add_values("attention_by_blocks", {{{6, 2, 3}}, {{6, 2, 3}}, {{6, 2, 3}}}, [](In x) -> Out {
    return {dot_product_attention(x[0], x[1], x[2], {.is_causal = true, .key_block = 4})};
  });
}

}  // namespace tessera::test
