#include "kernels/move/copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using Strides = std::vector<std::int64_t>;

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> data(bytes);
  std::uint32_t state = 12345;
  for (auto& b : data) b = static_cast<std::byte>((state = state * 1664525u + 1013904223u) >> 24);
  return data;
}

std::int64_t offset(const Strides& index, std::span<const std::int64_t> strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0});
}

// All bytes of dst outside the copied elements must keep their value.
void expect_copy(const Shape& extents, const Strides& dst_strides, const Strides& src_strides,
                 std::size_t item) {
  std::int64_t dst_low = 0, dst_high = 0, src_low = 0, src_high = 0;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    (dst_strides[d] < 0 ? dst_low : dst_high) += (extents[d] - 1) * dst_strides[d];
    (src_strides[d] < 0 ? src_low : src_high) += (extents[d] - 1) * src_strides[d];
  }
  const auto size = [&](std::int64_t low, std::int64_t high) {
    return static_cast<std::size_t>(std::max<std::int64_t>(high - low + 1, 0)) * item;
  };
  const auto src = pattern(size(src_low, src_high));
  std::vector<std::byte> dst(size(dst_low, dst_high) + 64, std::byte{0xEE}), expected = dst;
  const std::byte* src_base = src.data() - src_low * static_cast<std::int64_t>(item);
  const std::int64_t dst_base = -dst_low * static_cast<std::int64_t>(item);
  Strides index(extents.size(), 0);
  for (std::int64_t e = 0; e < extents.elements(); ++e) {
    std::memcpy(expected.data() + dst_base + offset(index, dst_strides) * static_cast<std::int64_t>(item),
                src_base + offset(index, src_strides) * static_cast<std::int64_t>(item), item);
    for (std::size_t d = extents.size(); d-- > 0;) {
      if (++index[d] < extents[d]) break;
      index[d] = 0;
    }
  }
  copy_strided(dst.data() + dst_base, dst_strides, src_base, src_strides, extents, item);
  ASSERT_TRUE(dst == expected) << to_string(extents) << " item " << item;
}

TEST(copy_strided, permutations_slices_flips_and_broadcasts_of_every_item_size) {
  for (const std::size_t item : {1u, 2u, 4u, 8u, 16u})
    for (const Shape& extents : {Shape{3, 4, 5}, Shape{1, 17, 33}, Shape{40, 3, 70}, Shape{67, 35, 2},
                                 Shape{2, 65, 64}, Shape{130, 1, 131}}) {
      const std::int64_t a = extents[0], b = extents[1], c = extents[2];
      const std::vector<Strides> dense = {{b * c, c, 1}, {c, a * c, 1}, {1, a, a * b},
                                          {b, 1, a * b}, {1, a * c, a}, {c * b, 1, b}};
      const std::vector<Strides> other = {{b * c * 2, c * 2, 2},
                                          {(b + 3) * (c + 5), c + 5, 1},
                                          {-b * c, -c, -1},
                                          {b * c, -c, 1},
                                          {b * c, c, -1}};
      const std::vector<Strides> broadcast = {{0, 0, 1}, {0, 1, 0}, {1, 0, 0}, {0, 0, 0}};
      for (const auto& to : dense)
        for (const auto* group : {&dense, &other, &broadcast})
          for (const auto& from : *group) expect_copy(extents, to, from, item);
      for (const auto& to : other)
        for (const auto& from : dense) expect_copy(extents, to, from, item);
    }
}

TEST(copy_strided, empty_and_scalar) {
  expect_copy(Shape{}, {}, {}, 4);
  expect_copy(Shape{3, 0, 2}, {0, 2, 1}, {0, 2, 1}, 4);
  expect_copy(Shape{1, 1}, {5, -7}, {-9, 0}, 8);
}

