// The small languages of the command line: shapes, meshes, specs, file names.
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"
#include "commands.hpp"

namespace cli {

using namespace tessera;

namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  }
  return parts;
}

std::int64_t parse_count(const std::string& word, const std::string& where, std::int64_t least) {
  char* end = nullptr;
  errno = 0;
  const long long value = std::strtoll(word.c_str(), &end, 10);
  if (errno == ERANGE)
    throw UsageError(tessera::quoted(word) + " in " + tessera::quoted(where) + " does not fit 64 bits");
  if (word.empty() || *end != '\0' || value < least)
    throw UsageError(tessera::quoted(word) + " in " + tessera::quoted(where) + " is no number from " +
                     std::to_string(least) + " up");
  return value;
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

enum class Format { npy, hdf5, matrix_market };
struct FileName {
  Format format;
  std::string path, dataset;
};
FileName parse_file(const std::string& word) {
  for (const std::string ending : {".h5:", ".hdf5:"}) {
    const auto at = word.find(ending);
    if (at != std::string::npos)
      return {Format::hdf5, word.substr(0, at + ending.size() - 1), word.substr(at + ending.size())};
  }
  if (ends_with(word, ".npy")) return {Format::npy, word, ""};
  if (ends_with(word, ".mtx")) return {Format::matrix_market, word, ""};
  if (ends_with(word, ".h5") || ends_with(word, ".hdf5"))
    throw UsageError(tessera::quoted(word) + " names no dataset; write " +
                     tessera::quoted(word + ":/dataset"));
  throw UsageError(tessera::quoted(word) +
                   " is no file that tessera knows; there are x.npy, x.h5:/dataset and x.mtx");
}

}  // namespace

bool is_shape(const std::string& word) {
  return !word.empty() && word[0] >= '0' && word[0] <= '9' &&
         word.find_first_not_of("0123456789x") == std::string::npos;
}

Shape parse_shape(const std::string& text) {
  std::vector<std::int64_t> extents;
  for (const auto& word : split(text, 'x')) extents.push_back(parse_count(word, text, 0));
  return Shape(extents);
}

std::vector<std::pair<std::string, int>> parse_mesh(const std::string& text) {
  std::vector<std::pair<std::string, int>> axes;
  for (const auto& word : split(text, ',')) {
    const auto equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UsageError("--mesh " + tessera::quoted(text) + ": " + tessera::quoted(word) +
                       " is not NAME=SIZE; write for example --mesh x=4,y=2");
    const auto size = parse_count(word.substr(equals + 1), text, 1);
    if (size > 1000000)
      throw UsageError("--mesh " + tessera::quoted(text) + ": an axis of " + std::to_string(size) +
                       " devices is too long; 1000000 at most");
    axes.emplace_back(word.substr(0, equals), static_cast<int>(size));
  }
  return axes;
}

PartitionSpec parse_spec(const std::string& text) {
  std::vector<DimSpec> dims;
  if (text.empty()) return PartitionSpec(dims);
  for (const auto& word : split(text, ',')) {
    if (word.empty() || word == "None" || word == "-")
      dims.emplace_back(None);
    else
      dims.emplace_back(DimSpec(split(word, '+')));
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

io::FileInfo file_info(const std::string& word) {
  const auto file = parse_file(word);
  switch (file.format) {
    case Format::npy: return io::npy_info(file.path, {});
    case Format::hdf5: return io::hdf5_info(file.path, file.dataset, {});
    default: return io::matrix_market_info(file.path, {});
  }
}
io::FileInfo operand_info(const std::string& word, const std::string& dtype) {
  if (is_shape(word)) return {parse_shape(word), of_words([&] { return dtype_from_name(dtype); }), "a shape"};
  return file_info(word);
}
Array load(const std::string& word, const Sharding& sharding) {
  const auto file = parse_file(word);
  switch (file.format) {
    case Format::npy: return io::load_npy(file.path, sharding, {});
    case Format::hdf5: return io::load_hdf5(file.path, file.dataset, sharding, {}, {});
    default: return io::load_matrix_market(file.path, sharding, {});
  }
}
void check_output(const std::string& word) {
  const auto file = parse_file(word);
  if (file.format == Format::matrix_market)
    throw UsageError("writing Matrix Market is not supported; write " +
                     tessera::quoted(word.substr(0, word.size() - 4) + ".npy"));
  if (file.format == Format::hdf5 && (file.dataset.empty() || file.dataset.back() == '/'))
    throw UsageError(tessera::quoted(word) + " names no dataset; write " +
                     tessera::quoted(file.path + ":/dataset"));
  const auto folder = std::filesystem::path(file.path).parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw IoError("there is no folder " + tessera::quoted(folder.string()) + " to write " +
                  tessera::quoted(file.path) + " into; make it first");
}
void save(const std::string& word, const Array& x) {
  const auto file = parse_file(word);
  switch (file.format) {
    case Format::npy: return io::save_npy(file.path, x, {});
    case Format::hdf5: return io::save_hdf5(file.path, file.dataset, x, {}, {});
    default: check_output(word);
  }
}

std::string without_places(const std::string& text) {
  // " at compute.cpp:27" (and " compute.cpp:27" behind an instruction's #)
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
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr || std::getenv("PMIX_RANK") != nullptr;
}

}  // namespace cli
