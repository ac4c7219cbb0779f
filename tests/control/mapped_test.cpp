// Loops and branches inside shard_map and around it, and on some of the devices.
#include <tessera/collectives.hpp>

#include "control/loops.hpp"

namespace tessera::test {
namespace {

TEST(SomeDevices, take_part_alone) {
  const int n = std::max(1, device_count() - 1);
  const auto all = devices();
  const Mesh mesh = make_mesh({n}, {"x"}, {all.begin(), all.begin() + n});
  const Array host = spread({9, 3}), x = device_put(host, mesh, P("x"));
  const auto f = [](const Array& a) {
    const Array b = fori_loop(
        0, 12, [](const Array& i, const Array& v) { return v * 0.9 + mean(v) * i + ones({3}, float64); }, a);
    const Array c = while_loop([](const Array& v) { return sum(abs(v)) > 1.0; },
                               [](const Array& v) { return v * 0.5; }, b);
    return cond(
        sum(c) > 0.0, [](const Array& v) { return v - mean(v); }, [](const Array& v) { return v * 2.0; }, c);
  };
  expect_close(device_put(jit(f)(x), line(), P()), f(host), "values");
  expect_close(device_put(jit(grad([&](const Array& a) {
                            return sum(fori_loop(
                                0, 12, [](const Array&, const Array& v) { return sin(v) + mean(v); }, a));
                          }))(x),
                          line(), P()),
               grad([&](const Array& a) {
                 return sum(fori_loop(
                     0, 12, [](const Array&, const Array& v) { return sin(v) + mean(v); }, a));
               })(host),
               "gradient");
}

std::vector<std::pair<int, int>> ring() {
  std::vector<std::pair<int, int>> pairs;
  for (int r = 0; r < device_count(); ++r) pairs.emplace_back(r, (r + 1) % device_count());
  return pairs;
}

TEST(Mapped, scan_inside_shard_map) {
  const Mesh mesh = line();
  const int n = device_count();
  const Array x = spread({3 * n, 4});
  const auto body = [](const Array& block) {
    return fori_loop(
        0, 15,
        [](const Array&, const Array& v) {
          return v * 0.5 + 0.1 * ppermute(v, "x", ring()) + 0.01 * psum(sum(v), "x");
        },
        block);
  };
  const auto f = shard_map(body, mesh, P("x"), P("x"));
  expect_close(jit(f)(x), f(x), "values");
  const auto loss = [&](const Array& v) { return sum(f(v) * f(v)); };
  expect_close(jit(grad(loss))(x), grad(loss)(x), "gradient");
}

// Blocks of different sizes have loops of different lengths, short ones too.
TEST(Mapped, loops_over_the_rows_of_uneven_blocks) {
  const auto mesh = line();
  const int n = device_count();
  const auto running = [](const Array& block) {
    return scan([](const Array& c, const Array& row) { return std::pair(c + row, c * row); },
                zeros({4}, float64), block)
        .second;
  };
  const auto totals = [](const Array& block) {
    return psum(
        fori_loop(
            0, static_cast<int>(block.shape()[0]),
            [&](const Array& i, const Array& c) { return c + sin(take(block, i, 0)); }, zeros({4}, float64)),
        "x");
  };
  const auto with_messages = [](const Array& block) {
    return scan([](const Array& c, const Array& row) { return std::pair(sin(c) + psum(row, "x"), c); },
                zeros({4}, float64), block)
        .first;
  };
  for (const int rows : {2 * n - 1, 3 * n - 1, 11 * n - 1}) {
    const Array x = spread({rows, 4});
    const auto name = std::to_string(rows) + " rows";
    const auto block = (rows + n - 1) / n;
    const auto block_by_block = [&](const Array& v) {
      std::vector<Array> made;
      for (int r = 0; r < n; ++r)
        made.push_back(running(v(slice(r * block, std::min(rows, (r + 1) * block)))));
      return concatenate(made);
    };
    const auto gradient = [](const std::function<Array(const Array&)>& f) {
      return grad([f](const Array& v) { return sum(f(v) * cos(v)); });
    };
    const auto stacks = shard_map(running, mesh, P("x"), P("x"));
    expect_close(stacks(x), block_by_block(x), name);
    expect_close(jit(stacks)(x), block_by_block(x), name + " under jit");
    expect_close(gradient(stacks)(x), gradient(block_by_block)(x), name + ", gradient of the stack");
    expect_close(jit(gradient(stacks))(x), gradient(block_by_block)(x), name + ", the same under jit");
    const auto sums = shard_map(totals, mesh, P("x"), P());
    expect_close(sums(x), sum(sin(x), 0), name);
    expect_close(jit(sums)(x), sum(sin(x), 0), name + " under jit");
    expect_close(grad([&](const Array& v) { return sum(sums(v)); })(x), cos(x), name + ", gradient");
    if (n == 1) continue;
    const auto messages = shard_map(with_messages, mesh, P("x"), P());
    for (const auto& f :
         {std::function<Array(const Array&)>(messages), std::function<Array(const Array&)>(jit(messages))})
      expect_error<ShardingError>(
          [&] { f(x); }, {"takes another way on some ranks", "with " + std::to_string(block) + " steps",
                          "with " + std::to_string(block - 1) + " steps", "Pad the arguments"});
  }
}

TEST(Mapped, scan_inside_shard_map_with_weights_that_all_ranks_share) {
  const Mesh mesh = line();
  const int n = device_count();
  const Array x = spread({2 * n, 12, 3}), w = spread({3, 3}, -0.5, 0.5, 4);
  const auto body = [](const Array& weights, const Array& block) {
    const auto step = [&](const Array& h, const Array& v) {
      return std::pair{tanh(matmul(h, weights) + v), h};
    };
    return psum(sum(scan(step, zeros_like(block(slice(), 0)), moveaxis(block, 1, 0)).first), "x");
  };
  for (const bool checked : {true, false}) {
    const auto f = shard_map(body, mesh, {P(), P("x")}, P(), {.check_vma = checked});
    expect_close(jit(f)(w, x), f(w, x), "values");
    const auto [gw, gx] = jit(grad<0, 1>(f))(w, x);
    const auto [ew, ex] = grad<0, 1>(f)(w, x);
    expect_close(gw, ew, "weights");
    expect_close(gx, ex, "data");
    const auto pushed = [&](const Array& a, const Array& b) {
      return jvp(f, std::tuple(a, b), std::tuple(a, b)).second;
    };
    expect_close(jit(pushed)(w, x), pushed(w, x), "tangents");
  }
}

TEST(Mapped, shard_map_inside_scan) {
  const Mesh mesh = line();
  const Array x = spread({4 * device_count() - (device_count() > 1 ? 1 : 0), 3}), steps = spread({11});
  const auto mapped =
      shard_map([](const Array& block) { return sin(block) + psum(sum(block), "x"); }, mesh, P("x"), P("x"));
  const auto f = [&](const Array& v, const Array& s) {
    return scan([&](const Array& c, const Array& a) { return std::pair{mapped(c) * 0.1 + a, sum(c)}; }, v, s);
  };
  const auto [c, ys] = jit(f)(device_put(x, mesh, P("x")), steps);
  const auto [ec, eys] = f(device_put(x, mesh, P("x")), steps);
  expect_close(c, ec, "carry");
  expect_close(ys, eys, "stack");
}

TEST(Mapped, ranks_may_take_different_branches) {
  const Mesh mesh = line();
  const Array x = spread({2 * device_count(), 3});
  const auto f = shard_map(
      [](const Array& block) {
        return cond(
            axis_index("x") % 2 == 0, [](const Array& b) { return b * psum(sum(b), "x"); },
            [](const Array& b) { return sin(b); }, block);
      },
      mesh, P("x"), P("x"));
  expect_close(jit(f)(x), f(x), "branches");
}

TEST(Mapped, ranks_that_stop_at_different_steps_may_not_talk) {
  const Mesh mesh = line();
  const Array x = spread({2 * device_count()}, 0.1, 3);
  const auto quiet = shard_map(
      [](const Array& b) {
        return while_loop([](const Array& v) { return sum(v) < 100.0; },
                          [](const Array& v) { return v * 1.5; }, b);
      },
      mesh, P("x"), P("x"));
  std::vector<Array> blocks;
  for (int r = 0; r < device_count(); ++r)
    blocks.push_back(while_loop([](const Array& v) { return sum(v) < 100.0; },
                                [](const Array& v) { return v * 1.5; }, Array(x(slice(2 * r, 2 * r + 2)))));
  expect_close(jit(quiet)(x), concatenate(blocks, 0), "each its own number of steps");
  if (device_count() == 1) return;
  const auto talking = shard_map(
      [](const Array& b) {
        return while_loop([](const Array& v) { return sum(v) < 100.0; },
                          [](const Array& v) { return v * 1.5 + psum(v, "x"); }, b);
      },
      mesh, P("x"), P("x"));
  try {
    jit(talking)(x);
    FAIL() << "no error";
  } catch (const ShardingError& error) {
    EXPECT_THAT(error.what(), HasSubstr("pmax"));
  }
}

}  // namespace
}  // namespace tessera::test
