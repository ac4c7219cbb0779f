// Parsers of the command line's arguments: shapes, meshes, specs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "commands.hpp"
#include "types/checked.hpp"

namespace cli {

using namespace tessera;

namespace {

// The parts of a text, without the blanks: "x, None" is "x,None".
std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  return parts;
}

std::int64_t parse_count(const std::string& word, const std::string& where, std::int64_t least) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(word.c_str(), &end, 10);
  if (errno == ERANGE) throw UsageError(shown(word) + " in " + shown(where) + " does not fit 64 bits");
  if (word.empty() || *end != '\0' || value < least)
    throw UsageError(shown(word) + " in " + shown(where) + " is no number from " + std::to_string(least) +
                     " up");
  return value;
}

}  // namespace

std::string shown(const std::string& word) {
  constexpr std::size_t longest = 300;
  return tessera::in_quotes(word.substr(0, longest)) + (word.size() > longest ? " ..." : "");
}

bool is_shape(const std::string& word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789x") == std::string::npos;
}

Shape parse_shape(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (const auto& word : split(text, 'x')) extents.push_back(parse_count(word, text, 0));
  const Shape shape(extents);
  try {
    checked_product(shape, "tessera");
  } catch (const ShapeError&) {
    throw UsageError(shown(text) + " has more elements than 64 bits count");
  }
  return shape;
}

namespace {
// Errors of meshes and specs repeat the names of axes in full, so that the words of a command are checked before.
const std::string& axis_name(const std::string& name, const std::string& text) {
  constexpr std::size_t longest = 100;
  const auto is_printed = [](unsigned char c) { return c > 0x20 && c != 0x7f; };
  if (name.empty() || name.size() > longest || !std::all_of(name.begin(), name.end(), is_printed))
    throw UsageError(shown(name) + " in " + shown(text) + " is no name of a mesh axis; it has 1 to " +
                     std::to_string(longest) + " characters, without blanks");
  return name;
}
}  // namespace

std::vector<std::pair<std::string, int>> parse_mesh(const std::string& text) {
  std::vector<std::pair<std::string, int>> axes;
  for (const auto& word : split(text, ',')) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--mesh " + shown(text) + ": " + shown(word) +
                       " is not NAME=SIZE; write for example --mesh x=4,y=2");
    const auto size = parse_count(word.substr(equals + 1), text, 1);
    if (size > 1000000)
      throw UsageError("--mesh " + shown(text) + ": an axis of " + std::to_string(size) +
                       " devices is too long; 1000000 at most");
    axes.emplace_back(axis_name(word.substr(0, equals), text), static_cast<int>(size));
  }
  return axes;
}

PartitionSpec parse_spec(const std::string& text) {
  std::vector<DimSpec> dims;
  if (text.empty()) return PartitionSpec(dims);
  for (const auto& word : split(text, ',')) {
    if (word.empty() || word == "None" || word == "-")
      dims.emplace_back(None);
    else {
      const auto names = split(word, '+');
      for (const auto& name : names) axis_name(name, text);
      dims.emplace_back(DimSpec(names));
    }
  }
  return PartitionSpec(dims);
}

namespace {
void names_and_sizes(const std::string& text, std::vector<int>& sizes, std::vector<std::string>& names) {
  for (const auto& [name, size] : parse_mesh(text)) names.push_back(name), sizes.push_back(size);
}
}  // namespace

Mesh job_mesh(const Order& order) {
  if (order.mesh.empty()) return make_mesh({device_count()}, {"x"});
  std::vector<int> sizes;
  std::vector<std::string> names;
  names_and_sizes(order.mesh, sizes, names);
  return of_words([&] { return make_mesh(sizes, names); });
}
Mesh planning_mesh(const Order& order) {
  std::vector<int> sizes;
  std::vector<std::string> names;
  names_and_sizes(order.mesh.empty() ? "x=1" : order.mesh, sizes, names);
  return of_words([&] { return abstract_mesh(sizes, names); });
}

PartitionSpec spec_of(const Order& order, std::size_t operand) {
  if (order.specs.empty())
    return order.mesh.empty() ? P("x")
                              : PartitionSpec(std::vector<DimSpec>{DimSpec(parse_mesh(order.mesh)[0].first)});
  return parse_spec(order.specs[std::min(operand, order.specs.size() - 1)]);
}

namespace {
std::string& words_of_command() {
  static std::string words;
  return words;
}
}  // namespace

void note_words(int argc, char** argv) {
  constexpr std::size_t longest = 300;
  std::string& words = words_of_command();
  for (int i = 1; i < argc; ++i) words += (i > 1 ? " " : "") + std::string(argv[i]);
  if (words.size() > longest) words = words.substr(0, longest) + " ...";
}
const char* noted_words() { return words_of_command().c_str(); }

std::string find_machine(std::string& word) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (word == "reference" || fs::is_regular_file(word, none)) return {};
  const auto installed =
      fs::read_symlink("/proc/self/exe", none).parent_path().parent_path() / "share/tessera/machines";
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(installed, none)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  if (std::find(names.begin(), names.end(), word) != names.end()) {
    word = installed / (word + ".json");
    return {};
  }
  return shown(word) + " is no file of rates" + did_you_mean(word, names) +
         (names.empty() ? "; no machines are installed in " + installed.string()
                        : "; installed machines are " + join(names, ", ")) +
         ". `tessera machine -o FILE` measures this one";
}

std::string without_places(const std::string& text) {
  // Removes " at compute.cpp:27" (and " compute.cpp:27" after an instruction's #).
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const auto place = text.find(".cpp:", at);
    if (place == std::string::npos) return result + text.substr(at);
    auto begin = text.rfind(' ', place);
    begin = begin == std::string::npos || begin < at ? at : begin;
    auto end = place + 5;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
    if (begin >= at + 3 && text.compare(begin - 3, 3, " at") == 0) begin -= 3;
    result += text.substr(at, begin - at);
    at = end;
  }
  return result;
}

bool under_launcher() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr ||
         std::getenv("PMI_RANK") != nullptr;
}

}  // namespace cli
