// Checkpoints of 512 MiB compared with write(2), fsync and read(2) of the same bytes in the same folder
// (TMPDIR).
#include <tessera/io.hpp>
#include <tessera/multihost.hpp>

#include <filesystem>

#include "bench.hpp"
#include "plain_file.hpp"

namespace {

using namespace tessera;
namespace checkpoint = io::checkpoint;

constexpr std::int64_t elements = std::int64_t{128} << 20;

void rows() {
  const std::string save = "checkpoint_save_512MiB", load = "checkpoint_load_512MiB";
  const bool saves = bench::wanted(save), loads = bench::wanted(load);
  if (!saves && !loads) return;
  const bench::Folder folder;
  const Sharding rows = bench::split(P("x"));
  const Array x = device_put(astype(arange(elements), float32), rows);
  eval(x);
  bench::PlainFile plain(folder.path(), local<float>(x));
  const std::string steps = folder.path() + "/steps";
  const auto remove_steps = [&] {
    if (bench::rank() == 0) std::filesystem::remove_all(steps);
    multihost::sync_global_devices("the steps are gone");
  };
  if (saves)
    bench::compare(
        save, [&] { checkpoint::save(steps, 1, x); }, {{"write and fsync", [&] { plain.write_all(); }}},
        bench::Repeat{5, remove_steps});
  if (!loads) return;
  remove_steps();
  checkpoint::save(steps, 1, x), plain.write_all();
  bench::compare(
      load, [&] { eval(checkpoint::restore(steps, x)); }, {{"read", [&] { plain.read_all(); }}}, 5);
}

const bench::Group group(rows);

}  // namespace
