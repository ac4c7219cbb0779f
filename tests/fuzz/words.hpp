// Tokens for mutants, written in one text.
#pragma once
#include <sstream>
#include <string>
#include <vector>

namespace tessera::test {

inline std::vector<std::string> words_of(const std::string& text, char separator = '|') {
  std::istringstream stream(text);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, separator);) words.push_back(word);
  return words;
}

// Tokens of programs in StableHLO text.
inline std::vector<std::string> stablehlo_words() {
  return words_of(
      R"(%0|%arg0|%cst|#0|#1|:|->|tensor<|tensor<2x3xf32>|tensor<f32>|xf32|xf32>|xi1|xcomplex<f32>>|i64|[|])"
      R"(|{|}|(|)|<|>|,|=|= |-|-1|0x7FC00000|9223372036854775807|x9223372036854775807xf32>|"|"0x|@|@"|x [0])"
      R"(|dims = [0]|dims = [1, 0]|array<i64: |array<i64: 1>|dense<|dense<0>|dense<"0x00">|dense_resource<a>)"
      R"(|stablehlo.constant dense<1.0> : tensor<f32>|stablehlo.add|stablehlo.while|stablehlo.while()"
      R"(|stablehlo.reduce|stablehlo.reduce(|stablehlo.reshape|sdy.mesh @m = <["x"=2]>|call @main(%arg0))"
      R"(|return|loc(|loc("x")|{-#|#-}|^bb0()"
      "|\x1b[2J");
}

}  // namespace tessera::test
