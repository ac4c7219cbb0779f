// Products, convolutions and windows.
#include <tessera/ops.hpp>
#include <tessera/ops/numpy.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void contraction_samples(Table& t) {
  t.add("outer", {{{5, 3}}, {{3}}}, [](In x) -> Out { return {outer(x[0], x[1])}; });
  t.add("inner", {{{5, 3}}, {{4, 3}}}, [](In x) -> Out { return {inner(x[0], x[1])}; });
  t.add("matmul", {{{5, 3}}, {{3, 4}}}, [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_batched", {{{2, 5, 3}}, {{3, 4}}}, [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_broadcast", {{{2, 1, 5, 3}}, {{3, 3, 4}}}, [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_complex", {{{5, 3}, -1, 1, complex128}, {{3, 4}, -1, 1, complex128}},
        [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("matmul_complex_and_real", {{{5, 3}, -1, 1, complex128}, {{3, 4}}},
        [](In x) -> Out { return {matmul(x[0], x[1])}; });
  t.add("dot_vdot", {{{5}}, {{5}}}, [](In x) -> Out { return {dot(x[0], x[1]), vdot(x[0], x[1])}; });
  t.add("vdot_complex", {{{5}, -1, 1, complex128}, {{5}, -1, 1, complex128}},
        [](In x) -> Out { return {vdot(x[0], x[1])}; });
  t.add("tensordot", {{{4, 3, 2}}, {{3, 2, 5}}}, [](In x) -> Out {
    return {tensordot(x[0], x[1]),
            tensordot(x[0], x[1], std::pair{std::vector<int>{2, 1}, std::vector<int>{1, 0}})};
  });
  t.add("einsum", {{{2, 4, 3}}, {{2, 3, 5}}}, [](In x) -> Out {
    return {einsum("bij,bjk->kbi", x[0], x[1]), einsum("bij,bjk->ik", x[0], x[1])};
  });
  t.add("trace", {{{5, 4}}}, [](In x) -> Out { return {trace(x[0])}; });
}

void convolution_samples(Table& t) {
  t.add("conv_1d", {{{2, 3, 9}}, {{4, 3, 3}}}, [](In x) -> Out {
    return {conv(x[0], x[1]), conv(x[0], x[1], {.strides = {2}, .padding = {{1, 2}}})};
  });
  t.add("conv_2d", {{{2, 4, 7, 6}}, {{6, 2, 3, 2}}}, [](In x) -> Out {
    return {
        conv(x[0], x[1], {.strides = {1, 2}, .padding = {{1, 1}, {0, 1}}, .dilation = {2, 1}, .groups = 2})};
  });
}

void window_samples(Table& t) {
  t.add("reduce_window", {{{7, 5}, 0.5, 2}}, [](In x) -> Out {
    return {reduce_window(x[0], "sum", {3, 2}, {.strides = {2, 1}, .padding = {{1, 1}, {0, 1}}}),
            reduce_window(x[0], "max", {2, 5}), reduce_window(x[0], "prod", {3, 1})};
  });
  t.add("conv_transpose", {{{2, 4, 5}}, {{4, 3, 3}}}, [](In x) -> Out {
    return {conv_transpose(x[0], x[1], {.strides = {2}, .padding = {{1, 0}}})};
  });
  t.add("shifted", {{{7, 5}}}, [](In x) -> Out {
    return {shifted(x[0], 2, 0), shifted(x[0], -1, 1, Boundary::reflect), shifted(x[0], 2, 0, Boundary::edge),
            shifted(x[0], -3, 0, Boundary::constant, 1.5), shifted(x[0], 2, 1, Boundary::symmetric)};
  });
}

}  // namespace tessera::test
