// Sizes that do not fit 64 bits are refused at the call, before anything is planned or allocated.
#include <tessera/tessera.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace tessera {
namespace {

std::string refusal(const std::function<void()>& ask) {
  try {
    ask();
  } catch (const UserError& error) {
    return error.what();
  } catch (const MemoryError& error) {
    return error.what();
  }
  return "nothing was refused";
}

constexpr std::int64_t huge = std::int64_t{1} << 62;
constexpr std::int64_t long_side = std::int64_t{1} << 32;

TEST(Sizes, of_rows_of_numbers_are_refused) {
  EXPECT_THAT(refusal([] { eval(linspace(0, 1, huge)); }), testing::HasSubstr("linspace"));
  EXPECT_THAT(refusal([] { eval(arange(0.0, 0x1p62, 1.0)); }), testing::HasSubstr("arange"));
  EXPECT_THAT(refusal([] { eval(fft::fftfreq(huge)); }), testing::HasSubstr("fftfreq"));
}
TEST(Sizes, of_transforms_are_refused) {
  EXPECT_THAT(refusal([] { eval(fft::fft(ones({4}), huge)); }), testing::HasSubstr("fft"));
  EXPECT_THAT(refusal([] { eval(fft::irfft(ones({4}), huge)); }), testing::HasSubstr("fft"));
}
TEST(Sizes, of_padding_twice_is_the_sum_of_both) {
  const Array padded = pad(ones({4}, int8), {{1500000000, 1500000000}});
  EXPECT_EQ(padded.shape(), Shape({3000000004}));
}
TEST(Sizes, of_broadcasts_are_refused) {
  const auto column = [] { return zeros({long_side, 1}); };
  const auto row = [] { return zeros({1, long_side}); };
  EXPECT_THAT(refusal([&] { (void)(column() + row()); }), testing::HasSubstr("does not fit 64 bits"));
  EXPECT_THAT(refusal([&] { (void)where(column() > 0, row(), 0); }),
              testing::HasSubstr("does not fit 64 bits"));
}
TEST(Sizes, of_products_of_empty_matrices_are_refused) {
  EXPECT_THAT(refusal([&] {
                (void)matmul(zeros({long_side, 0}), zeros({0, long_side}));
              }),
              testing::HasSubstr("does not fit 64 bits"));
}
TEST(Sizes, of_empty_arrays_with_huge_sides_are_refused) {
  EXPECT_THAT(refusal([&] {
                eval(sum(zeros({long_side, 0, long_side}), 1));
              }),
              testing::HasSubstr("does not fit 64 bits"));
}

}  // namespace
}  // namespace tessera
