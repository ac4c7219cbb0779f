#include "io/hdf5/places.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "base/text.hpp"

namespace tessera::io {
namespace {

void check(const Hdf5Source& source, bool ok, const char* what) {
  if (!ok)
    source.fail(
        std::string(what) + " of the dataset " + in_quotes(source.dataset) + " failed: " + hdf5_reason(),
        "check the dataset's path and the free space");
}

std::vector<hsize_t> as_hsize(const Shape& shape) { return {shape.begin(), shape.end()}; }
Shape as_shape(const std::vector<hsize_t>& extents) {
  return Shape(std::vector<std::int64_t>(extents.begin(), extents.end()));
}

Handle creation_of(const Hdf5Chunks& plan) {
  Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER);
  H5Pset_alloc_time(creation, plan.compression > 0 ? H5D_ALLOC_TIME_INCR : H5D_ALLOC_TIME_EARLY);
  if (plan.chunk.empty()) {
    H5Pset_layout(creation, H5D_CONTIGUOUS);
    return creation;
  }
  H5Pset_chunk(creation, plan.chunk.ndim(), as_hsize(plan.chunk).data());
  if (plan.compression > 0 && plan.is_shuffled != 0) H5Pset_shuffle(creation);
  if (plan.compression > 0) H5Pset_deflate(creation, static_cast<unsigned>(plan.compression));
  return creation;
}

// Reads the filters of a dataset; accepts none, deflate, and shuffle with deflate.
void read_filters(const Hdf5Source& source, hid_t creation, Hdf5Chunks& plan) {
  const int filters = H5Pget_nfilters(creation);
  for (int i = 0; i < filters; ++i) {
    unsigned flags = 0, level = 6, what = 0;
    std::size_t values = 1;
    char name[64] = "";
    const auto id =
        H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, &level, sizeof name, name, &what);
    if (id == H5Z_FILTER_SHUFFLE && i == 0 && filters == 2)
      plan.is_shuffled = 1;
    else if (id == H5Z_FILTER_DEFLATE && i == filters - 1)
      plan.compression = std::max(1u, level);
    else
      source.fail("stores its dataset " + in_quotes(source.dataset) + " with the filter " +
                      in_quotes(name[0] == '\0' ? "number " + std::to_string(id) : std::string(name)),
                  "only deflate, and shuffle before it, can be appended to; h5repack changes filters");
  }
}

// Chunk sizes of new datasets; the least one keeps single appended numbers from being stored one by one.
constexpr std::int64_t least_bytes = 1 << 16, dense_bytes = 4 << 20, compressed_bytes = 1 << 20;

Shape chosen_chunk(const Shape& slab, Dtype dtype, bool grows, std::int64_t most_bytes) {
  Shape chunk = slab;
  for (std::size_t d = 0; d < chunk.size(); ++d) chunk[d] = std::max<std::int64_t>(chunk[d], 1);
  for (std::size_t d = 0; d < chunk.size(); ++d)
    while (bytes_of(chunk, dtype) > most_bytes && chunk[d] > 1) chunk[d] = (chunk[d] + 1) / 2;
  const std::int64_t bytes = bytes_of(chunk, dtype);
  if (grows && bytes < least_bytes) chunk[0] *= least_bytes / bytes;
  return chunk;
}

void check_chunk(const Shape& chunk, const Shape& slab, Dtype dtype, const std::string& call) {
  const bool fits = chunk.size() == slab.size() &&
                    std::all_of(chunk.begin(), chunk.end(), [](std::int64_t extent) { return extent > 0; });
  if (!fits)
    throw ShapeError(call + ": the chunk " + to_string(chunk) + " does not fit the shape " + to_string(slab) +
                     "; give a positive extent for each dim");
  constexpr std::int64_t most = std::int64_t{1} << 30;
  if (bytes_of(chunk, dtype) > most)
    throw ShapeError(call + ": the chunk " + to_string(chunk) + " has " +
                     std::to_string(bytes_of(chunk, dtype)) +
                     " bytes, and 2^30 at most are stored as one; "
                     "choose a smaller one");
}

Handle opened(const Hdf5Source& source, hid_t file) {
  Handle dataset(H5Dopen2(file, source.dataset.c_str(), H5P_DEFAULT), H5Dclose);
  check(source, dataset.ok(), "opening");
  return dataset;
}

