// Arrays from what each process holds.
#include <algorithm>
#include <cstring>

#include "api/evaluate.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "mesh/devices.hpp"
#include "ops/build.hpp"

namespace tessera {
namespace {

bool takes_part(const Sharding& sharding) { return sharding.mesh().position(local_devices()[0].id) >= 0; }

// What went wrong with this rank's block is raised on all ranks of the mesh.
template <class E> void raise_everywhere(const Sharding& sharding, const std::string& mine) {
  const auto text = comm::first_error(comm::group(sharding.mesh().device_ids()), mine);
  if (!text.empty()) throw E(text);
}

// The smallest and the largest value that a rank brings.
std::pair<std::int64_t, std::int64_t> extremes(const comm::Communicator& group, std::int64_t mine) {
  std::int64_t pair[2] = {mine, -mine};
  comm::all_reduce(group, comm::ReduceKind::max, int64, pair, pair, 2);
  return {-pair[1], pair[0]};
}
void check_one_dtype(const comm::Communicator& group, Dtype mine, const std::string& what) {
  const auto [first, last] = extremes(group, mine.code);
  if (first != last)
    throw DtypeError(what + " of different ranks have different dtypes, among them " +
                     name(Dtype{static_cast<int>(last)}) + " and " + name(Dtype{static_cast<int>(first)}) +
                     "; give one dtype everywhere, for empty blocks too");
}

}  // namespace

Array make_array_from_callback(Shape shape, Sharding sharding, std::function<HostArray(const Index&)> block) {
  checked_elements(shape, "make_array_from_callback");
  sharding.check_fits(shape, "make_array_from_callback");
  if (!takes_part(sharding))
    throw ShardingError(
        "make_array_from_callback: this process is not one of the sharding's devices, so it cannot know the "
        "dtype; call it on the devices "
        "of the mesh only");
  comm::agree_on_call(comm::group(sharding.mesh().device_ids()),
                      "make_array_from_callback of shape " + to_string(shape));
  const auto box = sharding.local_box(shape, local_devices()[0].id);
  std::string wrong, failed;
  HostArray host;
  try {
    host = block(box);
    if (!(host.shape() == box_shape(box)))
      wrong = "make_array_from_callback: for the index " + to_string(box) + " of shape " + to_string(shape) +
              " the callback returned a block of shape " + to_string(host.shape()) + "; it must be " +
              to_string(box_shape(box));
  } catch (const std::exception& error) {
    failed = "make_array_from_callback: the callback failed at " + to_string(box) + ": " + error.what();
  } catch (...) {
    failed = "make_array_from_callback: the callback failed at " + to_string(box) +
             " with what is no std::exception";
  }
  raise_everywhere<ArgumentError>(sharding, failed);
  raise_everywhere<ShapeError>(sharding, wrong);
  check_one_dtype(comm::group(sharding.mesh().device_ids()), host.dtype(),
                  "make_array_from_callback: the blocks");
  Buffer buffer = Buffer::allocate(host.nbytes());
  if (host.nbytes() > 0) std::memcpy(buffer.data(), host.bytes(), host.nbytes());
  return make_leaf({std::move(shape), host.dtype()}, std::move(sharding), std::move(buffer), true,
                   std::source_location::current());
}

Array make_array_from_process_local_data(Sharding sharding, HostArray block, std::optional<Shape> global) {
  const char* call = "make_array_from_process_local_data";
  if (!takes_part(sharding))
    throw ShardingError(std::string(call) + ": this process is not one of the sharding's devices");
  const int me = local_devices()[0].id;
  const auto& group = comm::group(sharding.mesh().device_ids());
  comm::agree_on_call(group, call);
  // Before sizes are exchanged: what the exchange itself depends on.
  check_one_dtype(group, block.dtype(), std::string(call) + ": the blocks");
  const auto [fewest_dims, most_dims] = extremes(group, block.shape().ndim());
  if (fewest_dims != most_dims)
    throw ShapeError(std::string(call) + ": the blocks of different ranks have from " +
                     std::to_string(fewest_dims) + " to " + std::to_string(most_dims) +
                     " dimensions; give blocks of one array");
  const auto [one_global, other_global] =
      extremes(group, global ? static_cast<std::int64_t>(field_hash(*global) >> 1) : -1);
  if (one_global != other_global)
    throw ShapeError(std::string(call) +
                     ": different ranks give different global shapes; give one shape everywhere, or none");
  if (!global) {
    // Along each dim: the sizes of the blocks of one line of devices through the grid add up.
    const int ndim = block.shape().ndim();
    std::vector<std::int64_t> mine(block.shape().begin(), block.shape().end()), all(ndim * group.size());
    comm::all_gather(group, mine.data(), ndim * 8, all.data());
    const auto axes = sharding.dim_axes(ndim);
    const Mesh mesh = sharding.mesh();
    std::vector<std::int64_t> extents(ndim, 0);
    for (int position = 0; position < mesh.size(); ++position) {
      const auto coords = *mesh.coords(mesh.devices()[position]);
      for (int d = 0; d < ndim; ++d) {
        bool on_line = true;  // coordinates are 0 along all axes that do not split this dim
        for (int a = 0; a < mesh.ndim(); ++a) {
          const auto& own = axes[d];
          const bool splits = std::find(own.begin(), own.end(), a) != own.end();
          on_line &= splits || coords[a] == 0;
        }
        if (on_line) extents[d] += all[position * ndim + d];
      }
    }
    global = Shape(std::move(extents));
  }
  sharding.check_fits(*global, call);
  const auto expected = box_shape(sharding.local_box(*global, me));
  std::string wrong;
  if (!(expected == block.shape()))
    wrong = std::string(call) + ": the block of shape " + to_string(block.shape()) + " on device " +
            std::to_string(me) + " does not match: an array of shape " + to_string(*global) +
            " has there a block of shape " + to_string(expected) +
            ". Blocks are ceil(n/parts) long, the last ones may be shorter";
  raise_everywhere<ShapeError>(sharding, wrong);
  Buffer buffer = Buffer::allocate(block.nbytes());
  if (block.nbytes() > 0) std::memcpy(buffer.data(), block.bytes(), block.nbytes());
  return make_leaf({std::move(*global), block.dtype()}, std::move(sharding), std::move(buffer), true,
                   std::source_location::current());
}

}  // namespace tessera
