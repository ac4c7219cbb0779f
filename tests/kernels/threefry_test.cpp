#include "kernels/random/threefry.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

template <class T> std::vector<T> bits(std::uint32_t k0, std::uint32_t k1, std::int64_t n) {
  std::vector<T> out(n);
  threefry_block(k0, k1, {{0, n}}, Shape{n}, static_cast<int>(8 * sizeof(T)), out.data());
  return out;
}
template <class T> std::vector<T> uniform(std::int64_t n, double low = 0, double high = 1) {
  std::vector<T> out(n);
  uniform_block(0, 0, {{0, n}}, Shape{n}, dtype_of<T>(), low, high, out.data());
  return out;
}

TEST(threefry, known_answers_of_random123) {
  EXPECT_EQ(threefry2x32(0, 0, 0, 0), (Words{0x6b200159, 0x99ba4efe}));
  EXPECT_EQ(threefry2x32(0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff), (Words{0x1cb996fc, 0xbb002be7}));
  EXPECT_EQ(threefry2x32(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3), (Words{0xc4923a9c, 0x483df7a0}));
}

TEST(threefry, keys_of_split_and_fold_in_as_in_jax) {
  Words keys[4];
  threefry_counters(0, 0, 0, 4, keys);
  EXPECT_EQ(keys[0], (Words{1797259609, 2579123966}));
  EXPECT_EQ(keys[1], (Words{928981903, 3453687069}));
  EXPECT_EQ(keys[2], (Words{4146024105, 2718843009}));
  EXPECT_EQ(keys[3], (Words{2467461003, 3840466878}));
  EXPECT_EQ(threefry2x32(0, 0, 0, 7), (Words{2716826189, 292468403}));
  EXPECT_EQ(threefry2x32(0, 0, 0, 0xFFFFFFFF), (Words{743310391, 3789761811}));
}

TEST(threefry, bits_of_every_width_as_in_jax) {
  EXPECT_EQ(bits<std::uint32_t>(0, 0, 8),
            (std::vector<std::uint32_t>{4070199207, 4202968722, 1427181096, 2012915765, 2447653815, 710830403,
                                        1332275837, 2961296638}));
  EXPECT_EQ(bits<std::uint8_t>(0, 0, 8), (std::vector<std::uint8_t>{167, 146, 40, 53, 183, 67, 125, 254}));
  EXPECT_EQ(bits<std::uint16_t>(0, 0, 8),
            (std::vector<std::uint16_t>{20391, 13970, 3624, 43061, 15287, 26947, 60029, 52478}));
  EXPECT_EQ(bits<std::uint64_t>(0, 0, 4),
            (std::vector<std::uint64_t>{7719171245655871230u, 3989946895414531357u, 17807037942121513089u,
                                        10597664315880824766u}));
}

TEST(threefry, uniform_as_in_jax) {
  EXPECT_EQ(uniform<float>(4), (std::vector<float>{0.947667003f, 0.978579879f, 0.332291484f, 0.468668461f}));
  EXPECT_EQ(uniform<float>(4, -3, 5),
            (std::vector<float>{4.58133602f, 4.82863903f, -0.341668129f, 0.749347687f}));
  EXPECT_EQ(uniform<double>(4), (std::vector<double>{0.41845711171638644, 0.21629545460551136,
                                                     0.96532146111899753, 0.57450053372750465}));
}

TEST(threefry, normal_as_in_jax) {
  const double expected[] = {1.62264204,  2.02526474,  -0.433594435, -0.0786173493, 0.1760909,
                             -0.97208923, -0.49529874, 0.4943786,    0.6643493,     -0.9501635};
  float out[10];
  normal_block(0, 0, {{0, 10}}, Shape{10}, float32, out);
  for (int i = 0; i < 10; ++i)
    EXPECT_NEAR(out[i], expected[i], 2e-7 * std::max(1.0, std::abs(expected[i]))) << i;
  const double expected64[] = {-0.205842139479643, -0.784765776446741, 1.81608667266798, 0.187844012893789};
  double out64[4];
  normal_block(0, 0, {{0, 4}}, Shape{4}, float64, out64);
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(out64[i], expected64[i], 5e-15 * std::max(1.0, std::abs(expected64[i])));
}

