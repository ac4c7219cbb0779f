// Spellings of operands, axes and options. The tables of tests/catalogue call every function once.
#include "surface/gives.hpp"

namespace tessera::test {
namespace {

GIVES(Array, -x);
GIVES(Array, !x);
GIVES(Array, x + y - 1 * x / 2.0 % y);
GIVES(Array, ((x == y) != (x < 1)) & ((x <= y) | ((1 > x) ^ (x >= y))));
GIVES(Array, power(x, 2));
GIVES(Array, power(1.5, y));
GIVES(Array, where(x, y, 0));
GIVES(Array, clip(x, 0, 1));
GIVES(Array, sum(x));
GIVES(Array, sum(x, {0, 1}));
GIVES(Array, sum(x, {}, true));
GIVES(Array, sum(x, std::vector<int>{0}));
GIVES(Array, sum(x, {.axis = 0, .keepdims = true}));
GIVES(Array, argmax(x, 0, true));
GIVES(Array, reshape(x, {2, -1}));
GIVES(Array, concatenate({x, y}));
GIVES(std::vector<Array>, split(x, 2, 1));
GIVES(Array, pad(x, {{1, 1}, {0, 2}}));
GIVES(Array, pad(x, {{1, 1}}, 3.0));
using TwoArrays = std::pair<Array, Array>;
GIVES(TwoArrays, top_k(x, 3));
GIVES(Array, tensordot(x, y, {{0}, {1}}));
GIVES(Array, einsum("ij,jk->ik", x, y));
GIVES(Array, conv(x, y, {.strides = {2, 2}, .padding = {{1, 1}, {1, 1}}}));

}  // namespace
}  // namespace tessera::test
