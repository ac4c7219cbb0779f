// Groups, dtypes, collectives that cost nothing, their names in program texts, and refused arguments.
#include <gmock/gmock.h>

#include <tessera/debug.hpp>
#include <tessera/jit.hpp>

#include "over_ranks.hpp"

namespace {

using namespace over_ranks;
using testing::HasSubstr;

// The ranks scattered to groups of equal size, last rank first.
Groups dealt(int ranks, int groups) {
  Groups result(groups);
  for (int i = 0; i < ranks; ++i) result[i % groups].push_back(ranks - 1 - i);
  return result;
}

TEST(CollectiveGroups, work_for_themselves_over_any_axis) {
  for (const auto& mesh : meshes())
    for (const auto& names : axis_choices(mesh)) {
      const int n = size_along(mesh, names);
      for (int count = 1; count <= n; ++count) {
        if (n % count != 0) continue;
        const auto groups = dealt(n, count);
        const auto members = members_of(mesh, names, groups);
        const auto axis = axis_of(names);
        const auto x = values(mesh.size(), {2 * n / count, 3});
        expect_over_ranks(
            mesh, x, simulator::reduce(x, members, [](double a, double b) { return a + b; }),
            [&](const Array& b) { return psum(b, axis, {groups}); }, "psum");
        expect_over_ranks(
            mesh, x, simulator::reduce(x, members, [](double a, double b) { return std::min(a, b); }),
            [&](const Array& b) { return pmin(b, axis, {groups}); }, "pmin");
        expect_over_ranks(
            mesh, x, simulator::all_gather(x, members, 1, true),
            [&](const Array& b) {
              return all_gather(b, axis, {.axis = 1, .tiled = true, .axis_index_groups = groups});
            },
            "all_gather");
        expect_over_ranks(
            mesh, x, simulator::psum_scatter(x, members, 0, true),
            [&](const Array& b) {
              return psum_scatter(b, axis, {.tiled = true, .axis_index_groups = groups});
            },
            "psum_scatter");
        expect_over_ranks(
            mesh, x, simulator::all_to_all(x, members, 0, 1, true),
            [&](const Array& b) {
              return all_to_all(b, axis, 0, 1, {.tiled = true, .axis_index_groups = groups});
            },
            "all_to_all");
      }
    }
}

TEST(CollectiveGroups, reductions_take_groups_of_any_size) {
  const int p = device_count();
  const Mesh mesh = make_mesh({p}, {"x"});
  Groups groups{{0}};
  if (p > 1) groups.push_back({});
  for (int i = 1; i < p; ++i) groups[1].push_back(i);
  const auto x = values(p, {3});
  const auto members = members_of(mesh, {"x"}, groups);
  const auto sum = simulator::reduce(x, members, [](double a, double b) { return a + b; });
  expect_over_ranks(
      mesh, x, sum, [&](const Array& b) { return psum(b, "x", {groups}); }, "psum");
  auto mean = sum;
  for (std::size_t r = 0; r < mean.size(); ++r)
    for (auto& e : mean[r].data) e /= static_cast<double>(members[r].size());
  expect_over_ranks(
      mesh, x, mean, [&](const Array& b) { return pmean(b, "x", {groups}); }, "pmean", float64);
}

Mesh line() { return make_mesh({device_count()}, {"x"}); }
template <class F> Array mapped(F f, const Array& x) { return shard_map(f, line(), P("x"), P("x"))(x); }

TEST(CollectiveDtypes, bool_counts_integers_wrap_complex_adds) {
  const int p = device_count();
  const Array rank = arange(p);
  const Array truth = mapped([](const Array& b) { return psum(b > 0, "x"); }, rank);
  EXPECT_EQ(truth.dtype(), int32);
  EXPECT_EQ(to_vector<int>(truth), std::vector<int>(p, p - 1));
  EXPECT_EQ(to_vector<bool>(mapped([](const Array& b) { return pmax(b > 0, "x"); }, rank)),
            std::vector<bool>(p, p > 1));
  EXPECT_EQ(to_vector<bool>(mapped([](const Array& b) { return pmin(b >= 0, "x"); }, rank)),
            std::vector<bool>(p, true));
  const Array bytes = mapped([](const Array& b) { return psum(b, "x"); }, full({p}, 100, int8));
  EXPECT_EQ(bytes.dtype(), int8);
  EXPECT_EQ(to_vector<int>(bytes), std::vector<int>(p, static_cast<std::int8_t>(100 * p)));
  EXPECT_EQ(mapped([](const Array& b) { return pmean(b, "x"); }, rank).dtype(), float32);
  const std::complex<double> unit(1, -2);
  const Array z = full({p}, unit, complex128);
  EXPECT_EQ(to_vector<std::complex<double>>(mapped([](const Array& b) { return psum(b, "x"); }, z)),
            std::vector<std::complex<double>>(p, unit * static_cast<double>(p)));
  for (const Dtype dtype : {bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64,
                            complex64, complex128}) {
    const Array x = astype(arange(2 * p * p) % 2, dtype);
    const Array y = mapped(
        [](const Array& b) {
          return all_to_all(ppermute(all_gather(b, "x", {.tiled = true}), "x", {{0, 0}}), "x", 0, 0,
                            {.tiled = true});
        },
        x);
    EXPECT_EQ(y.dtype(), dtype);
  }
}

TEST(CollectiveCosts, what_is_the_same_on_all_ranks_is_multiplied) {
  const Array x = device_put(arange(2.0f * static_cast<float>(device_count())), line(), P("x"));
  eval(x);
  const debug::CommStats stats;
  const Array y = block_until_ready(mapped(
      [](const Array& b) {
        return b * psum(1, "x") + psum(ones({2}) * 3, "x") + pmax(ones({2}), "x") + axis_index("x") * 0;
      },
      x));
  EXPECT_EQ(stats.calls(), 0);
  EXPECT_EQ(stats.bytes(), 0);
  const double p = device_count();
  EXPECT_EQ(to_vector<double>(y)[1], 1 * p + 3 * p + 1);
}

TEST(CollectiveCosts, sums_that_are_added_travel_together) {
  if (device_count() == 1) return;
  const Array x = device_put(arange(4.0f * static_cast<float>(device_count())), line(), P("x"));
  const auto f = [](const Array& x) {
    return mapped([](const Array& b) { return sum(psum(b, "x") * 2 + psum(b * b, "x"), 0, true) + b; }, x);
  };
  EXPECT_EQ(item<float>(sum(f(x)(slice(0, 1)))), item<float>(sum(x * 2 + x * x)));
  const auto text = jit(f).lower(x).compile().as_text();
  std::size_t count = 0;
  for (auto at = text.find("all-reduce("); at != std::string::npos; at = text.find("all-reduce(", at + 1))
    ++count;
  EXPECT_EQ(count, 1u) << text;
  EXPECT_THAT(text, HasSubstr("bytes=" + std::to_string(2 * (device_count() - 1) * 4 / device_count())))
      << text;  // the all-reduce has one number, not four
}

// A value that differs between ranks must not be applied to the terms of a sum.
TEST(CollectiveCosts, sums_are_finished_before_they_meet_varying_values) {
  const int p = device_count();
  const Array x = arange(p);
  const Array y =
      mapped([](const Array& b) { return psum(b, "x") * (b + 1) - psum(b * 2, "x") * axis_index("x"); }, x);
  const int total = p * (p - 1) / 2;
  std::vector<int> wanted;
  for (int r = 0; r < p; ++r) wanted.push_back(total * (r + 1) - 2 * total * r);
  EXPECT_EQ(to_vector<int>(y), wanted);
}

TEST(CollectiveTexts, call_collectives_by_their_usual_names) {
  if (device_count() == 1) return;
  const int p = device_count();
  const Array x = device_put(ones({p * p, p}), line(), P("x"));
  const auto text_of = [&](auto body) {
    return jit([&](const Array& x) { return mapped(body, x); }).lower(x).compile().as_text();
  };
  EXPECT_THAT(text_of([](const Array& b) { return psum(b, "x") + b; }), HasSubstr("all-reduce"));
  EXPECT_THAT(text_of([](const Array& b) { return all_gather(b, "x"); }), HasSubstr("all-gather"));
  EXPECT_THAT(text_of([](const Array& b) { return psum_scatter(b, "x", {.tiled = true}); }),
              HasSubstr("reduce-scatter"));
  EXPECT_THAT(text_of([](const Array& b) { return all_to_all(b, "x", 0, 1, {.tiled = true}); }),
              HasSubstr("all-to-all"));
  EXPECT_THAT(text_of([](const Array& b) {
                return ppermute(b, "x", {{0, 1}});
              }),
              HasSubstr("collective-permute"));
  const debug::CommStats stats;
  block_until_ready(mapped([](const Array& b) { return all_gather(b, "x"); }, x));
  EXPECT_EQ(stats.calls("all-gather"), 1);
  EXPECT_EQ(stats.bytes("all-gather"), (p - 1) * p * p * 4);
}

template <class Error, class F> void refused(F body, const std::vector<std::string>& parts) {
  const int p = device_count();
  try {
    mapped(body, ones({p, p + 1}));
    FAIL() << "no error; wanted " << parts[0];
  } catch (const Error& error) {
    for (const auto& part : parts) EXPECT_THAT(error.what(), HasSubstr(part));
    EXPECT_THAT(error.what(), HasSubstr("semantics_test.cpp"));
  }
}

TEST(CollectiveErrors, name_the_facts) {
  const int p = device_count();
  const auto size = std::to_string(p);
  refused<ArgumentError>(
      [&](const Array& b) {
        return ppermute(b, "x", {{0, 0}, {0, 0}});
      },
      {"ppermute", "rank 0 is a source twice"});
  refused<ArgumentError>(
      [&](const Array& b) {
        return ppermute(b, "x", {{0, p}});
      },
      {"ppermute", "no rank " + size, "size " + size});
  refused<ArgumentError>([&](const Array& b) { return ppermute(b, "x", {{-1, 0}}); }, {"no rank -1"});
  if (p > 1)
    refused<ArgumentError>(
        [&](const Array& b) {
          return ppermute(b, "x", {{0, 1}, {1, 1}});
        },
        {"rank 1 is a destination twice"});
  refused<ArgumentError>([&](const Array& b) { return pshuffle(b, "x", std::vector<int>(p + 1, 0)); },
                         {"pshuffle", std::to_string(p + 1) + " entries", "size " + size});
  refused<ArgumentError>([&](const Array& b) { return pbroadcast(b, "x", p); },
                         {"pbroadcast", "source " + size});
  refused<ArgumentError>(
      [&](const Array& b) {
        return psum(b, "x", {{{0, 0}}});
      },
      {"psum", "rank 0 is named twice"});
  refused<ArgumentError>([&](const Array& b) { return psum(b, "x", {{{p}}}); }, {"psum", "no rank " + size});
  if (p > 1) {
    refused<ArgumentError>([&](const Array& b) { return psum(b, "x", {{{0}}}); }, {"rank 1 is in no group"});
    refused<ShapeError>(
        [&](const Array& b) { return psum_scatter(b, "x", {.scatter_dimension = 1, .tiled = true}); },
        {"psum_scatter", "dimension 1", std::to_string(p + 1), "multiple of " + size});
    refused<ShapeError>([&](const Array& b) { return all_to_all(b, "x", 1, 0, {.tiled = true}); },
                        {"all_to_all", "dimension 1"});
  }
  if (p > 2) {
    Groups uneven{{0}, {}};
    for (int i = 1; i < p; ++i) uneven[1].push_back(i);
    refused<ArgumentError>([&](const Array& b) { return all_gather(b, "x", {.axis_index_groups = uneven}); },
                           {"all_gather", "equal size"});
  }
  refused<ShapeError>([&](const Array& b) { return psum_scatter(b, "x", {.scatter_dimension = 1}); },
                      {"psum_scatter", "size " + size, "tiled = true"});
  refused<ShapeError>([&](const Array& b) { return all_to_all(b, "x", 1, 0); },
                      {"all_to_all", "tiled = true"});
  refused<IndexError>([&](const Array& b) { return all_gather(b, "x", {.axis = 3}); },
                      {"all_gather", "axis 3"});
  refused<IndexError>([&](const Array& b) { return all_gather(b, "x", {.axis = 2, .tiled = true}); },
                      {"all_gather", "axis 2"});
  refused<AxisNameError>([&](const Array& b) { return pmean(b, "rows"); }, {"'rows'", "'x' (size " + size});
  refused<AxisNameError>([&](const Array& b) { return psum(b, axes("x", "x")); }, {"named twice"});
  refused<AxisNameError>([&](const Array& b) { return b * axis_index("q") + axis_size("q"); }, {"'q'"});
  refused<DtypeError>([&](const Array& b) { return real(pmax(astype(b, complex64), "x")); },
                      {"pmax", "complex"});
}

}  // namespace
