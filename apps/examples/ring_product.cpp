// A matrix product in a ring: every rank has some rows of a and of b. It multiplies its blocks, passes its
// rows of b to the next rank, and after as many rounds as there are ranks each has its rows of a b.
//
//   tessera run -n 4 example_ring_product
//
// The elements are small integers, so that the product is exact and equal to matmul's.
#include "example.hpp"

using namespace tessera;

namespace {

// Takes this rank's blocks: a (m / ranks, k), b (k / ranks, n).
Array ring_product(const Array& a, const Array& b) {
  const int ranks = static_cast<int>(a.shape()[1] / b.shape()[0]);
  const std::int64_t width = b.shape()[0];
  std::vector<std::pair<int, int>> to_the_next;
  for (int r = 0; r < ranks; ++r) to_the_next.emplace_back(r, (r + 1) % ranks);
  // All columns of a in the order in which the rows of b arrive: its own, then those of the previous rank,
  // ...
  const Array in_parts = reshape(a, {a.shape()[0], ranks, width});
  Array held = b, product;
  for (int round = 0; round < ranks; ++round) {
    const Array from = (axis_index("x") + (ranks - round)) % ranks;
    const Array term = matmul(take(in_parts, from, 1), held);
    product = round == 0 ? term : product + term;
    if (round + 1 < ranks) held = ppermute(held, "x", to_the_next);
  }
  return product;
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const Mesh mesh = example::all_devices();
    const int m = 24, k = 48, n = 40;  // multiples of 1, 3 and 8 ranks
    const auto whole_numbers = [](int rows, int columns, int of) {
      return astype((expand_dims(arange(rows), 1) * 7 + arange(columns) * 3) % of, float32);
    };
    const Array a = device_put(whole_numbers(m, k, 11), mesh, P("x", None)),
                b = device_put(whole_numbers(k, n, 13), mesh, P("x", None));
    const Array c = shard_map(ring_product, mesh, {P("x", None), P("x", None)}, P("x", None))(a, b);
    example::picture("a b", c);
    example::expect_close("ring product", c, matmul(whole_numbers(m, k, 11), whole_numbers(k, n, 13)), 0);
  });
}