void check_agree(const Hdf5Source& source, hid_t dataset, const Shape& held, const Shape& slab, Dtype dtype) {
  const std::string what =
      source.call + ": the dataset " + in_quotes(source.dataset) + " of " + in_quotes(source.path);
  const Dtype held_dtype = dtype_of_dataset(source, dataset);
  if (!(held_dtype == dtype))
    throw DtypeError(what + " holds " + name(held_dtype) + ", and what is appended is " + name(dtype) +
                     "; use astype");
  if (H5Tequal(Handle(H5Dget_type(dataset), H5Tclose), hdf5_memory_type(dtype)) <= 0)
    source.fail("stores its dataset " + in_quotes(source.dataset) + " in another machine's form",
                "load it and write it again");
  if (slab.size() != held.size() || !std::equal(held.begin() + 1, held.end(), slab.begin() + 1))
    throw ShapeError(what + " has the shape " + to_string(held) + ", and what is appended " +
                     to_string(slab) + "; all extents but the first must agree");
}

std::vector<hsize_t> origin(const Shape& chunk, const Chunk& at) {
  std::vector<hsize_t> start;
  for (const Range& range : box_of_chunk(chunk, at)) start.push_back(static_cast<hsize_t>(range.start));
  return start;
}

// nullopt if the chunk has no space yet.
std::optional<std::int64_t> place_of_chunk(const Hdf5Source& source, hid_t dataset, const Hdf5Chunks& plan,
                                           const Chunk& at) {
  haddr_t place = HADDR_UNDEF;
  hsize_t bytes = 0;
  unsigned mask = 0;
  check(source,
        H5Dget_chunk_info_by_coord(dataset, origin(plan.chunk, at).data(), &mask, &place, &bytes) >= 0,
        "looking for a chunk");
  if (place == HADDR_UNDEF) return std::nullopt;
  return static_cast<std::int64_t>(place);
}

void write_chunk(const Hdf5Source& source, hid_t dataset, const Hdf5Chunks& plan, const Chunk& at,
                 const std::byte* data, std::size_t bytes) {
  check(source, H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, origin(plan.chunk, at).data(), bytes, data) >= 0,
        "allocation");
}
// Allocates a chunk's space by writing zeros, since the library allocates only on writing.
std::int64_t new_place(const Hdf5Source& source, hid_t dataset, const Hdf5Chunks& plan, const Chunk& at,
                       std::int64_t bytes) {
  const std::vector<std::byte> nothing(static_cast<std::size_t>(bytes));
  write_chunk(source, dataset, plan, at, nothing.data(), nothing.size());
  const auto place = place_of_chunk(source, dataset, plan, at);
  check(source, place.has_value(), "allocation");
  return *place;
}

}  // namespace

Box box_of_chunk(const Shape& chunk, const Chunk& at) {
  Box box;
  for (std::size_t d = 0; d < at.size(); ++d) box.push_back({at[d] * chunk[d], (at[d] + 1) * chunk[d]});
  return box;
}

std::vector<Chunk> chunks_of(const Shape& chunk, const Box& box) {
  std::vector<Chunk> chunks;
  if (is_empty(box)) return chunks;
  Chunk first, last;
  for (std::size_t d = 0; d < box.size(); ++d)
    first.push_back(box[d].start / chunk[d]), last.push_back((box[d].stop - 1) / chunk[d]);
  for (Chunk at = first;;) {
    chunks.push_back(at);
    std::size_t d = at.size();
    while (d > 0 && at[d - 1] == last[d - 1]) --d, at[d] = first[d];
    if (d == 0) return chunks;
    ++at[d - 1];
  }
}

std::string absolute_name(const std::string& path) { return path.starts_with('/') ? path : "/" + path; }

bool hdf5_exists(hid_t file, const std::string& path) {
  if (path == "/") return true;
  for (auto at = path.find('/', 1); at != std::string::npos; at = path.find('/', at + 1))
    if (H5Lexists(file, path.substr(0, at).c_str(), H5P_DEFAULT) <= 0) return false;
  return H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0;
}

Hdf5Chunks new_plan(const Shape& slab, Dtype dtype, const Hdf5DatasetOptions& options, bool grows) {
  Hdf5Chunks plan;
  plan.held = slab;
  if (grows) plan.held[0] = 0;
  const bool is_chunked = grows || (slab.elements() > 0 && slab.ndim() > 0 &&
                                    (options.compression > 0 || !options.chunk.empty()));
  if (!is_chunked) return plan;
  plan.compression = options.compression;
  plan.is_shuffled = options.shuffle && options.compression > 0 && itemsize(dtype) > 1;
  plan.chunk = !options.chunk.empty()
                   ? options.chunk
                   : chosen_chunk(slab, dtype, grows, plan.compression > 0 ? compressed_bytes : dense_bytes);
  return plan;
}

