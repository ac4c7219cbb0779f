#include "io/hdf5/put.hpp"

#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/hdf5/chunks.hpp"

namespace tessera::io {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers from_first(const Team& team, const Numbers& numbers) {
  const auto bytes = team.from_first(
      std::string(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof numbers[0]));
  Numbers result(bytes.size() / sizeof numbers[0]);
  if (!result.empty()) std::memcpy(result.data(), bytes.data(), bytes.size());
  return result;
}

Hdf5Chunks from_first(const Team& team, const Hdf5Chunks& plan) {
  Hdf5Chunks result;
  result.held = Shape(from_first(team, plan.held.vector()));
  result.chunk = Shape(from_first(team, plan.chunk.vector()));
  result.compression = team.from_first(plan.compression);
  result.is_shuffled = team.from_first(plan.is_shuffled);
  return result;
}

bool spans_hosts() {
  const auto all = devices();
  return std::any_of(all.begin(), all.end(), [&](const Device& d) { return d.host != all[0].host; });
}

// The box of x within its dataset: rows from first_row on, all of the other dims.
Box rows_at(std::int64_t first_row, const Array& x) {
  Box box = whole_box(x.shape());
  if (!box.empty()) box[0].start += first_row, box[0].stop += first_row;
  return box;
}

}  // namespace

Put::Put(const Team& team, Hdf5Source source, hid_t file, std::optional<File>& own,
         const std::string& temporary)
    : team_(team), source_(std::move(source)), file_(file), own_(own), temporary_(temporary) {}

Hdf5Chunks Put::plan(const Array& x, const Hdf5DatasetOptions& options, bool grows) {
  Hdf5Chunks plan = new_plan(x.shape(), x.dtype(), options, grows);
  once_quietly(team_, [&] {
    if (!grows) return;
    const auto found = plan_to_extend(source_, file_, x.shape(), x.dtype());
    exists_ = found.has_value();
    if (found) plan = *found;
  });
  return from_first(team_, plan);
}

void Put::make(const Array& x, const Hdf5Chunks& plan, bool grows) {
  once_quietly(team_, [&] {
    Shape extents = x.shape(), most = x.shape();
    if (grows) extents[0] += plan.held[0], most[0] = -1;
    dataset_ = exists_ ? extend_dataset(source_, file_, extents)
                       : create_dataset(source_, file_, extents, most, x.dtype(), plan);
  });
}

std::int64_t Put::data(const Array& rows, std::int64_t first_row, const Hdf5Chunks& plan) {
  if (rows.shape().elements() == 0) return 0;
  if (plan.chunk.empty()) return dense(rows);
  const auto chunks = chunks_of(plan.chunk, rows_at(first_row, rows));
  return plan.compression > 0 ? compressed(rows, chunks, plan) : in_parts(rows, first_row, chunks, plan);
}

File& Put::own_file() {
  if (!own_) own_.emplace(source_.call, temporary_, File::Mode::write);
  return *own_;
}

std::int64_t Put::dense(const Array& x) {
  std::int64_t place = 0;
  once_quietly(team_, [&] { place = place_of_dense(source_, dataset_); });
  place = team_.from_first(place);
  team_.together([&] {
    const OwnBlock block = own_block(x);
    if (block.writes)
      write_box(own_file(), {x.shape(), static_cast<std::int64_t>(itemsize(x.dtype())), place}, block.box,
                block.data);
    fault_point("written");
  });
  return place + x.nbytes();
}

std::int64_t Put::in_parts(const Array& rows, std::int64_t first_row, const std::vector<Chunk>& chunks,
                           const Hdf5Chunks& plan) {
  const std::int64_t chunk_bytes = bytes_of(plan.chunk, rows.dtype());
  Numbers places;
  once_quietly(team_, [&] { places = places_of(source_, dataset_, plan, chunks, chunk_bytes); });
  places = from_first(team_, places);
  team_.together([&] {
    if (own_block(rows).writes) write_parts(own_file(), rows, first_row, plan, chunks, places);
    fault_point("written");
  });
  return *std::max_element(places.begin(), places.end()) + chunk_bytes;
}

// Chunks get their space after compression, when their sizes are known.
std::int64_t Put::compressed(const Array& rows, const std::vector<Chunk>& chunks, const Hdf5Chunks& plan) {
  StoredChunks stored;
  Numbers bytes(chunks.size());
  team_.together([&] {
    const Array in_chunks = chunk_rows(rows, plan.chunk);
    eval({in_chunks});
    stored = compressed_rows(in_chunks, plan);
    for (std::size_t i = 0; i < stored.bytes.size(); ++i)
      bytes[static_cast<std::size_t>(stored.first) + i] = static_cast<std::int64_t>(stored.bytes[i].size());
  });
  comm::all_reduce(comm::world(), ReduceKind::sum, int64, bytes.data(), bytes.data(),
                   static_cast<std::int64_t>(bytes.size()));
  Numbers places;
  once_quietly(team_, [&] {
    places = places_for(source_, dataset_, plan, chunks, bytes, stored);
    if (spans_hosts()) own_file().sync();  // the metadata must reach the disk before the data
  });
  places = from_first(team_, places);
  team_.together([&] { write(stored.bytes, stored.first, places); });
  std::int64_t end = 0;
  for (std::size_t i = 0; i < places.size(); ++i) end = std::max(end, places[i] + bytes[i]);
  return end;
}

void Put::write(const std::vector<std::vector<std::byte>>& stored, std::int64_t first,
                const Numbers& places) {
  for (std::size_t i = 0; i < stored.size(); ++i)
    if (const auto place = places[static_cast<std::size_t>(first) + i]; place != in_place)
      own_file().write(stored[i].data(), static_cast<std::int64_t>(stored[i].size()), place);
  if (!stored.empty() && spans_hosts()) own_file().sync();
  fault_point("written");
}

}  // namespace tessera::io