// The property that makes sharded random numbers need no communication.
TEST(threefry, a_box_holds_the_same_values_as_the_whole_array) {
  for (const Shape& global :
       {Shape{6, 7, 5}, Shape{1, 3000}, Shape{3000, 1}, Shape{40, 3, 40}, Shape{}, Shape{2500}}) {
    const std::int64_t n = global.elements();
    std::vector<std::uint32_t> whole(n);
    std::vector<std::uint64_t> whole64(whole.size());
    std::vector<float> normals(whole.size());
    threefry_block(3, 4, whole_box(global), global, 32, whole.data());
    threefry_block(3, 4, whole_box(global), global, 64, whole64.data());
    normal_block(3, 4, whole_box(global), global, float32, normals.data());
    for (int corner = 0; corner < 8; ++corner) {
      Box box = whole_box(global);
      for (std::size_t d = 0; d < box.size(); ++d) {
        if ((corner >> d) & 1) box[d].start = box[d].stop / 3;
        if ((corner >> ((d + 1) % 3)) & 1) box[d].stop -= box[d].size() / 4;
      }
      const auto count = static_cast<std::size_t>(box_elements(box));
      std::vector<std::uint32_t> part(count);
      std::vector<std::uint64_t> part64(count);
      std::vector<float> part_normals(count);
      threefry_block(3, 4, box, global, 32, part.data());
      threefry_block(3, 4, box, global, 64, part64.data());
      normal_block(3, 4, box, global, float32, part_normals.data());
      const auto strides = row_major_strides(global);
      const Shape extents = box_shape(box);
      std::vector<std::int64_t> index(global.size(), 0);
      for (std::size_t e = 0; e < count; ++e) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < global.size(); ++d) at += (box[d].start + index[d]) * strides[d];
        ASSERT_EQ(part[e], whole[at]) << to_string(global) << to_string(box);
        ASSERT_EQ(part64[e], whole64[at]);
        ASSERT_EQ(part_normals[e], normals[at]);
        for (std::size_t d = global.size(); d-- > 0;) {
          if (++index[d] < extents[d]) break;
          index[d] = 0;
        }
      }
    }
  }
  std::uint32_t untouched = 5;
  threefry_block(3, 4, {{2, 2}, {0, 4}}, Shape{6, 4}, 32, &untouched);
  EXPECT_EQ(untouched, 5u);
}

TEST(threefry, counters_past_32_bits_use_the_high_word) {
  const std::int64_t columns = std::int64_t{1} << 31;
  std::uint32_t out[4];
  threefry_block(1, 2, {{1, 3}, {columns - 1, columns}}, Shape{8, columns}, 32, out);
  for (int row = 1; row < 3; ++row) {
    const std::uint64_t counter = static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(columns) +
                                  static_cast<std::uint64_t>(columns) - 1;
    const Words words =
        threefry2x32(1, 2, static_cast<std::uint32_t>(counter >> 32), static_cast<std::uint32_t>(counter));
    EXPECT_EQ(out[row - 1], words.x0 ^ words.x1);
  }
  std::uint32_t across[4];
  threefry_block(1, 2, {{2 * columns - 2, 2 * columns + 2}}, Shape{4 * columns}, 32, across);
  for (int i = 0; i < 4; ++i) {
    const Words words = threefry2x32(1, 2, i < 2 ? 0 : 1, static_cast<std::uint32_t>(-2 + i));
    EXPECT_EQ(across[i], words.x0 ^ words.x1);
  }
}

