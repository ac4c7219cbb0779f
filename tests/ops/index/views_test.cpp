// Shifts, slices, pads, flips and concatenations that a chain reads in place: compared with plain loops on
// any sharding, and checked not to be copied.
#include <tessera/control.hpp>
#include <tessera/debug.hpp>
#include <tessera/jit.hpp>
#include <tessera/ops/window.hpp>

#include "support/layouts.hpp"

namespace tessera::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using Value = std::function<double(const Position&)>;
std::int64_t wrapped(std::int64_t i, std::int64_t n) { return ((i % n) + n) % n; }

// An array and the expected value of its elements.
struct Term {
  Array array;
  Value value;
};

Term shifted_at_random(std::mt19937& random, const Term& x, const Shape& shape) {
  const int d = pick(random, 0, shape.ndim() - 1), by = pick(random, -5, 5);
  const auto n = shape[d];
  const auto moved = [=](Position at) {
    at[d] = wrapped(at[d] - by, n);
    return x.value(at);
  };
  switch (random() % 5) {
    case 0: return {roll(x.array, by, d), moved};
    case 1:
      return {flip(x.array, d), [=](Position at) {
                at[d] = n - 1 - at[d];
                return x.value(at);
              }};
    case 2: {  // padded at one end
      const int width = pick(random, 0, static_cast<int>(n));
      std::vector<std::pair<int, int>> widths(shape.size(), {0, 0});
      widths[d] = {width, 0};
      std::vector<IndexPart> parts(shape.size(), IndexPart(slice()));
      parts[d] = slice(0, n);
      return {index(pad(x.array, widths, 3), parts), [=](Position at) {
                at[d] -= width;
                return at[d] < 0 ? 3.0 : x.value(at);
              }};
    }
    case 3: {  // every other element, twice
      std::vector<IndexPart> parts(shape.size(), IndexPart(slice()));
      parts[d] = slice(0, n, 2);
      const Array half = index(x.array, parts);
      const auto kept = half.shape()[d];
      Array both = concatenate({half, half}, d);
      if (both.shape()[d] > n) {
        parts[d] = slice(0, n);
        both = index(both, parts);
      }
      return {both, [=](Position at) {
                at[d] = 2 * (at[d] % kept);
                return x.value(at);
              }};
    }
    default:
      return {shifted(x.array, by, d, Boundary::constant, 4), [=](Position at) {
                at[d] += by;
                return at[d] < 0 || at[d] >= n ? 4.0 : x.value(at);
              }};
  }
}

TEST(Views, chains_of_shifted_operands_equal_plain_loops) {
  std::mt19937 random(41);
  for (int round = 0; round < 60; ++round) {
    const Mesh mesh = random_mesh(random);
    std::vector<std::int64_t> extents;
    for (int d = pick(random, 1, 3); d > 0; --d) extents.push_back(pick(random, 1, round % 6 == 0 ? 40 : 9));
    const Shape shape(extents);
    const Dtype dtypes[] = {float32, float64, int32, complex64, uint8};
    const Dtype dtype = dtypes[random() % 5];
    std::vector<Term> terms;
    std::string what = to_string(shape) + name(dtype);
    for (const int factor : {3, 5}) {
      const Value value = [=](const Position& at) {
        return static_cast<double>(flat(at, shape) * factor % 23);
      };
      const Sharding sharding = random_sharding(random, mesh, shape.ndim());
      what += " " + text_of(sharding);
      Array x = make(shape, dtype, value);
      if (random() % 6 != 0) x = device_put(x, sharding);
      terms.push_back({x, value});
    }
    Term sum = terms[0];
    for (int k = pick(random, 1, 4); k > 0; --k) {
      const Term next = shifted_at_random(random, terms[random() % 2], shape);
      const Term before = sum;
      sum = {before.array + next.array,
             [=](const Position& at) { return before.value(at) + next.value(at); }};
    }
    expect_elements(sum.array, shape, sum.value, what);
    const Array total = astype(tessera::sum(astype(sum.array, float64)), float64);
    double expected = 0;
    for (const double v : to_vector<double>(sum.array)) expected += v;
    EXPECT_EQ(item<double>(total), expected) << what;
  }
}

