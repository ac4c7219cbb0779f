#include "sparse/assemble.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/call.hpp"
#include "base/hash.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "graph/op.hpp"
#include "kernels/visit.hpp"
#include "mesh/devices.hpp"
#include "ops/groups.hpp"
#include "ops/index/fetch.hpp"
#include "types/box.hpp"
#include "types/buffer.hpp"

namespace tessera::sparse {
namespace {

int this_device() { return local_devices()[0].id; }

void raise_everywhere(const std::string& mine, const std::function<void(const std::string&)>& raise) {
  const auto text = comm::common_error(comm::world(), mine);
  if (!text.empty()) raise(text);
}

void check_places(const Shape& shape, const LocalEntries& mine) {
  std::string wrong;
  for (std::size_t k = 0; k < mine.rows.size() && wrong.empty(); ++k) {
    const auto row = mine.rows[k], column = mine.columns[k];
    if (row >= 0 && row < shape[0] && column >= 0 && column < shape[1]) continue;
    wrong = call_text() + ": the entry at (" + std::to_string(row) + ", " + std::to_string(column) +
            ") lies outside of a matrix of shape " + to_string(shape) + "; rows and columns count from 0";
  }
  raise_everywhere(wrong, [](const std::string& text) { throw IndexError(text); });
}

// Sends entries, as (column, value) packets addressed by row, to the owners of their rows.
LocalEntries with_owners(const comm::Communicator& comm, std::int64_t rows, LocalEntries mine) {
  if (comm.size() == 1) return mine;
  const auto item = itemsize(mine.dtype), packet = sizeof(std::int64_t) + item;
  const auto per_rank = block_size(rows, comm.size());
  FetchList list;
  std::vector<std::byte> packets(mine.rows.size() * packet);
  for (std::size_t k = 0; k < mine.rows.size(); ++k) {
    list.add(static_cast<int>(mine.rows[k] / per_rank), mine.rows[k]);
    std::memcpy(packets.data() + k * packet, &mine.columns[k], sizeof(std::int64_t));
    std::memcpy(packets.data() + k * packet + sizeof(std::int64_t), mine.values.data() + k * item, item);
  }
  LocalEntries own{{}, {}, mine.dtype, {}};
  const kernels::AxisView view{1, static_cast<std::int64_t>(mine.rows.size()),
                               static_cast<std::int64_t>(packet)};
  deliver(comm, list, uint8, view, packets.data(),
          [&](std::span<const std::int64_t> at, const std::byte* arrived) {
            for (const auto row : at) {
              std::int64_t column = 0;
              std::memcpy(&column, arrived, sizeof column);
              own.rows.push_back(row);
              own.columns.push_back(column);
              own.values.insert(own.values.end(), arrived + sizeof column, arrived + packet);
              arrived += packet;
            }
          });
  return own;
}

// Sorts by rows, in a row own columns first; entries of one position are added.
LocalEntries sorted(LocalEntries entries, Range own_columns) {
  const auto is_other = [&](std::int64_t column) {
    return column < own_columns.start || column >= own_columns.stop;
  };
  std::vector<std::int64_t> order(entries.rows.size());
  for (std::size_t k = 0; k < order.size(); ++k) order[k] = static_cast<std::int64_t>(k);
  const auto key = [&](std::int64_t k) {
    return std::tuple(entries.rows[k], is_other(entries.columns[k]), entries.columns[k]);
  };
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(a) < key(b); });
  LocalEntries result{{}, {}, entries.dtype, {}};
  kernels::visit(entries.dtype, [&]<class T>(T) {
    if constexpr (!std::is_same_v<T, bool>) {
      const auto* values = reinterpret_cast<const T*>(entries.values.data());
      std::vector<T> added;
      for (const auto k : order) {
        if (!result.rows.empty() && result.rows.back() == entries.rows[k] &&
            result.columns.back() == entries.columns[k]) {
          added.back() += values[k];
          continue;
        }
        result.rows.push_back(entries.rows[k]);
        result.columns.push_back(entries.columns[k]);
        added.push_back(values[k]);
      }
      const auto* bytes = reinterpret_cast<const std::byte*>(added.data());
      result.values.assign(bytes, bytes + added.size() * sizeof(T));
    }
  });
  return result;
}

SparsePlan rows_of(const LocalEntries& own, Range rows, Range own_columns) {
  SparsePlan plan;
  for (const auto column : own.columns)
    if (column < own_columns.start || column >= own_columns.stop) plan.others.push_back(column);
  std::sort(plan.others.begin(), plan.others.end());
  plan.others.erase(std::unique(plan.others.begin(), plan.others.end()), plan.others.end());
  std::size_t k = 0;
  for (auto row = rows.start; row < rows.stop; ++row) {
    for (; k < own.rows.size() && own.rows[k] == row && own.columns[k] >= own_columns.start &&
           own.columns[k] < own_columns.stop;
         ++k)
      plan.column.push_back(static_cast<std::int32_t>(own.columns[k] - own_columns.start));
    plan.split.push_back(static_cast<std::int64_t>(k));
    for (; k < own.rows.size() && own.rows[k] == row; ++k)
      plan.column.push_back(static_cast<std::int32_t>(
          std::lower_bound(plan.others.begin(), plan.others.end(), own.columns[k]) - plan.others.begin()));
    plan.begin.push_back(static_cast<std::int64_t>(k));
    if (plan.split.back() < plan.begin.back()) plan.receiving.push_back(row - rows.start);
  }
  return plan;
}

