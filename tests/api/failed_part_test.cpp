// An evaluation that fails on some of the ranks: results computed before the failure are kept, later uses of
// failed values raise the error, and everything else continues.
#include <gmock/gmock.h>
#include <tessera/jit.hpp>
#include <tessera/tessera.hpp>

#include "support/errors.hpp"

namespace tessera {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Mesh part() {
  auto half = devices();
  half.resize(std::max<std::size_t>(1, half.size() / 2));
  return make_mesh({static_cast<int>(half.size())}, {"x"}, half);
}
Mesh everybody() { return make_mesh({device_count()}, {"w"}); }
bool is_member() { return process_index() < part().size(); }

// Returns "" if there is no LinAlgError.
template <class F> std::string error_of(F&& work) { return test::error_or<LinAlgError>("", work); }
float total(const Array& x) { return item<float>(sum(device_put(x, everybody(), P()))); }

TEST(FailedPart, what_was_computed_before_the_failure_is_kept) {
  const Array a = device_put(eye(8) * -1, part(), P("x"));
  const auto text = error_of([&] { eval(linalg::cholesky(a)); });
  EXPECT_EQ(text.empty(), !is_member()) << "raised on the ranks of the mesh";
  EXPECT_EQ(total(a), -8);
  EXPECT_EQ(total(a + 1), 56);
}

TEST(FailedPart, the_first_use_of_what_failed_raises_the_first_error_on_all_ranks) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  const auto first = error_of([&] { eval(bad); });
  const auto use = error_of([&] { total(bad * 2); });
  EXPECT_THAT(use, StartsWith("rank 0: "));
  EXPECT_THAT(use, HasSubstr("cholesky"));
  if (is_member()) {
    EXPECT_EQ(use, first);
  }
  EXPECT_EQ(error_of([&] { total(bad + 1); }), use) << "and each later one";
  EXPECT_EQ(error_of([&] { to_host(bad); }), use);
  EXPECT_EQ(item<float>(sum(device_put(ones({6}), everybody(), P("w")))), 6) << "everything else goes on";
}

TEST(FailedPart, what_does_not_depend_on_it_is_computed_all_the_same) {
  const Array a = device_put(eye(8) * -1, part(), P("x"));
  const Array bad = linalg::cholesky(a), good = a * 3;
  EXPECT_EQ(error_of([&] { eval(bad, good); }).empty(), !is_member());
  EXPECT_EQ(total(good), -24);
  const Array worse = device_put(bad, everybody(), P()) + 1, better = device_put(good, everybody(), P()) + 1;
  EXPECT_THAT(error_of([&] { eval(worse, better); }), HasSubstr("cholesky"));
  EXPECT_EQ(item<float>(sum(better)), -24 + 64);
  EXPECT_THAT(error_of([&] { to_host(worse); }), HasSubstr("cholesky"));
}

TEST(FailedPart, uses_on_the_part_alone_raise_there_and_stay_failed) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  error_of([&] { eval(bad); });
  const Array more = bad + 1;
  EXPECT_EQ(error_of([&] { eval(more); }).empty(), !is_member());
  EXPECT_EQ(error_of([&] { eval(more); }).empty(), !is_member());
  EXPECT_EQ(error_of([&] { local<float>(more); }).empty(), !is_member());
  EXPECT_THAT(error_of([&] { total(more); }), HasSubstr("cholesky"));
}

TEST(FailedPart, asked_for_once_more_with_values_of_all_ranks_raises_on_all) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  error_of([&] { eval(bad); });
  const Array other = device_put(ones({6}), everybody(), P("w")) + 1;
  EXPECT_THAT(error_of([&] { eval(bad, other); }), HasSubstr("cholesky"));
  EXPECT_EQ(item<float>(sum(other)), 12);
}

TEST(FailedPart, two_failures_are_two_values) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  const Array fine = linalg::cholesky(device_put(eye(8) * 4, part(), P("x")));
  error_of([&] { eval(bad, fine); });
  EXPECT_EQ(total(fine), 16);
}

TEST(FailedPart, arguments_of_a_compiled_function_raise_on_all_ranks) {
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  error_of([&] { eval(bad); });
  const auto moved = jit([](const Array& x) { return device_put(x, everybody(), P()) * 2; });
  EXPECT_THAT(error_of([&] { eval(moved(bad)); }), HasSubstr("cholesky"));
  EXPECT_EQ(item<float>(sum(moved(device_put(ones({8, 8}), part(), P("x"))))), 128);
}

TEST(FailedPart, many_small_evaluations_after_it_agree) {
  Array x = device_put(ones({4}), part(), P("x"));
  const Array bad = linalg::cholesky(device_put(eye(8) * -1, part(), P("x")));
  for (int i = 0; i < 20; ++i) {
    x = x + 1;
    error_of([&] { eval(x, bad); });
  }
  EXPECT_EQ(total(x), 84);
}

TEST(FailedPart, on_all_ranks_the_same_holds) {
  const Array a = eye(6) * -1;
  const Array bad = linalg::cholesky(a), good = a * 2;
  const auto text = error_of([&] { eval(bad, good); });
  EXPECT_THAT(text, HasSubstr("cholesky"));
  EXPECT_EQ(item<float>(sum(good)), -12);
  EXPECT_EQ(error_of([&] { to_host(bad); }), text);
  EXPECT_EQ(error_of([&] { to_host(sum(bad) + 1); }), text);
}

TEST(FailedPart, nan_that_was_found_fails_what_depends_on_it_alone) {
  debug::set_nan_check(true);
  const Array x = device_put(zeros({8}), part(), P("x"));
  const Array bad = x / x, good = x + 1;
  bool raised = false;
  try {
    eval(bad, good);
  } catch (const NanError&) {
    raised = true;
  }
  debug::set_nan_check(false);
  EXPECT_EQ(raised, is_member());
  EXPECT_EQ(total(good), 8);
  EXPECT_THROW(total(bad), NanError);
}

}  // namespace
}  // namespace tessera
