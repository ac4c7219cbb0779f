// Functions called by the sources that scripts/site/blocks.py generates from the documentation's code blocks.
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace docs {

using Program = std::function<int(int, char**)>;

// A block that starts and ends tessera itself. ranks 0: any number.
void add(const char* page, int line, int ranks, Program program);

// Runs in tessera::run: the block must raise this error.
template <class Error> Program throws(void (*block)());

// Uses a value: evaluates it if it is an array.
template <class T> void keep(const T& value) {
  if constexpr (std::is_same_v<T, tessera::Array>) tessera::eval({value});
}

int run_expecting(int argc, char** argv, const std::function<bool()>& body);

template <class Error> Program throws(void (*block)()) {
  return [block](int argc, char** argv) {
    return run_expecting(argc, argv, [block] {
      try {
        block();
      } catch (const Error&) {
        return true;
      }
      return false;
    });
  };
}

}  // namespace docs
