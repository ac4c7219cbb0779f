// info, env, shard: information without computing anything.
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/environment.hpp"
#include "comm/mpi/in_use.hpp"
#include "commands.hpp"

extern "C" {
char* openblas_get_config();
char* openblas_get_corename();
int openblas_get_num_threads();
int H5get_libversion(unsigned*, unsigned*, unsigned*);
extern const char fftw_version[];
}

namespace tessera {
extern const char* const build_id;
}

namespace cli {

using namespace tessera;
using json = nlohmann::ordered_json;

void announce(const Order& order, const std::string& what) {
  if (order.verbose && is_main_process()) std::fprintf(stderr, "tessera: %s\n", what.c_str());
}

json mesh_json(const Mesh& mesh) {
  json axes = json::object();
  for (const auto& [name, size] : mesh.shape()) axes[name] = size;
  return axes;
}

namespace {}  // namespace

// Collective: called inside tessera::run.
int show_info(const Order& order) {
  const auto& place = comm::place_in_job();
  unsigned major = 0, minor = 0, release = 0;
  H5get_libversion(&major, &minor, &release);
  json devices_json = json::array();
  for (const auto& device : devices()) devices_json.push_back({{"id", device.id}, {"host", device.host}});
  const std::set<std::string> hosts(place.hosts.begin(), place.hosts.end());
  const json facts = {
      {"build", build_id},
      {"devices", devices_json},
      {"hosts", hosts},
      {"cores_of_host", place.cores},
      {"mpi", comm::mpi_of_jobs()},
      {"blas", openblas_get_config()},
      {"blas_core", openblas_get_corename()},
      {"blas_threads", openblas_get_num_threads()},
      {"fftw", std::string(static_cast<const char*>(fftw_version))},
      {"hdf5", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release)}};
  if (!is_main_process()) return 0;
  if (order.json) {
    std::printf("%s\n", facts.dump(2).c_str());
    return 0;
  }
  std::printf("build      %s\n", build_id);
  std::printf("devices    %d, one per MPI rank\n", device_count());
  for (const auto& host : hosts) {
    std::vector<int> ids;
    for (const auto& device : devices())
      if (device.host == host) ids.push_back(device.id);
    std::printf("  %-12s device %s\n", host.c_str(), format_ids(ids).c_str());
  }
  std::printf("cores      %d on this host\n", place.cores);
  std::printf("mpi        %s\n", comm::mpi_of_jobs().c_str());
  std::printf("blas       %s (%s), %s per rank\n", openblas_get_config(), openblas_get_corename(),
              format_count(openblas_get_num_threads(), "thread").c_str());
  std::printf("fft        %s\n", static_cast<const char*>(fftw_version));
  std::printf("hdf5       %u.%u.%u\n", major, minor, release);
  for (const auto& row : settings_table())
    if (row.is_set) std::printf("setting    %s=%s\n", row.name.c_str(), row.value.c_str());
  return 0;
}

int show_settings(const Order& order) {
  if (order.json) {
    json rows = json::array();
    for (const auto& row : settings_table())
      rows.push_back({{"name", row.name},
                      {"value", row.value},
                      {"default", row.fallback},
                      {"set", row.is_set},
                      {"meaning", row.meaning}});
    std::printf("%s\n", rows.dump(2).c_str());
    return 0;
  }
  for (const auto& row : settings_table())
    std::printf("%s=%s%s\n    %s\n", row.name.c_str(), row.value.c_str(), row.is_set ? "" : "  (default)",
                row.meaning.c_str());
  return 0;
}

namespace {

void write_picture(const std::string& path, const Shape& shape, const Sharding& sharding) {
  const bool is_svg = path.ends_with(".svg");
  if (!is_svg && !path.ends_with(".html"))
    throw UsageError("shard: -o " + shown(path) + " is no picture's name; it ends in .svg or .html");
  std::ofstream file(path);
  file << (is_svg ? debug::sharding_svg(shape, sharding) : debug::sharding_html(shape, sharding));
  if (!file.flush())
    throw IoError("shard: " + shown(path) + " cannot be written; name a file in a folder of yours");
}

}  // namespace

int show_shard(const Order& order) {
  const auto info = operand_info(order.operands.at(0), order.dtype);
  const Mesh mesh = planning_mesh(order);
  const Sharding sharding = of_words([&] {
    const Sharding asked = NamedSharding(mesh, spec_of(order, 0));
    asked.check_fits(info.shape, "shard");
    return asked;
  });
  std::int64_t largest = 0;
  for (const auto& device : mesh.devices()) {
    largest = std::max(largest, sharding.memory_bytes(info.shape, info.dtype, device));
    if (mesh.size() > 4096) break;  // the first block is the largest, so it suffices
  }
  if (!order.output.empty()) write_picture(order.output, info.shape, sharding);
  if (order.json) {
    json blocks = json::array();
    for (const auto& [device, index] : sharding.devices_indices_map(info.shape)) {
      json ranges = json::array();
      for (const auto& range : index) ranges.push_back({range.start, range.stop});
      blocks.push_back(
          {{"device", device.id}, {"box", ranges}, {"replica", sharding.replica_id(info.shape, device)}});
    }
    std::printf("%s\n", json{{"shape", info.shape.vector()},
                             {"dtype", name(info.dtype)},
                             {"mesh", mesh_json(mesh)},
                             {"spec", text_of(sharding.spec())},
                             {"bytes_per_device", largest},
                             {"blocks", blocks}}
                            .dump(2)
                            .c_str());
    return 0;
  }
  std::printf("%s%s (%s), %s over %s: blocks of %s, %s per device\n", name(info.dtype).c_str(),
              to_string(info.shape).c_str(), info.detail.c_str(), text_of(sharding.spec()).c_str(),
              text_of(mesh).c_str(), to_string(sharding.shard_shape(info.shape)).c_str(),
              format_bytes(largest).c_str());
  std::printf("%s\n", debug::visualize_sharding(info.shape, sharding).c_str());
  return 0;
}

}  // namespace cli
