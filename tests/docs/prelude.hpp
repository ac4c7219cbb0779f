// Names that the rows of the cheat sheets use.
#pragma once
#include <tessera/tessera.hpp>

namespace docs {

struct Parameters {
  tessera::Array w, b;
};

struct Prelude {
  tessera::Mesh mesh = tessera::make_mesh({tessera::device_count()}, {"x"});
  tessera::Array x = tessera::device_put(tessera::random::normal(tessera::random::key(1), {8, 6}), mesh,
                                         tessera::P("x")),
                 y = tessera::device_put(tessera::random::normal(tessera::random::key(2), {8, 6}), mesh,
                                         tessera::P("x"));
  // A positive definite matrix, a matrix of right-hand sides, a vector and a number of each kind.
  tessera::Array a = tessera::matmul(tessera::transpose(x), x) + 6 * tessera::eye(6),
                 b = tessera::ones({6, 2}), v = tessera::arange(6.f), n = tessera::arange(6), mask = x > 0,
                 z = tessera::make_complex(x, y);
  tessera::random::Key key = tessera::random::key(0);
  std::function<tessera::Array(const tessera::Array&)> f = [](const tessera::Array& at) {
    return tessera::sum(tessera::sin(at));
  };
  std::function<tessera::Array(const Parameters&, const tessera::Array&)> loss =
      [](const Parameters& p, const tessera::Array& at) {
        return tessera::mean(tessera::square(tessera::matmul(at, p.w) + p.b));
      };
  Parameters params{tessera::ones({6, 3}), tessera::zeros({3})};
};

}  // namespace docs
