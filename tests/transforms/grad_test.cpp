// Gradients, and errors of incorrect use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/array.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>
#include <tessera/transforms.hpp>

#include <cmath>

namespace tessera {
namespace {

using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;

TEST(Grad, of_a_polynomial) {
  const auto f = [](const Array& x) { return sum(x * x * x); };
  EXPECT_THAT(to_vector<float>(grad(f)(array({1.f, 2.f, 3.f}))), ElementsAre(3, 12, 27));
}

TEST(Grad, of_a_number_is_an_array) {
  const auto f = [](const Array& x) { return sin(x); };
  EXPECT_FLOAT_EQ(item<float>(grad(f)(0.5)), std::cos(0.5f));
  EXPECT_FLOAT_EQ(item<float>(grad(grad(f))(0.5)), -std::sin(0.5f));
  EXPECT_FLOAT_EQ(item<float>(grad(grad(grad(f)))(0.5)), -std::cos(0.5f));
}

TEST(Grad, of_chosen_arguments) {
  const auto f = [](const Array& x, const Array& y, const Array& z) { return sum(x * y * y + z); };
  const Array x = array({2.f}), y = array({3.f}), z = array({5.f});
  EXPECT_THAT(to_vector<float>(grad(f)(x, y, z)), ElementsAre(9));
  EXPECT_THAT(to_vector<float>(grad<1>(f)(x, y, z)), ElementsAre(12));
  const auto [dz, dx] = grad<2, 0>(f)(x, y, z);
  EXPECT_THAT(to_vector<float>(dz), ElementsAre(1));
  EXPECT_THAT(to_vector<float>(dx), ElementsAre(9));
}

struct Layer {
  Array weight, bias;
  int width = 2;
};
TEST(Grad, of_trees) {
  const auto f = [](const std::vector<Layer>& layers, float factor) {
    Array total = 0.f;
    for (const auto& l : layers) total = total + sum(l.weight * l.weight) * factor + sum(l.bias);
    return total;
  };
  const std::vector<Layer> layers{{array({1.f, 2.f}), array({1.f}), 2}, {array({3.f}), array({1.f, 1.f}), 1}};
  const auto g = grad(f)(layers, 3.f);
  ASSERT_EQ(g.size(), 2u);
  EXPECT_THAT(to_vector<float>(g[0].weight), ElementsAre(6, 12));
  EXPECT_THAT(to_vector<float>(g[1].weight), ElementsAre(18));
  EXPECT_THAT(to_vector<float>(g[1].bias), ElementsAre(1, 1));
  EXPECT_EQ(g[1].width, 1);
}

TEST(Grad, keeps_the_operands_sharding) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array w = device_put(arange(7.f), NamedSharding(mesh, P("x"))),
              b = device_put(ones({7}), NamedSharding(mesh, P()));
  const auto f = [](const Array& w, const Array& b) { return sum(w * w * b); };
  const auto [dw, db] = grad<0, 1>(f)(w, b);
  EXPECT_EQ(dw.sharding(), w.sharding());
  EXPECT_EQ(db.sharding(), b.sharding());
  EXPECT_THAT(to_vector<float>(db), ElementsAre(0, 1, 4, 9, 16, 25, 36));
}

TEST(Grad, value_comes_along_with_aux) {
  const auto f = [](const Array& x) {
    return std::pair{sum(x * x), std::map<std::string, Array>{{"twice", x + x}}};
  };
  const auto [value, g] = value_and_grad_aux(f)(array({1.f, 2.f}));
  EXPECT_FLOAT_EQ(item<float>(value.first), 5);
  EXPECT_THAT(to_vector<float>(value.second.at("twice")), ElementsAre(2, 4));
  EXPECT_THAT(to_vector<float>(g), ElementsAre(2, 4));
  const auto [plain, g2] = value_and_grad([](const Array& x) { return sum(x); })(array({1.f, 2.f}));
  EXPECT_FLOAT_EQ(item<float>(plain), 3);
  EXPECT_THAT(to_vector<float>(g2), ElementsAre(1, 1));
}

TEST(Grad, a_value_may_be_read_on_the_way) {
  const auto f = [](const Array& x) {
    const Array y = exp(x);
    const float scale = item<float>(sum(y)) > 0 ? 2.f : 1.f;
    return sum(y * scale);
  };
  EXPECT_NEAR(item<float>(grad(f)(array({0.f}))), 2, 1e-6);
}

TEST(Grad, training_does_not_keep_the_past) {
  Array w = array({1.f, 2.f});
  std::weak_ptr<Node> first = w.node();
  for (int step = 0; step < 3; ++step) {
    const auto [value, g] = value_and_grad([](const Array& w) { return sum(w * w); })(w);
    w = w - 0.1f * g;
    eval(w, value);
  }
  EXPECT_TRUE(first.expired());
  EXPECT_NEAR(to_vector<float>(w)[1], 2 * std::pow(0.8f, 3), 1e-6);
}

TEST(Grad, of_a_long_chain) {
  const auto f = [](Array x) {
    for (int i = 0; i < 6000; ++i) x = x * 1.0001f + 0.001f;
    return sum(x);
  };
  EXPECT_NEAR(to_vector<float>(grad(f)(array({1.f, 2.f})))[1], std::pow(1.0001, 6000), 1e-2);
}

TEST(Grad, goes_through_jit_and_into_it) {
  const auto f = [](const Array& x) { return sum(tanh(x) * x); };
  const Array x = array({0.5f, -1.f});
  const auto expected = to_vector<float>(grad(f)(x));
  EXPECT_THAT(to_vector<float>(grad(jit(f))(x)), Pointwise(FloatNear(1e-6f), expected));
  EXPECT_THAT(to_vector<float>(jit(grad(f))(x)), Pointwise(FloatNear(1e-6f), expected));
  const auto h = to_vector<float>(hessian(f)(x));
  EXPECT_THAT(to_vector<float>(jit(hessian(jit(f)))(x)), Pointwise(FloatNear(1e-5f), h));
}

TEST(Grad, goes_through_control_flow) {
  const auto f = [](const Array& x) {
    const auto [last, all] = scan(
        [](const Array& c, const Array& v) {
          return std::pair{c * v, c + v};
        },
        ones({}), x);
    const Array chosen = cond(
        last > 0, [](const Array& a) { return a * 2; }, [](const Array& a) { return -a; }, last);
    return chosen + sum(all) +
           fori_loop(
               0, 3, [](int, const Array& s) { return s * s; }, x(0));
  };
  // x = (1, 2, 3): 2 x0 x1 x2 + (1 + x0) + (x0 + x1) + (x0 x1 + x2) + x0^8
  EXPECT_THAT(to_vector<float>(grad(f)(array({1.f, 2.f, 3.f}))),
              ElementsAre(12 + 1 + 1 + 2 + 8, 6 + 1 + 1, 4 + 1));
  EXPECT_THAT(to_vector<float>(jit(grad(f))(array({1.f, 2.f, 3.f}))), ElementsAre(24, 8, 5));
}

TEST(Grad, goes_through_moves_to_other_meshes) {
  const Mesh all = make_mesh({device_count()}, {"x"}), first = make_mesh({1}, {"y"}, {devices()[0]});
  const Array x = device_put(arange(6.f), all, P("x"));
  const auto f = [&](const Array& x) { return sum(device_put(device_put(x * x, first, P()) * 3, all, P())); };
  const Array g = grad(f)(x);
  EXPECT_EQ(g.sharding(), x.sharding());
  EXPECT_THAT(to_vector<float>(g), ElementsAre(0, 6, 12, 18, 24, 30));
  const auto two_ways = [&](const Array& x) {  // an uncommitted value with cotangents from two meshes
    return device_put(sum(device_put(x, first, P())), all, P()) + sum(device_put(x, all, P("x")) * 2);
  };
  EXPECT_THAT(to_vector<float>(grad(two_ways)(arange(3.f))), ElementsAre(3, 3, 3));
}

TEST(Grad, unused_argument_has_gradient_zero) {
  const Mesh mesh = make_mesh({device_count()}, {"x"});
  const Array y = device_put(ones({5}), NamedSharding(mesh, P("x")));
  const Array g = grad<1>([](const Array& x, const Array&) { return sum(x); })(array({1.f}), y);
  EXPECT_EQ(g.sharding(), y.sharding());
  EXPECT_THAT(to_vector<float>(g), testing::Each(0));
}

TEST(Grad, refuses_what_is_not_a_real_scalar) {
  const auto message = [](auto&& call) {
    try {
      call();
    } catch (const UserError& e) {
      return std::string(e.what());
    }
    return std::string("nothing was thrown");
  };
  const Array x = array({1.f, 2.f});
  EXPECT_THROW(grad([](const Array& x) { return x * x; })(x), ShapeError);
  EXPECT_THAT(message([&] { grad([](const Array& x) { return x * x; })(x); }),
              testing::AllOf(HasSubstr("grad_test.cpp"), HasSubstr("float32[2]"), HasSubstr("jacrev")));
  EXPECT_THROW(grad([](const Array& x) { return sum(x); })(array({1, 2})), DtypeError);
  EXPECT_THROW(grad([](const Array& x) { return sum(astype(x, int32)); })(x), DtypeError);
  EXPECT_THROW(grad([](const Array& x) { return sum(make_complex(x, x)); })(x), DtypeError);
  EXPECT_THAT(message([&] { grad([](const Array& x) { return sum(nextafter(x, x)); })(x); }),
              testing::AllOf(HasSubstr("nextafter at grad_test.cpp"), HasSubstr("custom_vjp")));
}

TEST(Grad, of_steps_is_zero) {
  EXPECT_THAT(
      to_vector<float>(grad([](const Array& x) { return sum(x * sign(x) + floor(x)); })(array({-3.5f, 2.f}))),
      ElementsAre(-1, 1));
  EXPECT_THAT(to_vector<float>(hessian([](const Array& x) { return sum(abs(x) * x); })(array({-3.f, 2.f}))),
              ElementsAre(-2, 0, 0, 2));
}

TEST(Vjp, pulls_back_any_number_of_times) {
  const auto f = [](const Array& x, const std::pair<Array, Array>& yz) {
    return std::pair{x * yz.first, sum(yz.second)};
  };
  const auto [out, pullback] = vjp(f, array({1.f, 2.f}), std::pair{array({3.f, 4.f}), array({7, 8})});
  eval(out);
  for (int i = 1; i <= 2; ++i) {
    const auto [dx, dyz] = pullback({array({1.f, 1.f}) * i, sum(array({0}))});
    EXPECT_THAT(to_vector<float>(dx), ElementsAre(3 * i, 4 * i));
    EXPECT_THAT(to_vector<float>(dyz.first), ElementsAre(1 * i, 2 * i));
    EXPECT_EQ(dyz.second.dtype(), int32);
  }
}

TEST(Vjp, refuses_cotangents_of_another_structure) {
  const auto f = [](const Array& x) { return std::vector<Array>{x, x + 1}; };
  const auto pullback = vjp(f, array({1.f, 2.f})).second;
  EXPECT_THROW(pullback({array({1.f, 2.f})}), ArgumentError);
  EXPECT_THROW(pullback({array({1.f}), array({1.f, 2.f})}), ArgumentError);
  EXPECT_THROW(pullback({array({1, 2}), array({1.f, 2.f})}), ArgumentError);
  EXPECT_THROW(jvp(f, std::tuple{array({1.f, 2.f})}, std::tuple{array({1.f})}), ArgumentError);
}

TEST(Jvp, is_the_derivative_along_a_direction) {
  const auto f = [](const Array& x, const Array& y) { return x * y + sin(x); };
  const auto [out, tangent] = jvp(f, std::tuple{array({1.f, 2.f}), array({3.f, 5.f})},
                                  std::tuple{array({1.f, 0.f}), array({0.f, 1.f})});
  EXPECT_NEAR(to_vector<float>(tangent)[0], 3 + std::cos(1.f), 1e-6);
  EXPECT_NEAR(to_vector<float>(tangent)[1], 2, 1e-6);
  EXPECT_NEAR(to_vector<float>(out)[0], 3 + std::sin(1.f), 1e-6);
}

TEST(Jacrev, has_result_dims_then_argument_dims) {
  const Array a = reshape(arange(6.f), {2, 3});
  const Array j = jacrev([&](const Array& x) { return matmul(a, x) * 2; })(array({1.f, 1.f, 1.f}));
  EXPECT_EQ(j.shape(), (Shape{2, 3}));
  EXPECT_THAT(to_vector<float>(j), ElementsAre(0, 2, 4, 6, 8, 10));
}

TEST(Hessian, of_a_cubic) {
  const Array h = hessian([](const Array& x) {
    return sum(x * x * x) + sum(x * array({1.f, 0.f})) * sum(x * array({0.f, 1.f}));
  })(array({1.f, 2.f}));
  EXPECT_THAT(to_vector<float>(h), ElementsAre(6, 1, 1, 12));
}

TEST(Checkpoint, gives_the_same_gradients) {
  const auto block = [](const Array& x, const std::pair<Array, float>& p) {
    return std::pair{tanh(x * p.first) * p.second, sum(x)};
  };
  const auto f = [](auto block) {
    return [block](const Array& x, const Array& w) {
      const auto [y, s] = block(x, std::pair{w, 2.f});
      return sum(block(y, std::pair{w, 1.f}).first) * s;
    };
  };
  const Array x = array({0.5f, -1.f, 2.f}), w = array({1.f, 0.7f, -0.3f});
  const auto [dx, dw] = grad<0, 1>(f(block))(x, w);
  const auto [cx, cw] = grad<0, 1>(f(checkpoint(block)))(x, w);
  EXPECT_THAT(to_vector<float>(cx), Pointwise(FloatNear(1e-5f), to_vector<float>(dx)));
  EXPECT_THAT(to_vector<float>(cw), Pointwise(FloatNear(1e-5f), to_vector<float>(dw)));
  EXPECT_THAT(to_vector<float>(hessian(f(checkpoint(block)))(x, w)),
              Pointwise(FloatNear(1e-5f), to_vector<float>(hessian(f(block))(x, w))));
}

TEST(Checkpoint, lets_tangents_pass) {
  const auto block = [](const Array& x) { return sin(x * x) * x; };
  const auto slope = [](auto f) { return grad([f](const Array& x) { return sum(f(f(x))); }); };
  const Array x = array({0.5, -1.25, 2.0}), along = array({1.0, 0.25, -2.0});
  const auto both = [&](auto f) { return jvp(f, std::tuple{x}, std::tuple{along}); };
  const auto same = [](const auto& a, const auto& b) {
    EXPECT_THAT(to_vector<double>(a.first),
                Pointwise(testing::DoubleNear(1e-12), to_vector<double>(b.first)));
    EXPECT_THAT(to_vector<double>(a.second),
                Pointwise(testing::DoubleNear(1e-12), to_vector<double>(b.second)));
  };
  same(both(checkpoint(block)), both(block));
  same(both(jit(checkpoint(block))), both(block));
  same(both(slope(checkpoint(block))), both(slope(block)));  // forward over reverse
  same(both(checkpoint(checkpoint(block))), both(block));
  EXPECT_THAT(to_vector<double>(jacfwd(checkpoint(block))(x)),
              Pointwise(testing::DoubleNear(1e-12), to_vector<double>(jacrev(block)(x))));
}

TEST(Checkpoint, lowers_the_peak) {
  const auto block = [](const Array& x) { return sin(matmul(sin(matmul(sin(matmul(x, x)), x)), x)); };
  const auto peak = [&](auto b) {
    return jit(grad([b](Array x) {
             for (int i = 0; i < 6; ++i) x = b(x);
             return sum(x);
           }))
        .lower(ones({64, 64}))
        .compile()
        .memory_analysis()
        .peak_bytes;
  };
  EXPECT_LT(peak(checkpoint(block)), 0.75 * static_cast<double>(peak(block)));
}

TEST(CustomVjp, goes_back_by_its_rule) {
  const auto clipped = custom_vjp([](const Array& x, const Array& bound) { return x * bound; },
                                  [](const Array& x, const Array& bound) {
                                    return std::pair{x * bound, std::pair{x, bound}};
                                  },
                                  [](const std::pair<Array, Array>& saved, const Array& ct) {
                                    return std::tuple{minimum(ct * saved.second, 1.f), None};
                                  });
  const auto f = [&](const Array& x, const Array& b) { return sum(clipped(x, b) * 3); };
  const auto [dx, db] = grad<0, 1>(f)(array({1.f, 2.f}), array({0.25f, 5.f}));
  EXPECT_THAT(to_vector<float>(dx), ElementsAre(0.75, 1));
  EXPECT_THAT(to_vector<float>(db), ElementsAre(0, 0));
  EXPECT_THAT(to_vector<float>(jit(grad(f))(array({1.f, 2.f}), array({0.25f, 5.f}))), ElementsAre(0.75, 1));
}

TEST(CustomVjp, of_one_argument_twice_differentiated) {
  const auto cube = custom_vjp([](const Array& x) { return x * x * x; },
                               [](const Array& x) {
                                 return std::pair{x * x * x, x};
                               },
                               [](const Array& x, const Array& ct) { return ct * 3 * x * x; });
  EXPECT_THAT(to_vector<float>(hessian([&](const Array& x) { return sum(cube(x)); })(array({1.f, 2.f}))),
              ElementsAre(6, 0, 0, 12));
  EXPECT_THAT(to_vector<float>(jvp(cube, std::tuple{array({2.f})}, std::tuple{array({1.f})}).second),
              ElementsAre(12));
}

TEST(CustomVjp, is_mapped_with_its_rule) {
  const auto scaled = custom_vjp([](const Array& x, const Array& w) { return sum(x * w); },
                                 [](const Array& x, const Array& w) {
                                   return std::pair{sum(x * w), std::pair{x, w}};
                                 },
                                 [](const std::pair<Array, Array>& saved, const Array& ct) {
                                   return std::tuple{10 * ct * saved.second, ct * saved.first};
                                 });
  const Array x = array({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}), w = array({7.f, 8.f});
  const auto f = [&](const Array& x, const Array& w) {
    return sum(vmap(scaled, {.in_axes = {0, None}})(x, w) * array({1.f, 10.f, 100.f}));
  };
  const auto [dx, dw] = grad<0, 1>(f)(x, w);
  EXPECT_THAT(to_vector<float>(dx), ElementsAre(70, 80, 700, 800, 7000, 8000));
  EXPECT_THAT(to_vector<float>(dw), ElementsAre(531, 642));
  const auto per_example = vmap(grad<1>(scaled), {.in_axes = {0, None}})(x, w);
  EXPECT_THAT(to_vector<float>(per_example), ElementsAre(1, 2, 3, 4, 5, 6));
}

TEST(CustomVjp, refuses_cotangents_that_do_not_fit) {
  const auto bad = custom_vjp([](const Array& x) { return x; },
                              [](const Array& x) {
                                return std::pair{x, x};
                              },
                              [](const Array&, const Array& ct) { return sum(ct); });
  EXPECT_THROW(grad([&](const Array& x) { return sum(bad(x)); })(array({1.f, 2.f})), ArgumentError);
}

// A function of one pair has one argument, not two.
TEST(Trees, of_one_pair_pass_rules_and_checkpoints) {
  using Two = std::pair<Array, Array>;
  const Two p{array({1.f, 2.f}), array({3.f, 4.f})};
  const auto f = [](const Two& t) { return sum(t.first * t.second); };
  const auto expect = [&](auto g, std::vector<float> by_first) {
    const auto [first, second] = grad(g)(p);
    EXPECT_EQ(to_vector<float>(first), by_first);
    EXPECT_EQ(to_vector<float>(second), (std::vector<float>{1, 2}));
  };
  expect(checkpoint(f), {3, 4});
  expect(custom_vjp(
             f,
             [f](const Two& t) {
               return std::pair{f(t), t};
             },
             [](const Two& t, const Array& ct) {
               return Two{10 * ct * t.second, ct * t.first};
             }),
         {30, 40});
  expect(custom_jvp(f,
                    [f](const std::tuple<Two>& at, const std::tuple<Two>& along) {
                      const auto& [a, b] = std::get<0>(at);
                      const auto& [da, db] = std::get<0>(along);
                      return std::pair{f({a, b}), sum(da * b * 10 + a * db)};
                    }),
         {30, 40});
}

TEST(StopGradient, lets_none_through) {
  EXPECT_THAT(to_vector<float>(grad([](const Array& x) { return sum(x * stop_gradient(x)); })(array({3.f}))),
              ElementsAre(3));
}

}  // namespace
}  // namespace tessera
