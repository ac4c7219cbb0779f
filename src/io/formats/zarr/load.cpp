// load_zarr, and listing the contents of a store.
#include <sys/stat.h>
#include <tessera/io/zarr.hpp>

#include <exception>
#include <filesystem>

#include "base/call.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "io/blocks.hpp"
#include "io/formats/part.hpp"
#include "io/formats/zarr/chunk_read.hpp"
#include "io/formats/zarr/folder_place.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "kernels/move/copy.hpp"
#include "types/buffer.hpp"

namespace tessera::io {
namespace {

using zarr::ArrayMeta;
using zarr::ZarrNode;

// Reads a box of a part that takes every step-th element of the array.
void read_part(const std::string& call, const std::string& path, const ArrayMeta& meta, const Selection& part,
               const Box& box, std::byte* out) {
  if (is_empty(box)) return;
  const Box span = part.span_of(box);
  const int threads = zarr::reading_threads(meta);
  if (part.has_no_steps()) return zarr::read_box(call, path, meta, span, out, threads);
  const auto width = itemsize(meta.dtype);
  const Buffer all = Buffer::allocate(static_cast<std::size_t>(box_elements(span)) * width);
  zarr::read_box(call, path, meta, span, all.data(), threads);
  auto strides = row_major_strides(box_shape(span));
  for (std::size_t d = 0; d < strides.size(); ++d) strides[d] *= part.step[d];
  kernels::copy_strided(out, row_major_strides(box_shape(box)), all.data(), strides, box_shape(box), width);
}

// Identifies the save that wrote the current array; 0 if there is none.
std::int64_t writing_of(const std::string& path) {
  for (const char* file : {"/zarr.json", "/.zarray"}) {
    struct stat facts {};
    if (::stat((path + file).c_str(), &facts) != 0) continue;
    const std::int64_t words[] = {static_cast<std::int64_t>(facts.st_ino), facts.st_ctim.tv_sec,
                                  facts.st_ctim.tv_nsec, facts.st_size};
    return static_cast<std::int64_t>(hash_bytes(words, sizeof words) >> 1);
  }
  return 0;
}

Array load_once(const std::string& path, const std::optional<Sharding>& sharding,
                const ZarrLoadOptions& options) {
  ArrayMeta meta;
  Selection part;
  Reader reader;
  reader.header = [&] {
    zarr::recover(call_text(), path);
    meta = zarr::read_array(call_text(), path);
    part = part_of(call_text(), in_quotes(path), options.slices, meta.shape);
    return FileInfo{Shape(part.count), meta.dtype, zarr::detail_of(meta)};
  };
  reader.block = [&](const Box& box, std::byte* out) { read_part(call_text(), path, meta, part, box, out); };
  return load_blocks(in_quotes(path) + slices_text(options.slices), sharding, reader);
}

// Reads again if another job replaces the array meanwhile, since the files of a folder are opened one by one.
Array load(const std::string& path, const std::optional<Sharding>& sharding, const ZarrLoadOptions& options) {
  constexpr int most_times = 20;
  for (int times = 1;; ++times) {
    const std::int64_t before = writing_of(path);
    std::optional<Array> loaded;
    std::exception_ptr failure;  // the same on all ranks
    try {
      loaded = load_once(path, sharding, options);
    } catch (const IoError&) {
      failure = std::current_exception();
    }
    std::int64_t range[2] = {before, -before};
    comm::all_reduce(comm::world(), ReduceKind::max, int64, range, range, 2);
    const bool is_steady = comm::all_ok(comm::world(), writing_of(path) == before && range[0] == -range[1]);
    if (is_steady && loaded) return *loaded;
    if (failure && (is_steady || times == most_times)) std::rethrow_exception(failure);
    if (times == most_times)
      throw IoError(call_text() + ": " + in_quotes(path) +
                    " is replaced by another job whenever it is read; wait for that one");
  }
}

FileInfo info_of(const ArrayMeta& meta) { return {meta.shape, meta.dtype, zarr::detail_of(meta)}; }

// Reads a path that must be a node.
ZarrNode node_at(const std::string& path) {
  zarr::recover(call_text(), path);
  ZarrNode node = zarr::read_node(call_text(), path);
  if (node.kind == ZarrNode::Kind::none)
    throw IoError(call_text() + ": " + in_quotes(path) +
                  (std::filesystem::exists(path) ? " holds no Zarr store" : " is not there") +
                  "; check the path");
  return node;
}

}  // namespace

Array load_zarr(const std::string& path, const Sharding& sharding, const ZarrLoadOptions& options,
                std::source_location where) {
  const Call call("load_zarr", where);
  return load(path, sharding, options);
}
Array load_zarr(const std::string& path, const ZarrLoadOptions& options, std::source_location where) {
  const Call call("load_zarr", where);
  return load(path, std::nullopt, options);
}

FileInfo zarr_info(const std::string& path, std::source_location where) {
  const Call call("zarr_info", where);
  zarr::recover(call_text(), path);
  return info_of(zarr::read_array(call_text(), path));
}

std::map<std::string, FileInfo> zarr_arrays(const std::string& path, std::source_location where) {
  const Call call("zarr_arrays", where);
  const ZarrNode top = node_at(path);
  std::map<std::string, FileInfo> found;
  if (top.kind == ZarrNode::Kind::array) found.emplace("", info_of(top.meta));
  if (top.kind == ZarrNode::Kind::group)
    for (const auto& [name, node] : zarr::nodes_below(call_text(), path))
      if (node.kind == ZarrNode::Kind::array) found.emplace(name, info_of(node.meta));
  return found;
}

std::vector<std::string> zarr_dims(const std::string& path, std::source_location where) {
  const Call call("zarr_dims", where);
  return zarr::read_array(call_text(), path).dims;
}
std::map<std::string, Attribute> zarr_attributes(const std::string& path, std::source_location where) {
  const Call call("zarr_attributes", where);
  return zarr::attributes_of(node_at(path).attributes);
}
std::string zarr_attributes_json(const std::string& path, std::source_location where) {
  const Call call("zarr_attributes_json", where);
  return zarr::value_text(node_at(path).attributes);
}
std::string zarr_metadata_json(const std::string& path, std::source_location where) {
  const Call call("zarr_metadata_json", where);
  return zarr::value_text(zarr::array_document(zarr::read_array(call_text(), path)));
}

}  // namespace tessera::io