// Long enough for machine code, streaming stores, and several pieces per row.
TEST(Views, large_ones_too) {
  const Mesh line = make_mesh({device_count()}, {"x"});
  for (const Shape& shape : {Shape{3'000'017}, Shape{1037, 2911}, Shape{70, 130, 333}}) {
    const int last = shape.ndim() - 1;
    for (const P& spec : {P("x"), P()}) {
      const Array flat = arange(shape.elements(), float32) % 251;
      const Array x = device_put(reshape(flat, shape), NamedSharding(line, spec));
      const auto f = jit([=](Array u) {
        return 2 * u - roll(u, 1, 0) + 3 * roll(u, -2, last) - shifted(u, 7, 0, Boundary::constant, 5);
      });
      const auto got = to_vector<float>(f(x));
      const auto u = to_vector<float>(x);
      const std::int64_t rows = shape[0], width = shape.elements() / rows, n = shape.back();
      std::int64_t wrong = 0;
      for (std::int64_t i = 0; i < shape.elements(); ++i) {
        const auto row = i / width, in_row = i % width, in_line = i % n;
        const float above = u[wrapped(row - 1, rows) * width + in_row],
                    beside = u[i - in_line + (in_line + 2) % n],
                    below = row + 7 < rows ? u[(row + 7) * width + in_row] : 5.0f;
        wrong += got[i] != 2 * u[i] - above + 3 * beside - below;
      }
      EXPECT_EQ(wrong, 0) << to_string(shape) << " " << spec;
    }
  }
}

TEST(Views, nothing_is_written_where_a_view_still_reads) {
  const int n = 20'000;
  const Mesh line = make_mesh({device_count()}, {"x"});
  const Array x = device_put(arange(n, float64) % 10, NamedSharding(line, P("x")));
  // t is an intermediate value with no later use: the result must not overwrite its memory.
  const auto f = jit([](Array u) {
    const Array t = cumsum(u);
    return t + roll(t, 1) - 2 * roll(t, -1);
  });
  const auto u = to_vector<double>(x);
  std::vector<double> t(u);
  std::partial_sum(u.begin(), u.end(), t.begin());
  const auto got = to_vector<double>(f(x));
  for (int i = 0; i < n; ++i) ASSERT_EQ(got[i], t[i] + t[wrapped(i - 1, n)] - 2 * t[(i + 1) % n]) << i;

  // Computed step by step in a loop that replaces the carried value.
  auto expected = u;
  for (int s = 0; s < 5; ++s) {
    const auto old = expected;
    for (int i = 0; i < n; ++i) expected[i] = 0.5 * (old[wrapped(i - 1, n)] + old[(i + 1) % n]);
  }
  const Array steps = fori_loop(
      0, 5, [](const Array&, const Array& v) { return 0.5 * (roll(v, 1) + roll(v, -1)); }, x);
  EXPECT_EQ(to_vector<double>(steps), expected);
}

