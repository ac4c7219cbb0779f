// Zarr stores of 256 MiB compared with write(2), fsync and read(2) of the same bytes in the same folder
// (TMPDIR): each rank's rows are one uncompressed chunk.
#include <tessera/io/zarr.hpp>

#include <filesystem>

#include "bench.hpp"
#include "plain_file.hpp"

namespace {

using namespace tessera;

constexpr std::int64_t elements = std::int64_t{64} << 20;

void rows() {
  const std::string save = "zarr_save_256MiB", load = "zarr_load_256MiB";
  const bool saves = bench::wanted(save), loads = bench::wanted(load);
  if (!saves && !loads) return;
  const bench::Folder folder;
  const Sharding split = bench::split(P("x"));
  const Array x = device_put(astype(arange(elements) + 1, float32), split);
  eval(x);
  bench::PlainFile plain(folder.path(), local<float>(x));
  const std::string store = folder.path() + "/x.zarr";
  const io::ZarrOptions options{.chunks = {(elements - 1) / bench::ranks() + 1}, .compression = "none"};
  const auto remove_store = [&] {
    if (bench::rank() == 0) std::filesystem::remove_all(store);
    multihost::sync_global_devices("the store is gone");
  };
  if (saves)
    bench::compare(
        save, [&] { io::save_zarr(store, x, options); },
        {{"write and fsync", [&] { plain.write_all(); }, 0.9}}, bench::Repeat{7, remove_store});
  if (!loads) return;
  remove_store();
  io::save_zarr(store, x, options), plain.write_all();
  bench::compare(
      load, [&] { eval(io::load_zarr(store, split)); }, {{"read", [&] { plain.read_all(); }, 0.9}}, 7);
}

const bench::Group group(rows);

}  // namespace
