// Arrays from what each process holds.
#include <algorithm>
#include <cstring>

#include "api/pipeline.hpp"
#include "comm/agreement.hpp"
#include "comm/collectives.hpp"
#include "mesh/devices.hpp"
#include "ops/build.hpp"

namespace tessera {
namespace {

bool takes_part(const Sharding& sharding) { return sharding.mesh().position(local_devices()[0].id) >= 0; }

// What went wrong with this rank's block is raised on all ranks of the mesh.
void raise_everywhere(const Sharding& sharding, const std::string& mine, bool is_dtype) {
  const auto text = comm::first_error(comm::group(sharding.mesh().device_ids()), mine);
  if (text.empty()) return;
  if (is_dtype) throw DtypeError(text);
  throw ShapeError(text);
}

}  // namespace

Array make_array_from_callback(Shape shape, Sharding sharding, std::function<HostArray(const Index&)> block) {
  checked_elements(shape, "make_array_from_callback");
  sharding.check_fits(shape, "make_array_from_callback");
  if (!takes_part(sharding))
    throw ShardingError(
        "make_array_from_callback: this process is not one of the sharding's devices, so it cannot know the dtype; call it on the devices "
        "of the mesh only");
  const auto box = sharding.local_box(shape, local_devices()[0].id);
  std::string wrong;
  HostArray host;
  try {
    host = block(box);
    if (!(host.shape() == box_shape(box)))
      wrong = "make_array_from_callback: for the index " + to_string(box) + " of shape " + to_string(shape) +
              " the callback returned a block of shape " + to_string(host.shape()) + "; it must be " + to_string(box_shape(box));
  } catch (const std::exception& error) { wrong = std::string("make_array_from_callback: the callback failed: ") + error.what(); }
  raise_everywhere(sharding, wrong, false);
  // One dtype on all ranks: they compare codes by the extremes.
  const std::int32_t code = host.dtype().code;
  std::int32_t pair[2] = {code, -code};
  comm::all_reduce(comm::group(sharding.mesh().device_ids()), comm::ReduceKind::max, int32, pair, pair, 2);
  if (pair[0] != -pair[1])
    throw DtypeError("make_array_from_callback: the callbacks of different ranks returned different dtypes, among them " +
                     name(Dtype{pair[0]}) + " and " + name(Dtype{-pair[1]}) + "; return one dtype everywhere");
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(host.nbytes()));
  if (host.nbytes() > 0) std::memcpy(buffer.data(), host.bytes(), static_cast<std::size_t>(host.nbytes()));
  return make_leaf({std::move(shape), host.dtype()}, std::move(sharding), std::move(buffer), true, std::source_location::current());
}

Array make_array_from_process_local_data(Sharding sharding, HostArray block, std::optional<Shape> global) {
  const char* call = "make_array_from_process_local_data";
  if (!takes_part(sharding)) throw ShardingError(std::string(call) + ": this process is not one of the sharding's devices");
  const int me = local_devices()[0].id;
  const auto& group = comm::group(sharding.mesh().device_ids());
  if (!global) {
    // Along each dim: the sizes of the blocks of one line of devices through the grid add up.
    const int ndim = block.shape().ndim();
    std::vector<std::int64_t> mine(block.shape().begin(), block.shape().end()), all(static_cast<std::size_t>(ndim * group.size()));
    comm::all_gather(group, mine.data(), ndim * 8, all.data());
    const auto axes = sharding.dim_axes(ndim);
    const Mesh mesh = sharding.mesh();
    std::vector<std::int64_t> extents(static_cast<std::size_t>(ndim), 0);
    for (int position = 0; position < mesh.size(); ++position) {
      const auto coords = *mesh.coords(mesh.devices()[static_cast<std::size_t>(position)]);
      for (int d = 0; d < ndim; ++d) {
        bool on_line = true;  // coordinates are 0 along all axes that do not split this dim
        for (int a = 0; a < mesh.ndim(); ++a) {
          const auto& own = axes[static_cast<std::size_t>(d)];
          const bool splits = std::find(own.begin(), own.end(), a) != own.end();
          on_line &= splits || coords[static_cast<std::size_t>(a)] == 0;
        }
        if (on_line) extents[static_cast<std::size_t>(d)] += all[static_cast<std::size_t>(position * ndim + d)];
      }
    }
    global = Shape(std::move(extents));
  }
  sharding.check_fits(*global, call);
  const auto expected = box_shape(sharding.local_box(*global, me));
  std::string wrong;
  if (!(expected == block.shape()))
    wrong = std::string(call) + ": the block of shape " + to_string(block.shape()) + " on device " + std::to_string(me) +
            " does not match: an array of shape " + to_string(*global) + " has there a block of shape " + to_string(expected) +
            ". Blocks are ceil(n/parts) long, the last ones may be shorter";
  raise_everywhere(sharding, wrong, false);
  Buffer buffer = Buffer::allocate(static_cast<std::size_t>(block.nbytes()));
  if (block.nbytes() > 0) std::memcpy(buffer.data(), block.bytes(), static_cast<std::size_t>(block.nbytes()));
  return make_leaf({std::move(*global), block.dtype()}, std::move(sharding), std::move(buffer), true, std::source_location::current());
}

}  // namespace tessera
