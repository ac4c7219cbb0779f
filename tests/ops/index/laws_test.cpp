// The laws of every op of indexing, rearranging, sorting, scanning, einsum and conv: its vjp is the finite
// difference, the vjp's vjp too, and vmap is the loop; for random shardings of the operand.
#include <tessera/transforms.hpp>

#include "ops/sort/sort_by_key.hpp"
#include "support/layouts.hpp"

namespace tessera::test {
namespace {

struct Sample {
  const char* name;
  Shape shape;
  std::function<Array(const Array&)> f;
};

Array constant(const Shape& shape, int seed = 0) {
  return make(shape, float64, [&](const Position& at) {
    return static_cast<double>((flat(at, shape) * 7 + 3 * seed) % 11) / 5 - 1;
  });
}
Array indices(std::vector<int> values) {
  return array(HostArray(values, {static_cast<std::int64_t>(values.size())}));
}

std::vector<Sample> samples() {
  const Shape m{6, 5};
  return {
      {"slice", m, [](const Array& x) { return x(slice(1, 5), slice(None, -1)); }},
      {"slice with steps", m, [](const Array& x) { return x(slice(None, None, 2), slice(4, None, -3)); }},
      {"integer and new axis", m, [](const Array& x) { return x(-2, newaxis, slice(1, None)); }},
      {"gather", m,
       [](const Array& x) {
         return x(indices({0, 5, 5, -1, 9}));
       }},
      {"gather in the last dim", m,
       [](const Array& x) {
         return x(slice(), reshape(indices({0, 2, 2, 4}), {2, 2}));
       }},
      {"gather by two arrays", m,
       [](const Array& x) {
         return x(indices({1, 1, 3}), indices({0, 0, 4}));
       }},
      {"at set", m, [](const Array& x) { return x.at(slice(1, 3)).set(x(slice(0, 2)) * 2.0); }},
      {"at set with steps", m,
       [](const Array& x) { return x.at(slice(), slice(None, None, 2)).set(x(slice(), slice(0, 3)) * 3.0); }},
      {"at add", m, [](const Array& x) { return x.at(2).add(x(0) * x(1)); }},
      {"at multiply", m, [](const Array& x) { return x.at(slice(2, 4)).multiply(x(slice(0, 2))); }},
      {"scatter set", m,
       [](const Array& x) {
         return x.at(indices({4, 0, 7})).set(x(slice(1, 4)) * 2.0);
       }},
      {"scatter add", m,
       [](const Array& x) {
         return x.at(indices({4, 0, 4})).add(x(slice(0, 3)) * 2.0);
       }},
      {"scatter multiply", m,
       [](const Array& x) {
         return x.at(indices({4, 0})).multiply(x(slice(1, 3)));
       }},
      {"scatter max", m,
       [](const Array& x) {
         return x.at(indices({4, 0})).max(x(slice(1, 3)) + 0.3);
       }},
      {"mask", m, [](const Array& x) { return x.at(x > 0).multiply(2); }},
      {"concatenate", m,
       [](const Array& x) {
         return concatenate({x, x(slice(0, 2)) * 2.0, x}, 0);
       }},
      {"stack", m,
       [](const Array& x) {
         return stack({x, x * x}, 1);
       }},
      {"split", m, [](const Array& x) { return split(x, 3)[1] * split(x, 2)[0](slice(0, 2)); }},
      {"flip", m, [](const Array& x) { return flip(x, 0); }},
      {"roll", m, [](const Array& x) { return roll(x, 2, 1); }},
      {"pad", m,
       [](const Array& x) {
         return pad(x, {{1, 2}, {0, 3}}, 5);
       }},
      {"tile", m,
       [](const Array& x) {
         return tile(x, {2, 3});
       }},
      {"repeat", m, [](const Array& x) { return repeat(x, 3, 0); }},
      {"tril", m, [](const Array& x) { return tril(x, -1); }},
      {"triu", m, [](const Array& x) { return triu(x, 1); }},
      {"diagonal", m, [](const Array& x) { return diagonal(x, -1); }},
      {"diagonal of many", {3, 4, 2}, [](const Array& x) { return diagonal(x, 1); }},
      {"trace", m, [](const Array& x) { return trace(x); }},
      {"take", m,
       [](const Array& x) {
         return take(x, reshape(indices({3, 3, 0, 1}), {2, 2}), 1);
       }},
      {"take_along_axis", m,
       [](const Array& x) {
         return take_along_axis(x, reshape(indices({0, 1, 1, 3, 4, 0, 2, 2, 2, 4, 3, 1}), {6, 2}), 1);
       }},
      {"take_along_axis by its own order", m,
       [](const Array& x) { return take_along_axis(x, argsort(x, 0), 0); }},
      {"cumsum", m, [](const Array& x) { return cumsum(x, 0); }},
      {"cumprod", m, [](const Array& x) { return cumprod(x, 1); }},
      {"sort", m, [](const Array& x) { return sort(x, 0); }},
      {"sort_by_key", m, [](const Array& x) { return sort_by_key(x * -1.0, x * x).second; }},
      {"top_k", m, [](const Array& x) { return top_k(x, 3).first; }},
      {"argmax", m, [](const Array& x) { return x * astype(argmax(x, 0), float64); }},
      {"argmin of all", m, [](const Array& x) { return x * astype(argmin(x), float64); }},
      {"searchsorted", m,
       [](const Array& x) {
         return x * astype(searchsorted(sort(x(0)), x(slice(), 1)), float64)(slice(), newaxis);
       }},
      {"einsum", m, [](const Array& x) { return einsum("ij,kj,j->ik", x, x, constant({5})); }},
      {"conv",
       {2, 2, 6, 5},
       [](const Array& x) {
         return conv(x, constant({4, 2, 3, 2}),
                     {.strides = {2, 1}, .padding = {{1, 2}, {0, 1}}, .dilation = {1, 2}});
       }},
      {"conv by the kernel",
       {4, 1, 3},
       [](const Array& k) {
         return conv(constant({2, 2, 7}), k, {.strides = {2}, .padding = {{3, 1}}, .groups = 2});
       }},
      {"conv of both",
       {2, 4, 5},
       [](const Array& x) {
         return conv(x, reshape(x(0, slice(), slice(0, 4)), {8, 2, 1}) * 0.5, {.groups = 2});
       }},
  };
}

// Distinct values, so that orders do not change under small steps.
Array operand(const Shape& shape, int seed) {
  const auto n = shape.elements();
  return make(shape, float64, [&](const Position& at) {
    return static_cast<double>((flat(at, shape) * 17 + seed * 5) % n) * 0.13 - 0.06 * static_cast<double>(n) +
           0.011;
  });
}
Array put(std::mt19937& random, const Array& x, const Mesh& mesh) {
  return random() % 5 ? device_put(x, random_sharding(random, mesh, x.ndim())) : x;
}
Array put(std::mt19937& random, const Array& x) { return put(random, x, random_mesh(random)); }

// The same up to rounding: split sums add up in another order.
void expect_near(const Array& x, const Array& y, const std::string& what) {
  ASSERT_EQ(to_string(x.shape()), to_string(y.shape())) << what;
  const auto a = to_vector<double>(x), b = to_vector<double>(y);
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_NEAR(a[i], b[i], 1e-11 * (1 + std::abs(b[i]))) << what << " element " << i;
}

double along(const Array& g, const Array& direction) { return item<double>(sum(g * direction)); }

// (f(x + h v) - f(x - h v)) / 2h, extrapolated once.
double difference(const std::function<Array(const Array&)>& f, const Array& x, const Array& v) {
  const auto at = [&](double h) {
    return (item<double>(f(x + v * h)) - item<double>(f(x - v * h))) / (2 * h);
  };
  const double h = 1e-3;
  return (4 * at(h / 2) - at(h)) / 3;
}

TEST(Laws, TheVjpIsTheFiniteDifference) {
  std::mt19937 random(71);
  for (const auto& s : samples())
    for (int round = 0; round < 2; ++round) {
      const Array x = put(random, operand(s.shape, round));
      const Array v = constant(s.shape, round + 1);
      const auto loss = [&](const Array& y) {
        const Array z = s.f(y);
        return sum(sin(z) * constant(z.shape(), 3));
      };
      const Array g = grad(loss)(x);
      EXPECT_EQ(to_string(g.shape()), to_string(x.shape()));
      const double expected = difference(loss, x, v);
      EXPECT_NEAR(along(g, v), expected, 1e-7 * (1 + std::abs(expected)))
          << s.name << " " << text_of(x.sharding());
      // The same once more: the derivative of a projection of the gradient.
      const auto projected = [&](const Array& y) { return sum(grad(loss)(y) * constant(s.shape, 4)); };
      const double second = difference(projected, x, v);
      EXPECT_NEAR(along(grad(projected)(x), v), second, 1e-6 * (1 + std::abs(second)))
          << s.name << ", second derivative " << text_of(x.sharding());
    }
}

TEST(Laws, TheGradientHasTheOperandsSharding) {
  std::mt19937 random(72);
  for (const auto& s : samples()) {
    const Array x =
        device_put(operand(s.shape, 1), random_sharding(random, random_mesh(random), s.shape.ndim()));
    const auto loss = [&](const Array& y) { return sum(s.f(y)); };
    EXPECT_EQ(grad(loss)(x).sharding(), x.sharding()) << s.name;
  }
}

TEST(Laws, VmapIsTheLoop) {
  std::mt19937 random(73);
  for (const auto& s : samples())
    for (const int in_axis : {0, s.shape.ndim()}) {
      std::vector<Array> each;
      for (int b = 0; b < 3; ++b) each.push_back(operand(s.shape, b));
      const Array batch = put(random, stack(each, in_axis));
      const Array y = vmap(s.f, {.in_axes = in_axis, .out_axes = 0})(batch);
      std::vector<Array> expected;
      for (const auto& x : each) expected.push_back(s.f(x));
      const std::string what =
          s.name + std::string(" in_axis ") + std::to_string(in_axis) + " " + text_of(batch.sharding());
      expect_near(y, stack(expected), what);
      // The gradient is batched too: the batch rules of what the vjp records.
      const auto gradient = grad([&](const Array& x) { return sum(square(s.f(x))); });
      const Array g = vmap(gradient, {.in_axes = in_axis, .out_axes = 0})(batch);
      for (auto& x : each) x = gradient(x);
      expect_near(g, stack(each), what + ", gradient");
    }
}

TEST(Laws, VmapOverTheIndicesOrTheUpdatesIsTheLoop) {
  std::mt19937 random(74);
  const Array x = operand({6, 5}, 0), list = reshape(indices({0, 3, 5, 1, 1, 2, 4, 4, 0}), {3, 3}),
              updates = constant({3, 3, 5});
  const std::vector<std::function<Array(const Array&, const Array&)>> cases = {
      [&](const Array& i, const Array&) { return x(i); },
      [&](const Array& i, const Array& u) { return x.at(i).add(u); },
      [&](const Array& i, const Array& u) { return x.at(i).multiply(u); },
      [&](const Array&, const Array& u) { return x.at(slice(0, 3)).set(u); },
      [&](const Array& i, const Array& u) {
        return grad([&](const Array& y) { return sum(square(y(i) * u)); })(x);
      },
      [&](const Array& i, const Array&) {
        return take_along_axis(x, broadcast_to(expand_dims(i, 1), {3, 5}), 0);
      },
      [&](const Array&, const Array& u) { return astype(searchsorted(arange(5), u), float64); },
      [&](const Array&, const Array& u) {
        return conv(constant({2, 3, 7}), u(newaxis));
      },
  };
  for (std::size_t c = 0; c < cases.size(); ++c) {
    const Mesh mesh = random_mesh(random);
    const Array y = vmap(cases[c])(put(random, list, mesh), put(random, updates, mesh));
    std::vector<Array> expected;
    for (int b = 0; b < 3; ++b) expected.push_back(cases[c](list(b), updates(b)));
    expect_near(y, stack(expected), "case " + std::to_string(c));
  }
}

}  // namespace
}  // namespace tessera::test