// Shifts of shifts, like the eight neighbours of the game of life, and a stencil of 27 points.
TEST(Views, shifts_of_shifts_too) {
  std::mt19937 random(7);
  const std::int64_t rows = 23, columns = 31;
  for (int round = 0; round < 6; ++round) {
    const Mesh mesh = random_mesh(random);
    const Array start = make({rows, columns}, int32, [](const Position& at) {
      return static_cast<double>((at[0] * 7 + at[1] * at[1] * 5 + at[0] * at[1]) % 3 == 0);
    });
    const Sharding sharding = random_sharding(random, mesh, 2);
    Array board = device_put(start, sharding);
    auto alive = to_vector<int>(start);
    for (int generation = 0; generation < 3; ++generation) {
      Array neighbours = zeros({rows, columns}, int32);
      for (int i = -1; i <= 1; ++i)
        for (int j = -1; j <= 1; ++j)
          if (i != 0 || j != 0) neighbours = neighbours + roll(roll(board, i, 0), j, 1);
      board = where((neighbours == 3) | ((board == 1) & (neighbours == 2)), 1, 0);
      auto next = alive;
      for (int i = 0; i < rows; ++i)
        for (int j = 0; j < columns; ++j) {
          int count = 0;
          for (int k = 0; k < 9; ++k)
            if (k != 4)
              count += alive[wrapped(i + k / 3 - 1, rows) * columns + wrapped(j + k % 3 - 1, columns)];
          next[i * columns + j] = count == 3 || (alive[i * columns + j] == 1 && count == 2);
        }
      alive = next;
      eval(board);
    }
    EXPECT_EQ(to_vector<int>(board), alive) << text_of(sharding);
  }
  // With other boundary modes, with steps, on three dims.
  for (int round = 0; round < 6; ++round) {
    const Mesh mesh = random_mesh(random);
    const Shape shape{9, 10, 11};
    const Value value = [&](const Position& at) { return static_cast<double>(flat(at, shape) * 7 % 31); };
    const Sharding sharding = random_sharding(random, mesh, 3);
    const Array x = device_put(make(shape, float64, value), sharding);
    const auto boundary = round % 2 ? Boundary::constant : Boundary::reflect;
    const Array got =
        stencil([](const Neighbours& v) { return v(1, -1, 1) + 2 * v(-1, 0, -1) - 3 * v(0, 1, 1) + v(); }, x,
                boundary, 9);
    const auto at = [&](Position p, std::int64_t i, std::int64_t j, std::int64_t k) {
      const std::int64_t by[] = {i, j, k};
      for (int d = 0; d < 3; ++d) {
        p[d] += by[d];
        const auto n = shape[d];
        if (p[d] >= 0 && p[d] < n) continue;
        if (boundary == Boundary::constant) return 9.0;
        p[d] = p[d] < 0 ? -p[d] : 2 * n - 2 - p[d];
      }
      return value(p);
    };
    expect_elements(
        got, shape,
        [&](const Position& p) {
          return at(p, 1, -1, 1) + 2 * at(p, -1, 0, -1) - 3 * at(p, 0, 1, 1) + value(p);
        },
        text_of(sharding));
    const Array stepped = flip(index(roll(x, 4, 1), {slice(), slice(1, None, 2)}), 1) * 2 +
                          index(flip(x, 1), {slice(), slice(0, 5)});
    expect_elements(
        stepped, {9, 5, 11},
        [&](const Position& p) {
          return 2 * value({p[0], wrapped(2 * (4 - p[1]) + 1 - 4, 10), p[2]}) + value({p[0], 9 - p[1], p[2]});
        },
        text_of(sharding));
  }
}

TEST(Views, are_not_copied) {
  const int n = device_count();
  const Mesh line = make_mesh({n}, {"x"});
  const Array x = device_put(zeros({8 * n, 10}), NamedSharding(line, P("x")));
  const auto text = program_of(x - roll(x, 1, 0) + roll(x, 1, 1));
  EXPECT_THAT(text, HasSubstr("remap(%0) view")) << text;
  EXPECT_THAT(text, HasSubstr(n == 1 ? "remap(%0) view" : "collective-permute(%0) view")) << text;
  // A received line is shifted along itself in place.
  const auto corners =
      program_text(compile(collect({[&] {
                                     const Array line_above = roll(x, 1, 0);
                                     return x - line_above + roll(line_above, 1, 1) + roll(line_above, -1, 1);
                                   }()},
                                   false)));
  std::size_t views = 0;
  for (auto at = corners.find(") view"); at != std::string::npos; at = corners.find(") view", at + 1))
    ++views;
  EXPECT_EQ(views, 3) << corners;
  // r has another reader, so it is materialised.
  const Array r = roll(x, 1, 1);
  EXPECT_THAT(program_text(compile(collect({x - r, r}, false))), Not(HasSubstr(") view")));
  // A view of one line of ten elements would keep all of x alive.
  EXPECT_THAT(program_of(x[0] + 1), Not(HasSubstr(") view")));
  // No memory is needed besides the result's.
  const auto memory = jit([](Array u) { return u - roll(u, 1, 1); }).lower(x).compile().memory_analysis();
  EXPECT_EQ(memory.temporary_bytes, 0);
  EXPECT_EQ(memory.peak_bytes, memory.argument_bytes + memory.output_bytes);
}

TEST(Views, a_search_for_nan_sees_no_memory_that_nobody_wrote) {
  debug::set_nan_check(true);
  const Mesh line = make_mesh({device_count()}, {"x"});
  const Array x = device_put(ones({64 * device_count(), 50}), NamedSharding(line, P("x")));
  const Array nan = x / 0;
  EXPECT_NO_THROW(eval(nan));  // infinite, not NaN
  eval(nan - 1);
  EXPECT_EQ(item<float>(sum(x + roll(x, 1, 0))), 2.0f * 64 * 50 * device_count());
  EXPECT_THAT(error_of<NanError>([&] { eval(nan - roll(nan, 1, 0)); }), HasSubstr("NaN"));
  debug::set_nan_check(false);
}

}  // namespace
}  // namespace tessera::test