TEST(threefry, a_key_per_row) {
  std::vector<Words> keys(700);
  threefry_counters(5, 6, 0, 700, keys.data());
  for (const std::int64_t n : {1, 3, 1500}) {
    std::vector<std::uint16_t> out(static_cast<std::size_t>(n) * keys.size());
    threefry_rows(keys, 10, n, 16, out.data());
    for (std::size_t r = 0; r < keys.size(); r += 33)
      for (std::int64_t i = 0; i < n; ++i) {
        const Words words = threefry2x32(keys[r].x0, keys[r].x1, 0, static_cast<std::uint32_t>(10 + i));
        ASSERT_EQ(out[r * static_cast<std::size_t>(n) + static_cast<std::size_t>(i)],
                  static_cast<std::uint16_t>(words.x0 ^ words.x1));
      }
  }
}

// JAX's hash of an array of counters, written plainly: 0, 1, 2, ... (padded with 0 to an even number) in two
// halves, whose results are concatenated.
std::vector<std::uint32_t> array_hash(std::uint32_t k0, std::uint32_t k1, std::uint32_t n) {
  const std::uint32_t half = (n + 1) / 2;
  std::vector<std::uint32_t> out(2 * half);
  for (std::uint32_t i = 0; i < half; ++i) {
    const Words words = threefry2x32(k0, k1, i, half + i < n ? half + i : 0);
    out[i] = words.x0, out[half + i] = words.x1;
  }
  out.resize(n);
  return out;
}

TEST(threefry, original_mode_gives_any_range_of_the_array_hash) {
  for (const std::int64_t total : {1, 2, 7, 1000, 2501})
    for (const auto& [start, count] :
         {std::pair{std::int64_t{0}, total}, {total / 3, total - total / 3}, {total / 2, std::int64_t{1}}}) {
      const auto first = static_cast<std::size_t>(start);
      const auto words = array_hash(8, 9, static_cast<std::uint32_t>(total));
      std::vector<std::uint32_t> out(count);
      threefry_original_bits(8, 9, total, start, count, 32, out.data());
      for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i], words[first + i]) << total;

      const auto pairs = array_hash(8, 9, static_cast<std::uint32_t>(2 * total));
      std::vector<std::uint64_t> wide(out.size());
      threefry_original_bits(8, 9, total, start, count, 64, wide.data());
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(wide[i],
                  std::uint64_t{pairs[first + i]} << 32 | pairs[first + i + static_cast<std::size_t>(total)]);

      const auto packed = array_hash(8, 9, static_cast<std::uint32_t>((total + 3) / 4));
      std::vector<std::uint8_t> narrow(out.size());
      threefry_original_bits(8, 9, total, start, count, 8, narrow.data());
      for (std::size_t i = 0; i < out.size(); ++i)
        ASSERT_EQ(narrow[i], static_cast<std::uint8_t>(packed[(first + i) / 4] >> (8 * ((first + i) % 4))));
    }
}

TEST(threefry, distributions_have_their_moments) {
  const std::int64_t n = 1 << 20;
  const auto u = uniform<float>(n, -2, 6);
  double mean = 0, square = 0, fourth = 0;
  for (const float x : u) {
    ASSERT_GE(x, -2);
    ASSERT_LT(x, 6);
    mean += x;
  }
  EXPECT_NEAR(mean / static_cast<double>(n), 2, 0.01);
  std::vector<double> z(n);
  normal_block(11, 12, {{0, n}}, Shape{n}, float64, z.data());
  mean = 0;
  for (const double x : z) mean += x, square += x * x, fourth += x * x * x * x;
  EXPECT_NEAR(mean / static_cast<double>(n), 0, 0.005);
  EXPECT_NEAR(square / static_cast<double>(n), 1, 0.01);
  EXPECT_NEAR(fourth / static_cast<double>(n), 3, 0.05);
}

}  // namespace
}  // namespace tessera::kernels