void check_options(const std::string& call, const Shape& slab, Dtype dtype,
                   const Hdf5DatasetOptions& options) {
  if (options.compression < 0 || options.compression > 9)
    throw ArgumentError(call + ": compression is " + std::to_string(options.compression) +
                        "; give 0 (none) or 1 (fast) to 9 (small)");
  if (!options.chunk.empty()) check_chunk(options.chunk, slab, dtype, call);
}

std::optional<Hdf5Chunks> plan_to_extend(const Hdf5Source& source, hid_t file, const Shape& slab,
                                         Dtype dtype) {
  if (!hdf5_exists(file, source.dataset)) return std::nullopt;
  const Handle dataset = opened(source, file), space(H5Dget_space(dataset), H5Sclose),
               creation(H5Dget_create_plist(dataset), H5Pclose);
  Hdf5Chunks plan;
  plan.held = shape_of_dataset(source, dataset);
  std::vector<hsize_t> most(plan.held.size()), chunk(plan.held.size());
  H5Sget_simple_extent_dims(space, nullptr, most.data());
  if (most.empty() || most[0] != H5S_UNLIMITED || H5Pget_layout(creation) != H5D_CHUNKED)
    source.fail("has a dataset " + in_quotes(source.dataset) + " that cannot grow",
                "make it with append, and not with write or save_hdf5");
  check_agree(source, dataset, plan.held, slab, dtype);
  read_filters(source, creation, plan);
  H5Pget_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
  plan.chunk = as_shape(chunk);
  return plan;
}

Handle create_dataset(const Hdf5Source& source, hid_t file, const Shape& extents, const Shape& most,
                      Dtype dtype, const Hdf5Chunks& plan) {
  if (hdf5_exists(file, source.dataset))
    source.fail("has " + in_quotes(source.dataset) + " already", "choose another name, or append to it");
  auto limits = as_hsize(most);
  for (auto& limit : limits)
    if (limit == static_cast<hsize_t>(-1)) limit = H5S_UNLIMITED;
  const Handle space(extents.empty()
                         ? H5Screate(H5S_SCALAR)
                         : H5Screate_simple(extents.ndim(), as_hsize(extents).data(), limits.data()),
                     H5Sclose),
      links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
  H5Pset_create_intermediate_group(links, 1);
  Handle dataset(H5Dcreate2(file, source.dataset.c_str(), hdf5_memory_type(dtype), space, links,
                            creation_of(plan), H5P_DEFAULT),
                 H5Dclose);
  check(source, dataset.ok(), "creation");
  return dataset;
}

Handle extend_dataset(const Hdf5Source& source, hid_t file, const Shape& extents) {
  Handle dataset = opened(source, file);
  check(source, H5Dset_extent(dataset, as_hsize(extents).data()) >= 0, "extension");
  return dataset;
}

std::int64_t place_of_dense(const Hdf5Source& source, hid_t dataset) {
  const haddr_t place = H5Dget_offset(dataset);
  check(source, place != HADDR_UNDEF, "allocation");
  return static_cast<std::int64_t>(place);
}

std::vector<std::int64_t> places_of(const Hdf5Source& source, hid_t dataset, const Hdf5Chunks& plan,
                                    const std::vector<Chunk>& chunks, std::int64_t chunk_bytes) {
  std::vector<std::int64_t> places;
  for (const Chunk& at : chunks) {
    const auto place = place_of_chunk(source, dataset, plan, at);
    places.push_back(place ? *place : new_place(source, dataset, plan, at, chunk_bytes));
  }
  return places;
}

std::vector<std::int64_t> places_for(const Hdf5Source& source, hid_t dataset, const Hdf5Chunks& plan,
                                     const std::vector<Chunk>& chunks, const std::vector<std::int64_t>& bytes,
                                     const StoredChunks& own) {
  std::vector<std::int64_t> places(chunks.size(), in_place);
  for (std::size_t i = 0; i < chunks.size(); ++i)
    if (const auto n = i - static_cast<std::size_t>(own.first); n < own.bytes.size())
      write_chunk(source, dataset, plan, chunks[i], own.bytes[n].data(), own.bytes[n].size());
    else
      places[i] = new_place(source, dataset, plan, chunks[i], bytes[i]);
  return places;
}

}  // namespace tessera::io
