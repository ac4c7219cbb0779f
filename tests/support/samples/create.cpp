// Arrays made of nothing, and random ones.
#include <tessera/grad.hpp>
#include <tessera/ops.hpp>
#include <tessera/random.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void creation_samples(Table& t) {
  t.add(
      "creation", {},
      [](In) -> Out {
        return {zeros({5, 3}),           ones({4}, int32), full({5, 3}, 2.5, float64), eye(5),
                eye(4, 6, 1, complex64), arange(7),        linspace(0, 1, 5)};
      },
      Smooth::no);
  t.add(
      "random", {},
      [](In) -> Out {
        const auto key = random::key(7);
        return {random::bits(key, {5, 3}), random::uniform(key, {5, 3}), random::normal(key, {5, 3}, float64),
                random::randint(key, {7}, 0, 100)};
      },
      Smooth::no);
  t.add(
      "random_from_parameters", {{{5}, 0.5, 9}},
      [](In x) -> Out {
        const auto key = random::key(3);
        return {random::gamma(key, stop_gradient(x[0])), random::poisson(key, x[0]),
                random::binomial(key, 20, x[0] / 10)};
      },
      Smooth::no);
  t.add(
      "keys", {{{2}, 0, 1000, uint32}},
      [](In x) -> Out {
        const auto key = random::wrap_key_data(x[0]);
        return {random::split(key, 3)[1].data, random::fold_in(key, 3).data,
                random::split_batch(key, {2, 2}).data, random::uniform(key, {5})};
      },
      Smooth::no);
}

}  // namespace tessera::test
