#include "mesh/text.hpp"

#include <algorithm>
#include <numeric>

#include "base/text.hpp"

namespace tessera {
namespace {

std::string plural(const std::string& thing) {
  if (thing.ends_with("axis")) return thing.substr(0, thing.size() - 2) + "es";
  return thing.ends_with("y") ? thing.substr(0, thing.size() - 1) + "ies" : thing + "s";
}

std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substituted = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
    }
  }
  return row.back();
}

}  // namespace

std::string counted(std::size_t n, const std::string& thing) {
  return std::to_string(n) + " " + (n == 1 ? thing : plural(thing));
}

std::string listed(const std::vector<int>& values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) text += (i ? ", " : "") + std::to_string(values[i]);
  return text + (values.size() == 1 ? ",)" : ")");
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string text = "(";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i ? ", " : "") + in_quotes(names[i]);
  return text + (names.size() == 1 ? ",)" : ")");
}

std::string known_names(const std::string& wanted, const std::vector<std::string>& known,
                        const std::string& things) {
  if (known.empty()) return "it has no " + things;
  std::string text = "its " + things + " are ";
  std::size_t nearest = 0, distance = std::string::npos;
  for (std::size_t i = 0; i < known.size(); ++i) {
    text += (i ? ", " : "") + in_quotes(known[i]);
    const std::size_t away = edit_distance(wanted, known[i]);
    if (away < distance) nearest = i, distance = away;
  }
  const bool near =
      distance <= std::max<std::size_t>(1, std::max(wanted.size(), known[nearest].size()) / 2) &&
      distance < std::max(wanted.size(), known[nearest].size());
  return near ? text + ". Did you mean " + in_quotes(known[nearest]) + "?" : text;
}

}  // namespace tessera
