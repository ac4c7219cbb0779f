// The file formats of the command line, by file name extension.
#include <filesystem>
#include <optional>

#include "base/text.hpp"
#include "commands.hpp"

namespace cli {

using namespace tessera;

namespace {

enum class Format { npy, npz, hdf5, safetensors, csv, matrix_market, zarr, netcdf };
struct Kind {
  const char* ending;
  Format format;
  const char* member;  // the kind of member named after a colon; null if the file is one array
};
constexpr Kind kinds[] = {{".npy", Format::npy, nullptr},
                          {".npz", Format::npz, "array"},
                          {".h5", Format::hdf5, "dataset"},
                          {".hdf5", Format::hdf5, "dataset"},
                          {".safetensors", Format::safetensors, "tensor"},
                          {".nc", Format::netcdf, "variable"},
                          {".csv", Format::csv, nullptr},
                          {".mtx", Format::matrix_market, nullptr}};

struct FileName {
  Format format;
  std::string path, member;
};

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// A store that is one array needs no member name.
std::optional<FileName> parse_store(const std::string& word) {
  const auto at = word.find(".zarr:");
  if (at != std::string::npos) return FileName{Format::zarr, word.substr(0, at + 5), word.substr(at + 6)};
  std::string path = word;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (ends_with(path, ".zarr") || path.find(".zarr/") != std::string::npos)
    return FileName{Format::zarr, path, ""};
  return std::nullopt;
}
std::string place_of(const FileName& file) {
  return file.member.empty() ? file.path : file.path + "/" + file.member;
}

FileName parse_file(const std::string& word) {
  if (const auto store = parse_store(word)) return *store;
  for (const Kind& kind : kinds) {
    const std::string ending = kind.ending;
    if (kind.member == nullptr) {
      if (ends_with(word, ending)) return {kind.format, word, ""};
      continue;
    }
    if (const auto at = word.find(ending + ":"); at != std::string::npos)
      return {kind.format, word.substr(0, at + ending.size()), word.substr(at + ending.size() + 1)};
    if (ends_with(word, ending))
      throw UsageError(shown(word) + " names no " + kind.member + "; write " +
                       shown(word + (kind.format == Format::hdf5 ? ":/" : ":") + kind.member) +
                       ", or see what it holds with "
                       "tessera info");
  }
  throw UsageError(shown(word) +
                   " is no file that tessera knows; there are x.npy, x.npz:array, x.h5:/dataset, "
                   "x.safetensors:tensor, x.zarr, x.zarr:array, x.nc:variable, x.csv and x.mtx");
}

}  // namespace

io::FileInfo file_info(const std::string& word) {
  const auto file = parse_file(word);
  const auto member_of = [&](const std::map<std::string, io::FileInfo>& members) {
    const auto found = members.find(file.member);
    if (found != members.end()) return found->second;
    std::vector<std::string> names;
    for (const auto& [name, info] : members) names.push_back(name);
    throw IoError(shown(file.path) + " has no array " + shown(file.member) + "; it has " + join(names) +
                  did_you_mean(file.member, names));
  };
  switch (file.format) {
    case Format::npy: return io::npy_info(file.path, {});
    case Format::npz: return member_of(io::npz_info(file.path, {}));
    case Format::safetensors: return member_of(io::safetensors_info(file.path, {}));
    case Format::csv: return io::csv_info(file.path, {}, {});
    case Format::hdf5: return io::hdf5_info(file.path, file.member, {});
    case Format::zarr: return io::zarr_info(place_of(file), {});
    case Format::netcdf: return io::hdf5_info(file.path, file.member, {});
    default: return io::matrix_market_info(file.path, {});
  }
}
io::FileInfo operand_info(const std::string& word, const std::string& dtype) {
  if (is_shape(word)) return {parse_shape(word), of_words([&] { return dtype_from_name(dtype); }), "a shape"};
  if (word.find('.') == std::string::npos && !std::filesystem::exists(word))
    throw UsageError(shown(word) + " is neither a file nor a shape like 1797x64");
  return file_info(word);
}

Array load(const std::string& word, const Sharding& sharding) {
  const auto file = parse_file(word);
  switch (file.format) {
    case Format::npy: return io::load_npy(file.path, sharding, {});
    case Format::npz: return io::load_npz(file.path, file.member, sharding, {});
    case Format::safetensors: return io::load_safetensors(file.path, file.member, sharding, {});
    case Format::csv: return io::load_csv(file.path, sharding, {}, {});
    case Format::hdf5: return io::load_hdf5(file.path, file.member, sharding, {}, {});
    case Format::zarr: return io::load_zarr(place_of(file), sharding, {}, {});
    case Format::netcdf: return io::load_netcdf(file.path, file.member, sharding, {}, {});
    default: return io::load_matrix_market(file.path, sharding, {});
  }
}

namespace {

// Refuses to overwrite an existing dataset without --force.
void check_dataset(const std::string& path, const std::string& dataset) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return;
  const auto wanted = dataset.front() == '/' ? dataset : "/" + dataset;
  for (const auto& name : io::hdf5_datasets(path, {}))
    if ((name.front() == '/' ? name : "/" + name) == wanted)
      throw IoError(shown(path) + " has a dataset " + shown(wanted) + " already; --force replaces it");
}

}  // namespace

