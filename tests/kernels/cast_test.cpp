#include <gtest/gtest.h>

#include <cmath>

#include "kernels/values.hpp"

namespace tessera::kernels {
namespace {

using testing::Stored;

// The documented rule, one element at a time.
template <class To, class From> To converted(From x) {
  if constexpr (testing::is_complex_type<From>) {
    if constexpr (testing::is_complex_type<To>)
      return To(static_cast<typename To::value_type>(x.real()),
                static_cast<typename To::value_type>(x.imag()));
    else if constexpr (std::is_same_v<To, bool>)
      return x.real() != 0 || x.imag() != 0;
    else
      return converted<To>(x.real());
  } else if constexpr (testing::is_complex_type<To>) {
    return To(static_cast<typename To::value_type>(x), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if (std::isnan(x)) return 0;
    const long double whole = std::trunc(static_cast<long double>(x));
    if (whole <= static_cast<long double>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (whole >= static_cast<long double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(x);
  }
}

TEST(cast, every_pair_of_dtypes_follows_the_rule) {
  for (const Dtype from : testing::all_dtypes())
    for (const Dtype to : testing::all_dtypes())
      visit(from, [&]<class From>(From) {
        visit(to, [&]<class To>(To) {
          auto values = testing::edges<From>();
          for (const From x : testing::random_values<From>(333)) values.push_back(x);
          if constexpr (std::is_floating_point_v<From>)  // around the ends of the integers
            for (const double end : {128.0, 255.0, 256.0, 32768.0, 65536.0, 0x1p31, 0x1p32, 0x1p63, 0x1p64})
              for (const double x : {end - 1, end, end + 1, -end - 1, -end, -end + 0.5})
                values.push_back(static_cast<From>(x));
          const auto in = testing::stored(values);
          std::vector<Stored<To>> out(in.size());
          const void* operands[] = {in.data()};
          ASSERT_NE(find_cast(from, to), nullptr);
          find_cast(from, to)(operands, out.data(), static_cast<std::int64_t>(in.size()));
          for (std::size_t i = 0; i < in.size(); ++i)
            ASSERT_TRUE(testing::same<To>(out[i], converted<To>(static_cast<From>(in[i]))))
                << name(from) << " to " << name(to) << ", element " << i;
        });
      });
}

TEST(cast, no_element_past_the_end_is_written) {
  for (const Dtype from : testing::all_dtypes())
    for (const Dtype to : testing::all_dtypes())
      for (const std::int64_t n : testing::odd_sizes) {
        const std::vector<std::byte> in(static_cast<std::size_t>(n) * itemsize(from) + 16);
        std::vector<std::byte> out(static_cast<std::size_t>(n) * itemsize(to) + 32, std::byte{0x5A});
        const void* operands[] = {in.data()};
        find_cast(from, to)(operands, out.data(), n);
        for (std::size_t i = static_cast<std::size_t>(n) * itemsize(to); i < out.size(); ++i)
          ASSERT_EQ(out[i], std::byte{0x5A}) << name(from) << " to " << name(to) << " n=" << n;
      }
}

}  // namespace
}  // namespace tessera::kernels
