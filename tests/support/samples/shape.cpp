// Other shapes of the same elements.
#include <tessera/grad.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void shape_samples(Table& t) {
  t.add("reshape", {{{6, 5}}}, [](In x) -> Out {
    return {reshape(x[0], {3, 10}), reshape(x[0], {2, 3, 5}), reshape(x[0], {-1})};
  });
  t.add("transpose", {{{2, 5, 3}}}, [](In x) -> Out {
    return {transpose(x[0]), transpose(x[0], {1, 0, 2}), swapaxes(x[0], 1, 2), moveaxis(x[0], 2, 0)};
  });
  t.add("squeeze_expand_dims", {{{5, 1, 3}}}, [](In x) -> Out {
    return {squeeze(x[0]), expand_dims(x[0], 2)};
  });
  t.add("broadcast_to", {{{5, 1}}}, [](In x) -> Out { return {broadcast_to(x[0], {2, 5, 3})}; });
  t.add("concatenate", {{{5, 3}}, {{2, 3}}, {{5, 3}}}, [](In x) -> Out {
    return {concatenate({x[0], x[1]}, 0), concatenate({x[0], x[2]}, 1), stack({x[0], x[2]}, 1)};
  });
  t.add("split", {{{6, 3}}}, [](In x) -> Out { return split(x[0], 3); });
  t.add("flip_roll", {{{5, 3}}}, [](In x) -> Out {
    return {flip(x[0]), flip(x[0], 1), roll(x[0], 2, 0), roll(x[0], -1, 1)};
  });
  t.add("pad", {{{5, 3}}}, [](In x) -> Out { return {pad(x[0], {{1, 2}, {0, 1}}, 3.0)}; });
  t.add("tile_repeat", {{{5, 3}}}, [](In x) -> Out {
    return {tile(x[0], {2, 1}), repeat(x[0], 3, 0), repeat(x[0], 2, 1)};
  });
  t.add("triangles", {{{5, 4}}}, [](In x) -> Out {
    return {tril(x[0], 1), triu(x[0]), diagonal(x[0]), diagonal(x[0], 1)};
  });
  t.add(
      "alias_stop_gradient", {{{5, 3}}}, [](In x) -> Out { return {stop_gradient(x[0])}; }, Smooth::no);
  t.add("device_put", {{{5, 3}}}, [](In x) -> Out {
    const Mesh mesh = make_mesh({device_count()}, {"there"});
    return {device_put(x[0], NamedSharding(mesh, P(None, "there")))};
  });
}

}  // namespace tessera::test
