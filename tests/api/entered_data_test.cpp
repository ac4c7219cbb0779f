// Data that every rank passes in must be equal on all ranks; it is compared at its first use.
#include <gmock/gmock.h>
#include <tessera/jit.hpp>
#include <tessera/tessera.hpp>

#include <numeric>

#include "base/settings.hpp"
#include "support/errors.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;

constexpr int n = 1000;
std::vector<float> data_of_each(int differs_at) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.f);
  if (process_index() == process_count() - 1) values[static_cast<std::size_t>(differs_at)] += 1;
  return values;
}
template <class F> std::string error_of(F&& work) { return test::error_or<DisagreementError>("", work); }
Mesh everybody() { return make_mesh({device_count()}, {"x"}); }
void expect_named(const std::string& text) {
  EXPECT_THAT(text, HasSubstr("array at entered_data_test.cpp:"));
  EXPECT_THAT(text, HasSubstr("rank " + std::to_string(process_count() - 1) + ": "));
  EXPECT_THAT(text, HasSubstr("checksum "));
}

TEST(EnteredData, that_differ_in_one_element_are_found_and_named) {
  if (process_count() == 1) return;
  for (const int at : {0, 1, n / 2, n - 1})
    expect_named(error_of([&] { item<float>(sum(array(data_of_each(at)))); }));
}

TEST(EnteredData, are_found_where_only_rank_0_filled_them) {
  if (process_count() == 1) return;
  std::vector<double> values(6);
  if (is_main_process()) values = {7, 7, 7, 7, 7, 7};
  EXPECT_THAT(error_of([&] { eval(device_put(array(values), everybody(), P("x"))); }),
              HasSubstr("array at entered_data_test.cpp:"));
}

TEST(EnteredData, are_compared_as_arguments_of_compiled_functions) {
  if (process_count() == 1) return;
  const auto f = jit([](const Array& x, const Array& w) { return sum(x) * sum(w); });
  const Array x = device_put(ones({n}), everybody(), P("x"));
  EXPECT_EQ(error_of([&] { eval(f(x, array(std::vector<float>(3, 1)))); }), "");
  const std::vector<float> three(3, process_index() == 0 ? 1.f : 2.f);
  EXPECT_THAT(error_of([&] { eval(f(x, array(three))); }), HasSubstr("array at entered_data_test.cpp:"));
  expect_named(error_of([&] { eval(f(x, array(data_of_each(7)))); }));
}

TEST(EnteredData, of_adopted_memory_are_compared_too) {
  if (process_count() == 1) return;
  auto values = data_of_each(3);
  expect_named(error_of([&] { eval(sum(array(HostArray::adopt(values.data(), {n}, float32, [] {})))); }));
}

TEST(EnteredData, are_found_by_the_next_agreement_where_nothing_is_sent) {
  if (process_count() == 1) return;
  const auto f = jit([](const Array& w) { return w * 2; });
  for (int i = 0; i < 3; ++i) eval(f(array(std::vector<float>(n, static_cast<float>(i)))));
  const auto text = error_of([&] {
    eval(f(array(data_of_each(5))));
    item<float>(sum(device_put(ones({n}), everybody(), P("x"))));
  });
  EXPECT_THAT(text, HasSubstr("data from array at entered_data_test.cpp:"));
}

TEST(EnteredData, of_a_part_are_compared_on_the_part) {
  if (process_count() < 3) return;
  const Mesh two = make_mesh({2}, {"x"}, {devices()[0], devices()[1]});
  const std::vector<float> values(n, process_index() == 1 ? 1.f : 2.f);
  const auto text = error_of([&] { eval(device_put(array(values), two, P("x"))); });
  EXPECT_EQ(text.empty(), process_index() > 1);
}

TEST(EnteredData, are_not_compared_where_a_setting_says_so) {
  const SettingScope off("TESSERA_CHECK_DATA", "0");
  const std::vector<float> values(n, static_cast<float>(process_index() + 1));
  EXPECT_EQ(error_of([&] { eval(device_put(array(values), everybody(), P("x"))); }), "");
}

TEST(EnteredData, that_each_rank_says_are_its_own_are_not_compared) {
  const std::vector<float> mine(4, static_cast<float>(process_index() + 1));
  const Array x =
      make_array_from_process_local_data(NamedSharding(everybody(), P("x")), HostArray(mine, {4}));
  EXPECT_EQ(item<float>(sum(x)), 2.f * process_count() * (process_count() + 1));
}

}  // namespace
}  // namespace tessera
