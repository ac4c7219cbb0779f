// Versions of an array, saved and loaded in every file format.
#pragma once
#include <tessera/checkpoint.hpp>
#include <tessera/io/stream.hpp>
#include <tessera/tessera.hpp>

#include <filesystem>
#include <string>

#include "comm/collectives/collectives.hpp"

namespace tessera::test {

inline Sharding layout() { return NamedSharding(make_mesh({device_count()}, {"x"}), P("x")); }
// Elements encode their version. Primes: blocks are uneven on every number of ranks.
inline Array version(int number, int scale = 1) {
  constexpr int rows = 1009, columns = 37;
  return device_put(reshape(arange(rows * scale * columns), {rows * scale, columns}) + number * 1000000,
                    layout());
}

// Writes in several pieces, as a long run would.
inline void append(const std::string& file, const Array& x, int compression) {
  io::Hdf5Writer out(file, {.mode = io::Hdf5Open::replace});
  out.attribute("/", "pieces", 3);
  const std::int64_t n = x.shape()[0], third = n / 3;
  for (const auto& piece : {slice(0, third), slice(third, 2 * third), slice(2 * third, n)})
    out.append("group/x", x(piece), {.compression = compression});
  out.close();
}
inline void saved_beside(const std::string& folder, int number, const Array& x) {
  io::checkpoint::Manager steps(folder + "/steps", {.keep = 1});
  steps.save(number, x);
  steps.wait();
}
// Chunks that do not match the blocks of any rank.
inline void store(const std::string& file, const Array& x) {
  io::Zarr out(file, {.mode = io::ZarrOpen::replace});
  out.write("group/x", x, {.chunks = {100, 20}});
  out.close();
}
// Sorts rows, then columns, by way of a temporary file: x has them sorted.
inline void store_streamed(const std::string& folder, const Array& x) {
  const std::string zeros_file = folder + "/zeros" + std::to_string(x.shape()[0]) + ".npy";
  bool is_there = std::filesystem::exists(zeros_file);
  comm::broadcast(comm::world(), &is_there, sizeof is_there, 0);
  if (!is_there) io::save_npy(zeros_file, device_put(zeros_like(x), layout()));
  io::store(folder + "/x.npy", sort(sort(x + io::open(zeros_file), 1), 0), {.slab = 100});
}
inline void save(const std::string& folder, const std::string& format, const Array& x, int number) {
  if (format == "npy")
    io::save_npy(folder + "/x.npy", x);
  else if (format == "npz")
    io::save_npz(folder + "/x.npz", {{"x", x}});
  else if (format == "safetensors")
    io::save_safetensors(folder + "/x.safetensors", {{"x", x}});
  else if (format == "csv")
    io::save_csv(folder + "/x.csv", x);
  else if (format == "mtx")
    io::save_matrix_market(folder + "/x.mtx", x);
  else if (format == "writer")
    append(folder + "/x.h5", x, number % 2);
  else if (format == "streamed")
    store_streamed(folder, x);
  else if (format == "zarr")
    store(folder + "/x.zarr", x);
  else if (format == "hdf5")
    io::save_hdf5(folder + "/x.h5", "group/x", x, {.mode = io::Hdf5Mode::replace});
  else if (format == "checkpoint")
    io::checkpoint::save(folder + "/steps", number, x);
  else
    saved_beside(folder, number, x);
}
inline Array load(const std::string& folder, const std::string& format, const Array& like = version(0)) {
  if (format == "npy" || format == "streamed") return io::load_npy(folder + "/x.npy", layout());
  if (format == "zarr") return io::load_zarr(folder + "/x.zarr/group/x", layout());
  if (format == "npz") return io::load_npz(folder + "/x.npz", "x", layout());
  if (format == "safetensors") return io::load_safetensors(folder + "/x.safetensors", "x", layout());
  if (format == "csv") return io::load_csv(folder + "/x.csv", layout(), {.dtype = int32});
  if (format == "mtx") return astype(io::load_matrix_market(folder + "/x.mtx", layout()), int32);
  if (format == "hdf5" || format == "writer") return io::load_hdf5(folder + "/x.h5", "group/x", layout());
  Array x = like;
  if (format == "manager") {
    io::checkpoint::Manager steps(folder + "/steps");
    if (!steps.restore(x)) throw IoError("there is no step");
    return x;
  }
  return io::checkpoint::restore(folder + "/steps", like);
}

// The version of all elements; -1 if they have different ones.
inline int version_in(const Array& x, const Array& first_one = version(0)) {
  const Array numbers = (x - first_one) / 1000000;
  const int first = item<int>(min(x)) / 1000000;
  return item<bool>(all(numbers == first)) ? first : -1;
}

}  // namespace tessera::test
