// Texts of values and files.
#pragma once
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace tessera::test {

// The text that << writes.
template <class T> std::string printed(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

// The bytes of a file; std::runtime_error if there is none.
inline std::string text_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("there is no file " + path);
  return printed(file.rdbuf());
}

// How often a word occurs in a text.
inline int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

}  // namespace tessera::test
