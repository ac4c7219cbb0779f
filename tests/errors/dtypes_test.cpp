// Users see one spelling of a dtype, "float32": in errors, in explain and in printed arrays. Short names
// ("f32") are for program texts, whose lines are long.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <tessera/tessera.hpp>

#include <regex>
#include <sstream>

#include "support/errors.hpp"

namespace tessera::test {
namespace {

using testing::HasSubstr;

const std::vector<Dtype> all_dtypes{bool_,  int8,   int16,   int32,   int64,     uint8,     uint16,
                                    uint32, uint64, float32, float64, complex64, complex128};

void expect_spelled_out(const std::string& text, Dtype dtype) {
  static const std::regex is_short(R"(\b(pred|[su](8|16|32|64)|f(32|64)|c(64|128))(\[|\b))");
  EXPECT_THAT(text, HasSubstr(name(dtype)));
  EXPECT_FALSE(std::regex_search(text, is_short)) << text;
}

std::string printed(const auto& x) {
  std::ostringstream text;
  text << x;
  return text.str();
}

TEST(Dtypes, have_one_spelling_in_errors) {
  const Mesh line = make_mesh({device_count()}, {"x"});
  for (const Dtype dtype : all_dtypes) {
    const Array x = device_put(ones({3}, dtype), line, P()), y = ones({4}, dtype);
    const auto identity = jit([](const Array& v) { return v; });
    const auto loop = [](const Array& v) {
      return fori_loop(
          0, 20,
          [](const Array&, const Array& w) {
            return concatenate({w, w});
          },
          v);
    };
    expect_spelled_out(error_of<ShapeError>([&] { jit(loop)(x); }), dtype);
    const auto compiled = identity.lower(x).compile();
    expect_spelled_out(error_of<ArgumentError>([&] { compiled(y); }), dtype);
    expect_spelled_out(
        error_of<UserError>([&] { vmap([](const Array& v) { return v; })(Array(ones({}, dtype))); }), dtype);
    const auto step = [](const Array& c, const auto& entries) { return std::pair{c, entries.first}; };
    expect_spelled_out(error_of<ShapeError>([&] { scan(step, x, std::pair{x, y}); }), dtype);
  }
}

TEST(Dtypes, have_one_spelling_in_what_explain_says) {
  for (const Dtype dtype : all_dtypes)
    expect_spelled_out(printed(explain([](const Array& x) { return flip(x); }, ones({5}, dtype))), dtype);
}

TEST(Dtypes, are_short_in_programs) {
  const auto lowered = jit([](const Array& x) { return x + 1; }).lower(ones({5}));
  EXPECT_THAT(lowered.as_text(), HasSubstr("f32[5]"));
  EXPECT_THAT(lowered.compile().as_text(), HasSubstr("f32[5]"));
}

}  // namespace
}  // namespace tessera::test
