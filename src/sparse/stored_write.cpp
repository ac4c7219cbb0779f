#include <tessera/io/zarr.hpp>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "base/call.hpp"
#include "comm/collectives/collectives.hpp"
#include "graph/op.hpp"
#include "io/archive/npz_archive.hpp"
#include "mesh/devices.hpp"
#include "ops/groups.hpp"
#include "sparse/stored.hpp"

namespace tessera::sparse {
namespace {

int my_device() { return local_devices()[0].id; }

// A vector of the ranks' parts in their order, resharded to even blocks along the axes of the rows.
Array joined(const SparsePattern& p, Dtype dtype, std::int64_t total, std::vector<std::byte> part) {
  const Sharding layout = Sharding::from_dim_axes(p.sharding.mesh(), {p.axes()});
  if (!holds_rows(p.sharding)) return make_leaf({{total}, dtype}, layout, Buffer::allocate(0), true);
  const auto& comm = group_of_dim(p.sharding, 0, 1, my_device());
  const auto width = static_cast<std::int64_t>(itemsize(dtype));
  const std::int64_t count = std::ssize(part) / width,
                     size = std::max<std::int64_t>(block_size(total, comm.size()), 1);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()));
  comm::all_gather(comm, &count, sizeof count, reinterpret_cast<std::byte*>(counts.data()));
  std::vector<std::int64_t> starts(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), starts.begin(), std::int64_t{0});
  const auto common = [&](int holder, int taker) {
    const auto h = static_cast<std::size_t>(holder);
    const Range range{std::max(starts[h], taker * size),
                      std::min({starts[h] + counts[h], (taker + 1) * size, total})};
    return range.stop > range.start ? range : Range{range.start, range.start};
  };
  const int me = comm.rank();
  const auto first = std::min(me * size, total);
  Buffer block = Buffer::allocate(static_cast<std::size_t>((std::min(first + size, total) - first) * width));
  std::vector<comm::Message> sends, receives;
  for (int peer = 0; peer < comm.size(); ++peer) {
    const Range to = common(me, peer), from = common(peer, me);
    auto* const sent = part.data() + (to.start - starts[static_cast<std::size_t>(me)]) * width;
    auto* const received = block.data() + (from.start - first) * width;
    if (peer == me && to.size() > 0) std::memcpy(received, sent, static_cast<std::size_t>(to.size() * width));
    if (peer == me) continue;
    const int device = comm.device_ids()[static_cast<std::size_t>(peer)];
    if (to.size() > 0) sends.push_back({device, sent, to.size() * width});
    if (from.size() > 0) receives.push_back({device, received, from.size() * width});
  }
  comm::exchange(
      comm, sends, receives, [](std::size_t) {}, "arrays of a sparse matrix");
  return make_leaf({{total}, dtype}, layout, std::move(block), true);
}

template <class T> std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  const auto* first = reinterpret_cast<const std::byte*>(values.data());
  return {first, first + values.size() * sizeof(T)};
}

// This rank's entries, each row sorted by columns.
struct OwnEntries {
  std::vector<std::int64_t> ends, columns;
  std::vector<std::byte> values;
};
OwnEntries own_entries(const Csr& a, const Array& values) {
  const SparsePattern& p = *a.pattern();
  OwnEntries own;
  if (!holds_rows(p.sharding)) return own;
  const auto width = itemsize(values.dtype());
  std::int64_t elements = 0;
  const auto* stored = detail::local_bytes(values, values.dtype(), elements, std::source_location::current());
  const auto first_column = own_rows(p.sharding, p.columns).start;
  std::vector<std::pair<std::int64_t, std::int64_t>> row;  // column, position
  for (std::size_t r = 0; r < p.plan.split.size(); ++r) {
    row.clear();
    for (auto k = p.plan.begin[r]; k < p.plan.begin[r + 1]; ++k) {
      const auto column = p.plan.column[static_cast<std::size_t>(k)];
      row.emplace_back(
          k < p.plan.split[r] ? first_column + column : p.plan.others[static_cast<std::size_t>(column)], k);
    }
    std::sort(row.begin(), row.end());
    for (const auto& [column, k] : row) {
      const auto* value = stored + static_cast<std::size_t>(k) * width;
      own.columns.push_back(column);
      own.values.insert(own.values.end(), value, value + width);
    }
    own.ends.push_back(std::ssize(own.columns));
  }
  return own;
}

// Makes the ends of the rank's rows count from the first rank's first entry.
void shift_ends(const SparsePattern& p, OwnEntries& own) {
  if (!holds_rows(p.sharding)) return;
  const auto& comm = group_of_dim(p.sharding, 0, 1, my_device());
  const std::int64_t count = std::ssize(own.columns);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(comm.size()));
  comm::all_gather(comm, &count, sizeof count, reinterpret_cast<std::byte*>(counts.data()));
  const auto before = std::accumulate(counts.begin(), counts.begin() + comm.rank(), std::int64_t{0});
  for (auto& end : own.ends) end += before;
  if (comm.rank() == 0) own.ends.insert(own.ends.begin(), 0);
}

}  // namespace

CompressedArrays compressed(const Csr& a) {
  const SparsePattern& p = *a.pattern();
  const Array values = device_put(a.values(), Sharding::from_dim_axes(p.sharding.mesh(), {p.axes(), {}}));
  eval({values});
  OwnEntries own = own_entries(a, values);
  shift_ends(p, own);
  // 32 bits where they suffice, as SciPy chooses.
  const bool is_short = std::max(p.entries, p.columns) <= std::numeric_limits<std::int32_t>::max();
  const auto positions = [&](const std::vector<std::int64_t>& numbers, std::int64_t total) {
    return is_short
               ? joined(p, int32, total, bytes_of(std::vector<std::int32_t>(numbers.begin(), numbers.end())))
               : joined(p, int64, total, bytes_of(numbers));
  };
  return {a.is_transposed() ? "csc" : "csr",
          {{"data", joined(p, values.dtype(), p.entries, std::move(own.values))},
           {"indices", positions(own.columns, p.entries)},
           {"indptr", positions(own.ends, p.rows + 1)}}};
}

void save_npz(const std::string& path, const Csr& a, std::source_location where) {
  const Call call("sparse::save_npz", where);
  auto [format, arrays] = compressed(a);
  arrays.emplace("shape", array<std::int64_t>({a.shape()[0], a.shape()[1]}));
  io::save_npz_with_texts(path, arrays, {{"format", format}});
}

namespace {

// Both writers have the same functions.
template <class Writer> void write_group(Writer& out, const std::string& group, const std::string& prefix,
                                         const Csr& a, std::source_location where) {
  const auto [format, arrays] = compressed(a);
  if (!group.empty()) out.group(group, where);
  for (const auto& [name, x] : arrays) out.write(prefix + name, x, {}, where);
  out.attribute(group, "encoding-type", format + "_matrix", where);
  out.attribute(group, "encoding-version", "0.1.0", where);
  out.attribute(group, "shape", std::vector<std::int64_t>(a.shape().vector()), where);
  out.close(where);
}

}  // namespace

void save_hdf5(const std::string& path, const std::string& group, const Csr& a, std::source_location where) {
  const Call call("sparse::save_hdf5", where);
  io::Hdf5Writer out(path, {}, where);
  write_group(out, group, group + "/", a, where);
}
void save_zarr(const std::string& path, const Csr& a, std::source_location where) {
  const Call call("sparse::save_zarr", where);
  io::Zarr out(path, {.mode = io::ZarrOpen::replace}, where);
  write_group(out, "", "", a, where);
}

}  // namespace tessera::sparse
