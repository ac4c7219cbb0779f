// Loading of stored matrices: each rank reads its share.
#include <tessera/io/zarr.hpp>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "api/memory.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/blocks.hpp"
#include "mesh/devices.hpp"
#include "ops/groups.hpp"
#include "sparse/stored.hpp"

namespace tessera::sparse {
namespace {

template <class T>
T attribute_of(const std::map<std::string, io::Attribute>& attributes, const char* name, const char* older) {
  for (const char* key : {name, older})
    if (const auto found = attributes.find(key); found != attributes.end())
      if (const auto* value = std::get_if<T>(&found->second)) return *value;
  return {};
}

// The memory that a rank needs. A product's plan has two numbers for each row, and its vectors an element for
// each row and column; an entry has two positions and a value, as read and in the order of its row.
std::int64_t bytes_of_share(const MatrixFile& m, std::int64_t ranks) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() / 128;
  const auto& data = m.arrays.at("data")->info;
  const std::int64_t row_bytes = 16,
                     entry_bytes = 2 * (16 + static_cast<std::int64_t>(itemsize(kept_dtype(data.dtype))));
  const auto share = [&](std::int64_t count) { return std::min(count, most) / ranks; };
  return share(std::max(m.shape[0], m.shape[1])) * row_bytes + share(data.shape.elements()) * entry_bytes;
}

Csr load(const std::string& path, const std::string& group, const Sharding& sharding,
         const std::function<MatrixFile()>& open) {
  const io::Team team(call_text() + " of " + in_quotes(path) + ", group " + in_quotes(group) + " " +
                      io::layout_text(sharding));
  MatrixFile file;
  team.together([&] {
    file = open();
    const std::string what = call_text() + " of " + in_quotes(path) + ", a " + file.format +
                             " matrix of shape " + to_string(file.shape) + " with entries " +
                             to_string(file.arrays.at("data")->info.shape);
    check_memory(bytes_of_share(file, sharding.mesh().size()), what + ", which is kept in memory whole,");
  });
  const auto& data = file.arrays.at("data")->info;
  team.same(call_text(), path,
            file.format + " of " + to_string(file.shape) + ", entries " + to_string(data.shape) + " of " +
                name(data.dtype));
  const Sharding split = checked_rows(file.shape, sharding);
  LocalEntries mine{{}, {}, kept_dtype(data.dtype), {}};
  team.together([&] {
    if (!holds_rows(split)) return;
    const auto& comm = group_of_dim(split, 0, 1, local_devices()[0].id);
    mine = read_share(file, own_rows(split, file.shape[0]), comm.rank(), comm.size());
  });
  return assemble(file.shape, split, std::move(mine));
}

}  // namespace

MatrixFile stored_group(const std::string& path, const std::string& group) {
  const bool is_store = std::filesystem::is_directory(path);
  MatrixFile m{in_quotes(path) + (group.empty() ? "" : ", group " + in_quotes(group)), "", {}, {}};
  const auto attributes = is_store ? io::zarr_attributes(path) : io::hdf5_attributes(path, group);
  const auto kind = attribute_of<std::string>(attributes, "encoding-type", "h5sparse_format");
  m.format = kind.substr(0, 3);
  if (m.format != "csr" && m.format != "csc")
    throw IoError(call_text() + ": " + m.what +
                  (kind.empty() ? " has no attribute 'encoding-type'"
                                : " has the attribute 'encoding-type' = " + in_quotes(kind)) +
                  "; a sparse matrix of AnnData has csr_matrix or csc_matrix there");
  m.shape =
      checked_shape(m.what, attribute_of<std::vector<std::int64_t>>(attributes, "shape", "h5sparse_shape"));
  for (const auto& name : arrays_of(m.what, m.format))
    m.arrays[name] = stream::source_of(call_text(), path, is_store ? name : group + "/" + name, false);
  return m;
}

Csr load_npz(const std::string& path, const Sharding& sharding, std::source_location where) {
  const Call call("sparse::load_npz", where);
  return load(path, "", sharding, [&] {
    io::File file(call_text(), path, io::File::Mode::read);
    return stored_npz(path, std::make_shared<const io::NpzArchive>(std::move(file)));
  });
}
Csr load_hdf5(const std::string& path, const std::string& group, const Sharding& sharding,
              std::source_location where) {
  const Call call("sparse::load_hdf5", where);
  return load(path, group, sharding, [&] { return stored_group(path, group); });
}
Csr load_zarr(const std::string& path, const Sharding& sharding, std::source_location where) {
  const Call call("sparse::load_zarr", where);
  return load(path, "", sharding, [&] { return stored_group(path, ""); });
}

}  // namespace tessera::sparse
