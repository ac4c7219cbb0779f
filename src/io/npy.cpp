// .npy files: a header, then the elements, so that every rank can locate its own box.
#include "base/call.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "io/blocks.hpp"
#include "io/npy_file.hpp"

namespace tessera::io {

Array load(const std::string& path, std::source_location where) {
  if (path.ends_with(".npy")) return load_npy(path, where);
  if (path.ends_with(".csv")) return load_csv(path, {}, where);
  if (path.ends_with(".mtx")) return load_matrix_market(path, where);
  const Call call("load", where);
  throw ArgumentError(call_text() + ": " + in_quotes(path) +
                      " ends with no format of one array: .npy, .csv or .mtx. Files of several are read by "
                      "load_npz, load_hdf5, load_zarr, load_netcdf and load_safetensors");
}

FileInfo npy_info(const std::string& path, std::source_location where) {
  const Call call("npy_info", where);
  const File file(call_text(), path, File::Mode::read);
  return npy_file_info(read_npy_header(file, 0, file.bytes()));
}

namespace {

Array load(const std::string& path, const std::optional<Sharding>& sharding) {
  std::optional<File> file;
  NpyHeader header;
  Reader reader;
  reader.header = [&] {
    file.emplace(call_text(), path, File::Mode::read);
    header = read_npy_header(*file, 0, file->bytes());
    if (header.bytes_behind > 0)
      log_once(LogLevel::warn, call_text() + ": " + in_quotes(path) + " has " +
                                   format_count(header.bytes_behind, "byte") +
                                   " after its array; they are ignored");
    return npy_file_info(header);
  };
  reader.block = [&](const Box& box, std::byte* out) { read_npy_box(*file, header, box, out); };
  return load_blocks(in_quotes(path), sharding, reader);
}

}  // namespace

Array load_npy(const std::string& path, const Sharding& sharding, std::source_location where) {
  const Call call("load_npy", where);
  return load(path, sharding);
}
Array load_npy(const std::string& path, std::source_location where) {
  const Call call("load_npy", where);
  return load(path, std::nullopt);
}

void save_npy(const std::string& path, const Array& x, std::source_location where) {
  const Call call("save_npy", where);
  save_blocks(path, "", x, [&](const std::string& temporary, const std::string&) {
    File file(call_text(), temporary, File::Mode::create);
    const std::string header = npy_header_text(x.shape(), x.dtype());
    file.write(header.data(), static_cast<std::int64_t>(header.size()), 0);
    file.resize(static_cast<std::int64_t>(header.size()) + x.nbytes());
    file.sync();
    return static_cast<std::int64_t>(header.size());
  });
}

}  // namespace tessera::io
