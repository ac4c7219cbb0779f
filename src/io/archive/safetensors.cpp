// .safetensors: dense tensors by name, behind a JSON header with the offset of each.
#include <cstring>

#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/archive/safetensors_header.hpp"
#include "io/blocks.hpp"
#include "io/file.hpp"

namespace tessera::io {
namespace {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

constexpr const char* how_to_mend = "write it again, or check it against the safetensors format";

SafetensorsHeader read_header(const File& file) {
  const std::int64_t size = file.bytes();
  std::string first(std::min(size, safetensors_prefix_bytes), '\0');
  file.read(first.data(), static_cast<std::int64_t>(first.size()), 0);
  std::string text(parsed(file, how_to_mend, [&] { return parse_safetensors_prefix(first, size); }), '\0');
  file.read(text.data(), static_cast<std::int64_t>(text.size()), safetensors_prefix_bytes);
  return parsed(file, how_to_mend, [&] { return parse_safetensors(text, size); });
}

const SafeTensor& find(const File& file, const SafetensorsHeader& header, const std::string& tensor) {
  if (const auto found = header.tensors.find(tensor); found != header.tensors.end()) return found->second;
  constexpr std::size_t most = 20;
  std::vector<std::string> names, shown;
  for (const auto& [name, facts] : header.tensors) {
    names.push_back(name);
    if (shown.size() < most) shown.push_back(in_quotes(name));
  }
  file.fail("has no tensor " + in_quotes(tensor),
            names.empty()
                ? "it has none at all"
                : "it has " + join(shown) +
                      (names.size() > most ? " and " + std::to_string(names.size() - most) + " more" : "") +
                      did_you_mean(tensor, names));
}

FileInfo info_of(const SafeTensor& tensor) { return {tensor.shape, tensor.dtype, "safetensors"}; }

void read_tensor_box(const File& file, const SafeTensor& tensor, const Box& box, std::byte* out) {
  read_box(file, {tensor.shape, static_cast<std::int64_t>(itemsize(tensor.dtype)), tensor.begin}, box, out);
  if (tensor.dtype == bool_)
    for (std::int64_t i = 0; i < box_elements(box); ++i)
      out[i] = out[i] == std::byte{0} ? std::byte{0} : std::byte{1};
}

Array load_tensor(const std::string& path, const std::string& name, const std::optional<Sharding>& sharding) {
  std::optional<File> file;
  SafeTensor tensor;
  Reader reader;
  reader.header = [&] {
    file.emplace(call_text(), path, File::Mode::read);
    tensor = find(*file, read_header(*file), name);
    return info_of(tensor);
  };
  reader.block = [&](const Box& box, std::byte* out) { read_tensor_box(*file, tensor, box, out); };
  return load_blocks(in_quotes(path) + ", tensor " + in_quotes(name), sharding, reader);
}

}  // namespace

void save_safetensors(const std::string& path, const std::map<std::string, Array>& tensors,
                      const std::map<std::string, std::string>& metadata, std::source_location where) {
  const Call call("save_safetensors", where);
  SafetensorsHeader header;
  std::vector<Array> values;
  std::string details = ", tensors";
  std::int64_t at = 0;
  for (const auto& [name, x] : tensors) {
    check_usable(x);
    if (x.dtype() == complex128)
      throw DtypeError(
          call_text() + ": " + in_quotes(name) +
          " is complex128, which the format does not have; save real and imaginary parts, or astype "
          "complex64");
    if (name == "__metadata__")
      throw ArgumentError(call_text() + ": no tensor can be called \"__metadata__\"");
    header.tensors[name] = {x.shape(), x.dtype(), at, at + x.nbytes()};
    at += x.nbytes();
    values.push_back(x);
    details += " " + in_quotes(name);
  }
  header.metadata = metadata;
  for (const auto& [key, word] : metadata) details += ", " + in_quotes(key) + " " + in_quotes(word);
  const std::string text = safetensors_header_text(header);
  save_many(path, details, values,
            {[&](const std::string& temporary, const std::string&) {
               File file(call_text(), temporary, File::Mode::create);
               file.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
               file.resize(static_cast<std::int64_t>(text.size()) + at);
               file.sync();
               std::vector<std::int64_t> places;
               for (const auto& [name, tensor] : header.tensors)
                 places.push_back(static_cast<std::int64_t>(text.size()) + tensor.begin);
               return places;
             },
             nullptr, false});
}

Array load_safetensors(const std::string& path, const std::string& tensor, const Sharding& sharding,
                       std::source_location where) {
  const Call call("load_safetensors", where);
  return load_tensor(path, tensor, sharding);
}
Array load_safetensors(const std::string& path, const std::string& tensor, std::source_location where) {
  const Call call("load_safetensors", where);
  return load_tensor(path, tensor, std::nullopt);
}

std::map<std::string, FileInfo> safetensors_info(const std::string& path, std::source_location where) {
  const Call call("safetensors_info", where);
  std::map<std::string, FileInfo> found;
  for (const auto& [name, tensor] : read_header(File(call_text(), path, File::Mode::read)).tensors)
    found.emplace(name, info_of(tensor));
  return found;
}
std::map<std::string, std::string> safetensors_metadata(const std::string& path, std::source_location where) {
  const Call call("safetensors_metadata", where);
  return read_header(File(call_text(), path, File::Mode::read)).metadata;
}

}  // namespace tessera::io
