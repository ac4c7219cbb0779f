// Nearly valid inputs: a seed after a few changes. The same number gives the same mutant.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace tessera::test {

class Mutator {
 public:
  explicit Mutator(std::uint64_t number) : random_(number * 0x9e3779b97f4a7c15u + 1) {}
  std::string mutant(const std::vector<std::string>& seeds, const std::vector<std::string>& words) {
    std::string text = seeds[below(seeds.size())];
    for (std::size_t changes = 1 + below(4); changes > 0; --changes) change(text, words, seeds);
    return text;
  }

 private:
  std::size_t below(std::size_t n) { return n == 0 ? 0 : random_() % n; }
  void change(std::string& text, const std::vector<std::string>& words,
              const std::vector<std::string>& seeds) {
    const auto at = below(text.size() + 1);
    const auto length = std::min(text.size() - at, below(16));
    switch (below(9)) {
      case 0: flip(text); break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3:
        if (!words.empty()) text.insert(at, words[below(words.size())]);
        break;
      case 4:
        if (!words.empty()) text.replace(at, length, words[below(words.size())]);
        break;
      case 5: text.resize(at); break;
      case 6: replace_number(text); break;
      case 7: text.insert(at, 1, static_cast<char>(random_())); break;
      default: splice(text, seeds[below(seeds.size())]); break;
    }
  }
  void flip(std::string& text) {
    if (!text.empty()) text[below(text.size())] ^= static_cast<char>(1 << below(8));
  }
  // Replaces a number in the text by a close, a large or a negative one.
  void replace_number(std::string& text) {
    const auto from = text.find_first_of("0123456789", below(text.size() + 1));
    if (from == std::string::npos) return;
    const auto to = std::min(text.find_first_not_of("0123456789", from), text.size());
    static const char* const others[] = {"0",
                                         "1",
                                         "2",
                                         "3",
                                         "5",
                                         "-1",
                                         "100000",
                                         "4294967296",
                                         "4611686018427387904",
                                         "9223372036854775807",
                                         "99999999999999999999"};
    text.replace(from, to - from, others[below(std::size(others))]);
  }
  void splice(std::string& text, const std::string& other) {
    text = text.substr(0, below(text.size() + 1)) + other.substr(below(other.size() + 1));
  }
  std::mt19937_64 random_;
};

}  // namespace tessera::test
