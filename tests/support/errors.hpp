// Helpers that check the texts of errors.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace tessera::test {

// The text of the E that `call` throws. The test fails if it throws nothing or something else.
template <class E, class F> std::string error_of(F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

// The text of the E that `call` throws; `otherwise` if it throws nothing.
template <class E, class F> std::string error_or(const std::string& otherwise, F&& call) {
  try {
    std::forward<F>(call)();
  } catch (const E& error) {
    return error.what();
  }
  return otherwise;
}

// Checks that `call` throws an E whose text has all the parts.
template <class E, class F> void expect_error(F&& call, const std::vector<std::string>& parts) {
  const std::string text = error_of<E>(std::forward<F>(call));
  for (const auto& part : parts) EXPECT_THAT(text, testing::HasSubstr(part));
}

}  // namespace tessera::test