TEST(transpose, every_permutation_of_four_dims) {
  const Shape shape{5, 18, 3, 33};
  const auto x = testing::random_values<std::int32_t>(shape.elements());
  std::vector<int> perm{0, 1, 2, 3};
  const auto strides = std::vector<std::int64_t>{18 * 3 * 33, 3 * 33, 33, 1};
  do {
    std::vector<std::int32_t> out(x.size());
    transpose(out.data(), x.data(), shape, perm, 4);
    std::size_t at = 0;
    const auto p = [&](int d) { return static_cast<std::size_t>(perm[d]); };
    for (std::int64_t i = 0; i < shape[p(0)]; ++i)
      for (std::int64_t j = 0; j < shape[p(1)]; ++j)
        for (std::int64_t k = 0; k < shape[p(2)]; ++k)
          for (std::int64_t l = 0; l < shape[p(3)]; ++l, ++at)
            ASSERT_EQ(out[at],
                      x[i * strides[p(0)] + j * strides[p(1)] + k * strides[p(2)] + l * strides[p(3)]]);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST(transpose, large_planes_that_bypass_the_cache) {
  const auto check = []<class T>(T) {
    const std::int64_t rows = (std::int64_t{9} << 20) / static_cast<std::int64_t>(sizeof(T)) / 1024 + 5,
                       columns = 1024;
    std::vector<std::byte> memory((rows * columns) * sizeof(T) + 64);
    std::vector<T> x(rows * columns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 2654435761u >> 7);
    void* aligned = memory.data();
    std::size_t space = memory.size();
    T* out = static_cast<T*>(std::align(64, memory.size() - 64, aligned, space));
    const int perm[] = {1, 0};
    transpose(out, x.data(), Shape{columns, rows}, perm, sizeof(T));  // rows of the result are whole lines
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j)
        ASSERT_EQ(out[i * columns + j], x[j * rows + i]) << sizeof(T);
  };
  check(std::uint8_t{}), check(std::uint16_t{}), check(std::uint32_t{}), check(std::uint64_t{});
}

TEST(fill, whole_and_strided) {
  std::vector<double> x(100, 7);
  const double value = 2.5;
  fill(x.data() + 1, &value, 8, 98);
  EXPECT_EQ(x.front(), 7);
  EXPECT_EQ(x[1], 2.5);
  EXPECT_EQ(x[98], 2.5);
  EXPECT_EQ(x.back(), 7);
  std::vector<std::int16_t> matrix(12, 1);
  const std::int16_t nine = 9;
  const std::int64_t strides[] = {4, 2};
  fill_strided(reinterpret_cast<std::byte*>(matrix.data()), strides, &nine, Shape{3, 2}, 2);
  for (std::size_t i = 0; i < matrix.size(); ++i) EXPECT_EQ(matrix[i], i % 2 == 0 ? 9 : 1);
}

TEST(iota, starts_and_steps_in_every_dtype) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      if constexpr (!std::is_same_v<T, bool>) {
        std::vector<T> out(50);
        iota(dtype, out.data(), 50, std::int64_t{3}, std::int64_t{2});
        for (std::size_t i = 0; i < 50; ++i) ASSERT_EQ(out[i], static_cast<T>(3 + 2 * static_cast<int>(i)));
        iota(dtype, out.data(), 50, 0.5, 0.25);
        for (std::size_t i = 0; i < 50; ++i) {
          const double exact = 0.5 + 0.25 * static_cast<double>(i);
          ASSERT_EQ(out[i], std::is_integral_v<T> ? static_cast<T>(static_cast<int>(exact))
                                                  : static_cast<T>(static_cast<float>(exact)));
        }
      }
    });
  float last[3];
  iota(float32, last, 3, std::int64_t{16777217}, std::int64_t{1});
  EXPECT_EQ(last[1], 16777218.0f);
}

TEST(gather, rows_by_index_and_zeros_outside) {
  for (const Dtype dtype : testing::all_dtypes())
    visit(dtype, [&]<class T>(T) {
      for (const AxisView view :
           {AxisView{1, 9, 1}, AxisView{3, 5, 1}, AxisView{2, 4, 3}, AxisView{1, 6, 40}}) {
        const auto x = testing::stored(testing::random_values<T>(view.outer * view.extent * view.inner));
        const std::vector<std::int64_t> indices = {3, 0, 3, -1, view.extent, 1, view.extent - 1};
        std::vector<testing::Stored<T>> out(static_cast<std::size_t>(view.outer * view.inner) *
                                            indices.size());
        gather(out.data(), x.data(), view, indices, sizeof(T));
        std::size_t at = 0;
        for (std::int64_t o = 0; o < view.outer; ++o)
          for (const std::int64_t i : indices)
            for (std::int64_t j = 0; j < view.inner; ++j, ++at) {
              const auto expected = i < 0 || i >= view.extent ? testing::Stored<T>(0)
                                                              : x[(o * view.extent + i) * view.inner + j];
              ASSERT_EQ(out[at], expected) << name(dtype);
            }
      }
    });
}

