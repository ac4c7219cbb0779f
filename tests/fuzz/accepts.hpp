// The permitted outcomes of a parser: it accepts an input, or rejects it with its error type.
#pragma once
#include <stdexcept>
#include <string_view>

namespace tessera::test {

inline void require(bool fact, const char* what) {
  if (!fact) throw std::logic_error(what);
}

// The origin of text that an error repeats: text from outside must reach a terminal escaped.
enum class Said { by_outsiders, by_programs };

inline void check_words(std::string_view words, Said said) {
  require(words.size() < 4000, "an error text of more than 4000 bytes");
  for (const char c : words)
    require(said == Said::by_programs || static_cast<unsigned char>(c) >= 0x20,
            "a control character in an error text");
}

// Returns false if one of these errors was raised. All others are findings.
template <class Error, class... Others, class Parse>
bool accepts(const Parse& parse, Said said = Said::by_outsiders) {
  try {
    if constexpr (sizeof...(Others) == 0)
      parse();
    else
      return accepts<Others...>(parse, said);
  } catch (const Error& error) {
    check_words(error.what(), said);
    return false;
  }
  return true;
}

}  // namespace tessera::test
