// Loops and branches, as instructions; what makes gradients otherwise.
#include <tessera/control.hpp>
#include <tessera/jit.hpp>
#include <tessera/transforms.hpp>

#include "support/samples/table.hpp"

namespace tessera::test {

void control_samples(Table& t) {
  t.add("scan", {{{11}}, {{3}}}, [](In x) -> Out {
    const auto step = [](const Array& c, const Array& v) {
      const Array next = tanh(c * v + 0.5);
      return std::pair{next, sum(next) * v};
    };
    const auto [c, ys] =
        jit([&](const Array& xs, const Array& c0) { return scan(step, c0, xs); })(x[0], x[1]);
    return {c, ys};
  });
  t.add("scan_of_rows", {{{10, 4}}, {{4}}}, [](In x) -> Out {
    const auto step = [](const Array& c, const Array& row) { return std::pair{c * 0.5 + row, c * row}; };
    const auto [c, ys] =
        jit([&](const Array& xs, const Array& c0) { return scan(step, c0, xs); })(x[0], x[1]);
    return {c, ys};
  });
  t.add("fori_loop", {{{5, 3}}}, [](In x) -> Out {
    const auto step = [](const Array& i, const Array& v) { return v * 0.5 + sin(v) / (i + 1.0); };
    return {jit([&](const Array& v) { return fori_loop(0, 12, step, v); })(x[0])};
  });
  t.add("cond", {{{5, 3}}, {{5, 3}}}, [](In x) -> Out {
    const auto f = [](const Array& a, const Array& b) {
      return cond(
          sum(a) > 0.1, [](const Array& u, const Array& v) { return sin(u) * v; },
          [](const Array& u, const Array& v) { return cos(v) - u; }, a, b);
    };
    return {jit(f)(x[0], x[1]), jit(f)(x[1], x[0])};
  });
  t.add_values("while_loop", {{{5, 3}}}, [](In x) -> Out {
    const auto grow = [](const Array& v) {
      return while_loop([](const Array& u) { return sum(u * u) < 1000.0; },
                        [](const Array& u) { return u * 1.5; }, v);
    };
    return {jit(grow)(x[0])};
  });
  t.add_values("checkpoint", {{{5, 3}}}, [](In x) -> Out {
    return {checkpoint([](const Array& v) { return exp(sin(v) * v); })(x[0])};
  });
}

}  // namespace tessera::test