TEST(scatter, every_op_applies_repeated_indices_in_order) {
  const AxisView view{2, 5, 3};
  const std::vector<std::int64_t> indices = {4, 0, 4, -1, 5, 2, 4};
  const auto x = testing::random_values<double>(30, 1), updates = testing::random_values<double>(42, 2);
  for (const char* op : {"set", "add", "multiply", "min", "max"}) {
    auto expected = x, out = x;
    for (std::int64_t o = 0; o < 2; ++o)
      for (std::size_t i = 0; i < indices.size(); ++i)
        for (std::int64_t j = 0; j < 3; ++j) {
          if (indices[i] < 0 || indices[i] >= 5) continue;
          double& place = expected[(o * 5 + indices[i]) * 3 + j];
          const double update = updates[(o * 7 + static_cast<std::int64_t>(i)) * 3 + j];
          const std::string_view name = op;
          place = name == "set"        ? update
                  : name == "add"      ? place + update
                  : name == "multiply" ? place * update
                  : name == "min"      ? std::min(place, update)
                                       : std::max(place, update);
        }
    scatter(op, float64, out.data(), view, indices, updates.data());
    EXPECT_EQ(out, expected) << op;
  }
  std::vector<std::int32_t> counts(6, 0), ones(9, 1);
  const std::vector<std::int64_t> bins = {5, 5, 1, 0, 5, 9, -3, 1, 5};
  scatter("add", int32, counts.data(), AxisView{1, 6, 1}, bins, ones.data());
  EXPECT_EQ(counts, (std::vector<std::int32_t>{1, 2, 0, 0, 0, 4}));
}

TEST(gather_along, and_its_scatter_have_an_index_per_element) {
  const AxisView view{2, 4, 3};
  const auto x = testing::random_values<float>(24);
  const std::vector<std::int64_t> indices = {0, 1, 2, 3, 3, 3, 2, 2, -1, 0, 4, 1};  // (2, 2, 3)
  std::vector<float> out(12), put(24, 0.0f);
  gather_along(out.data(), x.data(), view, {int64, indices.data(), {4, false, 0, 4}}, 2, 4);
  for (std::size_t e = 0; e < 12; ++e) {
    const auto o = static_cast<std::int64_t>(e / 6), j = static_cast<std::int64_t>(e % 3);
    const auto i = indices[e] < 0 ? indices[e] + 4 : indices[e];
    EXPECT_EQ(out[e], i >= 4 ? 0.0f : x[(o * 4 + i) * 3 + j]);
  }
  scatter_along("add", float32, put.data(), view, indices.data(), 2, out.data());
  for (std::size_t e = 0; e < 12; ++e) {
    const auto o = static_cast<std::int64_t>(e / 6), j = static_cast<std::int64_t>(e % 3), i = indices[e];
    if (i < 0 || i >= 4) continue;
    EXPECT_EQ(put[(o * 4 + i) * 3 + j], out[e]);
  }
}

TEST(gather_along, takes_lists_longer_than_a_piece_and_indices_of_32_bits) {
  for (const std::int64_t inner : {1, 3}) {
    const std::int64_t n = 1025;
    const AxisView view{2, 7, inner};
    const auto x = testing::random_values<float>(2 * 7 * inner);
    std::vector<std::int32_t> indices(static_cast<std::size_t>(2 * n * inner));
    for (std::size_t e = 0; e < indices.size(); ++e) indices[e] = static_cast<std::int32_t>(e * 5 % 13) - 6;
    std::vector<float> out(indices.size());
    gather_along(out.data(), x.data(), view, {int32, indices.data(), {9, true, 2, 9}}, n,
                 4);  // rows 2 to 8 of 9
    for (std::size_t e = 0; e < out.size(); ++e) {
      const auto at = static_cast<std::int64_t>(e), o = at / (n * inner);
      const std::int64_t i = (indices[e] < 0 ? indices[e] + 9 : indices[e]) - 2;
      EXPECT_EQ(out[e], i < 0 ? 0.0f : x[(o * 7 + i) * inner + at % inner]) << e;
    }
  }
}

}  // namespace
}  // namespace tessera::kernels