void check_output(const Order& order) {
  const std::string& word = order.output;
  const auto file = parse_file(word);
  if (file.format == Format::hdf5 && (file.member.empty() || file.member.back() == '/'))
    throw UsageError(shown(word) + " names no dataset; write " + shown(file.path + ":/dataset"));
  if (file.format == Format::hdf5 && !order.force) check_dataset(file.path, file.member);
  const auto folder = std::filesystem::path(file.path).parent_path();
  std::error_code none;
  if (!folder.empty() && !std::filesystem::is_directory(folder, none))
    throw IoError("there is no folder " + shown(folder.string()) + " to write " + shown(file.path) +
                  " into; make it first");
}

namespace {

void save_into_store(const FileName& file, const Array& x) {
  if (file.member.empty()) return io::save_zarr(file.path, x, {}, {});
  io::Zarr out(file.path, {}, {});
  out.write(file.member, x, {}, {});
  out.close({});
}
// The dims of a result are unnamed, so they become dim_0, dim_1, ...
void save_as_variable(const FileName& file, const Array& x) {
  std::vector<std::string> dims;
  for (int d = 0; d < x.ndim(); ++d) dims.push_back("dim_" + std::to_string(d));
  io::save_netcdf(file.path, {{file.member, x}}, {{file.member, dims}}, {});
}

}  // namespace

void save(const Order& order, const Array& x) {
  const auto file = parse_file(order.output);
  const auto mode = order.force ? io::Hdf5Mode::replace : io::Hdf5Mode::append;
  switch (file.format) {
    case Format::npy: return io::save_npy(file.path, x, {});
    case Format::npz: return io::save_npz(file.path, {{file.member, x}}, {});
    case Format::safetensors: return io::save_safetensors(file.path, {{file.member, x}}, {}, {});
    case Format::csv: return io::save_csv(file.path, x, {}, {});
    case Format::hdf5: return io::save_hdf5(file.path, file.member, x, {.mode = mode}, {});
    case Format::zarr: return save_into_store(file, x);
    case Format::netcdf: return save_as_variable(file, x);
    default: return io::save_matrix_market(file.path, x, {}, {});
  }
}

namespace {

std::vector<NamedInfo> in_order(const std::map<std::string, io::FileInfo>& members) {
  return {members.begin(), members.end()};
}

// The leaves of the latest step.
FileContents checkpoint_contents(const std::string& path) {
  FileContents found{"checkpoint", {}, {}, {}};
  const auto latest = io::checkpoint::latest_step(path, {});
  if (!latest) throw IoError(shown(path) + " is a folder without a complete checkpoint");
  found.facts.emplace_back("latest step", std::to_string(*latest));
  for (auto& leaf : checkpoint_leaves(path, *latest)) found.arrays.push_back(std::move(leaf));
  return found;
}

template <class Attributes> void add_attributes(FileContents& contents, const Attributes& attributes) {
  for (const auto& [key, value] : attributes)
    if (const auto* text = std::get_if<std::string>(&value)) contents.facts.emplace_back(key, *text);
}
FileContents store_contents(const FileName& file) {
  FileContents found{"zarr", in_order(io::zarr_arrays(place_of(file), {})), {}, {}};
  add_attributes(found, io::zarr_attributes(place_of(file), {}));
  return found;
}
FileContents netcdf_contents(const std::string& path) {
  FileContents found{"netcdf", {}, {}, {}};
  for (const auto& [name_of_variable, variable] : io::netcdf_variables(path, {})) {
    found.arrays.emplace_back(name_of_variable, variable.info);
    found.arrays.back().second.detail = "(" + join(variable.dims) + ")";
  }
  add_attributes(found, io::netcdf_attributes(path, "", {}));
  return found;
}

}  // namespace

FileContents contents_of(const std::string& word) {
  if (const auto store = parse_store(word)) return store_contents(*store);
  if (ends_with(word, ".nc")) return netcdf_contents(word);
  if (std::filesystem::is_directory(word)) return checkpoint_contents(word);
  if (ends_with(word, ".npz")) return {"npz", in_order(io::npz_info(word, {})), {}, {}};
  if (ends_with(word, ".safetensors")) {
    FileContents found{"safetensors", in_order(io::safetensors_info(word, {})), {}, {}};
    for (const auto& [key, text] : io::safetensors_metadata(word, {})) found.facts.emplace_back(key, text);
    return found;
  }
  if (ends_with(word, ".h5") || ends_with(word, ".hdf5")) {
    FileContents found{"hdf5", {}, {}, {}};
    for (const auto& dataset : io::hdf5_datasets(word, {})) try {
        found.arrays.emplace_back(dataset, io::hdf5_info(word, dataset, {}));
      } catch (const IoError& error) {  // texts, or other types that tessera does not read
        found.others.emplace_back(dataset);
      }
    return found;
  }
  FileContents found{"", {{"", file_info(word)}}, {}, {}};
  const auto file = parse_file(word);
  found.kind = file.format == Format::npy             ? "npy"
               : file.format == Format::csv           ? "csv"
               : file.format == Format::matrix_market ? "matrix market"
                                                      : "one array";
  if (file.format == Format::csv && !io::csv_header(word, {}, {}).empty())
    found.facts.emplace_back("columns", join(io::csv_header(word, {}, {})));
  return found;
}

}  // namespace cli