// Each rank sends the owners of missing columns the indices of the elements that it will fetch.
void find_peers(const comm::Communicator& comm, std::int64_t columns, SparsePlan& plan) {
  const auto per_rank = std::max<std::int64_t>(block_size(columns, comm.size()), 1);
  FetchList list;
  std::vector<SparsePlan::Peer> peers(static_cast<std::size_t>(comm.size()));
  std::vector<std::int32_t> sender(plan.others.size(), comm.rank());
  for (const auto column : plan.others) {
    const auto owner = static_cast<int>(column / per_rank);
    list.add(owner, column % per_rank);
    ++peers[owner].taken;
  }
  const kernels::AxisView view{1, plan.taken(), 1};
  deliver(comm, list, int32, view, reinterpret_cast<const std::byte*>(sender.data()),
          [&](std::span<const std::int64_t> at, const std::byte* arrived) {
            std::int32_t from = 0;
            std::memcpy(&from, arrived, sizeof from);
            for (const auto place : at) peers[from].given.push_back(static_cast<std::int32_t>(place));
            plan.given += static_cast<std::int64_t>(at.size());
          });
  for (int r = 0; r < comm.size(); ++r) {
    peers[r].device = comm.device_ids()[r];
    if (!peers[r].given.empty() || peers[r].taken > 0) plan.peers.push_back(std::move(peers[r]));
  }
}

// Facts about each rank that all ranks need.
struct Summary {
  std::int64_t entries = 0, taken = 0, given = 0;
  std::uint64_t digest = 0;
  std::int64_t counts = 0;  // 1 on ranks whose entries count, 0 on ranks with replicas
};

void summarize(SparsePattern& p, const Summary& mine) {
  std::vector<Summary> all(static_cast<std::size_t>(comm::world().size()));
  comm::all_gather(comm::world(), &mine, sizeof mine, all.data());
  for (const auto& one : all) {
    p.entries += one.counts * one.entries;
    p.width = std::max(p.width, one.entries);
    p.most_taken = std::max(p.most_taken, one.taken);
    p.most_given = std::max(p.most_given, one.given);
    p.digest = mix(p.digest, one.digest);
  }
}

std::uint64_t digest_of(const LocalEntries& own) {
  return mix(mix_range(1, own.rows), mix_range(2, own.columns));
}

void check_counts(const SparsePlan& plan, Range own_columns) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  std::string wrong;
  if (own_columns.size() > most || plan.taken() > most)
    wrong = call_text() + ": a rank would read " +
            std::to_string(std::max(own_columns.size(), plan.taken())) +
            " elements of a vector; at most 2^31 - 1 are possible. Split the rows over more ranks";
  raise_everywhere(wrong, [](const std::string& text) { throw ShapeError(text); });
}

}  // namespace

Sharding checked_rows(const Shape& shape, const Sharding& sharding) {
  if (shape.ndim() != 2 || shape[0] < 0 || shape[1] < 0)
    throw ShapeError(call_text() + ": the shape " + to_string(shape) +
                     " is no matrix's; it must be (rows, columns)");
  sharding.check_fits(shape, call_text().c_str());
  auto axes = sharding.dim_axes(2);
  if (!axes[1].empty())
    throw ShardingError(call_text() +
                        ": the sharding splits columns; a sparse matrix is split by rows, as "
                        "NamedSharding(mesh, P(\"x\"))");
  return Sharding::from_dim_axes(sharding.mesh(), {axes[0]});
}

bool holds_rows(const Sharding& rows) { return rows.mesh().position(this_device()) >= 0; }
Range own_rows(const Sharding& rows, std::int64_t count) {
  return rows.local_box(Shape{count}, this_device())[0];
}

Csr assemble(const Shape& shape, const Sharding& rows, LocalEntries mine) {
  check_places(shape, mine);
  SparsePattern p(rows);
  p.rows = shape[0];
  p.columns = shape[1];
  Summary summary;
  Range own_columns;
  LocalEntries own{{}, {}, mine.dtype, {}};
  const comm::Communicator* comm = nullptr;
  if (holds_rows(rows)) {
    comm = &group_of_dim(rows, 0, 1, this_device());
    own_columns = own_rows(rows, p.columns);
    own = sorted(with_owners(*comm, p.rows, std::move(mine)), own_columns);
    p.plan = rows_of(own, own_rows(rows, p.rows), own_columns);
  }
  check_counts(p.plan, own_columns);
  if (comm != nullptr) {
    find_peers(*comm, p.columns, p.plan);
    const auto part = comm->rank();
    const bool counts =
        rows.replica_id(Shape{std::max<std::int64_t>(p.rows, comm->size())}, local_devices()[0]) == 0;
    summary = {p.plan.entries(), p.plan.taken(), p.plan.given, mix(digest_of(own), part), counts ? 1 : 0};
  }
  summarize(p, summary);
  const Shape stored{devices_along(rows.mesh(), p.axes()), p.width};
  Buffer buffer;
  if (comm != nullptr) {
    buffer = Buffer::allocate(static_cast<std::size_t>(p.width) * itemsize(own.dtype));
    if (p.width > 0) std::memset(buffer.data(), 0, buffer.bytes());
    if (!own.values.empty()) std::memcpy(buffer.data(), own.values.data(), own.values.size());
  } else {
    buffer = Buffer::allocate(0);
  }
  const Array values = make_leaf({stored, own.dtype}, Sharding::from_dim_axes(rows.mesh(), {p.axes(), {}}),
                                 std::move(buffer), true);
  return {std::make_shared<const SparsePattern>(std::move(p)), values};
}

}  // namespace tessera::sparse
