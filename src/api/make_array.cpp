// Arrays made of data that each process holds.
#include <algorithm>
#include <cstring>
#include <limits>
#include <sstream>

#include "api/evaluate.hpp"
#include "api/host_buffer.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "mesh/devices.hpp"
#include "ops/build.hpp"
#include "types/checked.hpp"

namespace tessera {
namespace {

// Both functions are collective over all ranks of the runtime: a rank outside the sharding has no block, but
// joins every agreement and every error.
bool takes_part(const Sharding& sharding) { return sharding.mesh().position(local_devices()[0].id) >= 0; }

std::string agreed_call(const std::string& call, const std::string& shape, const Sharding& sharding) {
  std::ostringstream text;
  text << call << " of shape " << shape << ", " << sharding << " on the devices "
       << format_ids(sharding.mesh().device_ids());
  return text.str();
}

// Raises one rank's error on all ranks.
template <class E> void raise_everywhere(const std::string& mine) {
  const auto text = comm::first_error(comm::world(), mine);
  if (!text.empty()) throw E(text);
}

// The smallest and the largest value among the members.
std::pair<std::int64_t, std::int64_t> extremes(std::optional<std::int64_t> mine) {
  constexpr auto none = std::numeric_limits<std::int64_t>::min();
  std::int64_t pair[2] = {mine ? *mine : none, mine ? -*mine : none};
  comm::all_reduce(comm::world(), ReduceKind::max, int64, pair, pair, 2);
  return {-pair[1], pair[0]};
}
Dtype common_dtype(bool member, Dtype mine, const std::string& what) {
  const auto [first, last] = extremes(member ? std::optional<std::int64_t>(mine.code) : std::nullopt);
  if (first != last)
    throw DtypeError(what + " of different ranks have different dtypes, among them " +
                     name(Dtype{static_cast<int>(last)}) + " and " + name(Dtype{static_cast<int>(first)}) +
                     "; give one dtype everywhere, for empty blocks too");
  return Dtype{static_cast<int>(first)};
}

// The block's own memory if no copy shares it, else a copy; empty on a rank outside the sharding. All ranks
// raise an error if one has no memory for its copy.
Buffer own_or_copied(const std::string& call, bool member, HostArray& block) {
  Buffer buffer = member && block.nbytes() > 0 ? taken_over(block) : Buffer();
  std::string wrong;
  if (member && !buffer) try {
      buffer = Buffer::allocate(block.nbytes());
      if (block.nbytes() > 0) std::memcpy(buffer.data(), block.bytes(), block.nbytes());
    } catch (const std::exception& error) {
      wrong = call + ": " + error.what();
    }
  raise_everywhere<MemoryError>(wrong);
  return buffer;
}

// The shape of the array: along each dim, the sum of the block sizes of one line of devices through the grid.
Shape summed_shape(const std::string& call, const Sharding& sharding, const std::vector<std::int64_t>& own,
                   int ndim) {
  const int ranks = comm::world().size();
  std::vector<std::int64_t> mine(ndim, 0), all(std::size_t{1} * ndim * ranks);
  std::copy(own.begin(), own.end(), mine.begin());
  comm::all_gather(comm::world(), mine.data(), ndim * 8, all.data());
  const auto axes = sharding.dim_axes(ndim);
  const Mesh mesh = sharding.mesh();
  std::vector<std::int64_t> extents(ndim, 0);
  for (int position = 0; position < mesh.size(); ++position) {
    const auto device = mesh.devices()[position];
    const auto coords = *mesh.coords(device);
    for (int d = 0; d < ndim; ++d) {
      bool on_line = true;  // coordinates are 0 along all axes that do not split this dim
      for (int a = 0; a < mesh.ndim(); ++a) {
        const auto& splitting = axes[d];
        const bool splits = std::find(splitting.begin(), splitting.end(), a) != splitting.end();
        on_line &= splits || coords[a] == 0;
      }
      if (on_line) extents[d] = checked_sum(extents[d], all[device.id * ndim + d], call);
    }
  }
  return Shape(std::move(extents));
}

}  // namespace

Array make_array_from_callback(Shape shape, Sharding sharding, std::function<HostArray(const Index&)> block,
                               std::source_location where) {
  const Call here("make_array_from_callback", where);
  const std::string call = call_text();
  comm::agree_on_call(comm::world(), agreed_call(current_call().name, to_string(shape), sharding));
  checked_product(shape, call);
  sharding.check_fits(shape, call.c_str());
  const bool member = takes_part(sharding);
  const auto box = sharding.local_box(shape, local_devices()[0].id);
  std::string wrong, failed;
  HostArray host;
  const std::string at = call + ": the callback failed at " + to_string(box);
  if (member) try {
      host = [&] {
        const UserCode users;
        return block(box);
      }();
      if (!(host.shape() == box_shape(box)))
        wrong = call + ": for the index " + to_string(box) + " of shape " + to_string(shape) +
                " the callback returned a block of shape " + to_string(host.shape()) + "; it must be " +
                to_string(box_shape(box));
    } catch (const std::exception& error) {
      failed = at + ": " + error.what();
    } catch (...) {
      failed = at + " with what is no std::exception";
    }
  raise_everywhere<ArgumentError>(failed);
  raise_everywhere<ShapeError>(wrong);
  const Dtype dtype = common_dtype(member, host.dtype(), call + ": the blocks");
  checked_bytes(shape, dtype, call);
  Buffer buffer = own_or_copied(call, member, host);
  return make_leaf({std::move(shape), dtype}, std::move(sharding), std::move(buffer), true);
}

namespace {

// The number of dims of the array; checks that all members have the same.
int common_ndim(const std::string& call, bool member, const HostArray& block,
                const std::optional<Shape>& global) {
  const auto [fewest, most] =
      extremes(member ? std::optional<std::int64_t>(block.shape().ndim()) : std::nullopt);
  if (fewest != most)
    throw ShapeError(call + ": the blocks of different ranks have from " + std::to_string(fewest) + " to " +
                     std::to_string(most) + " dimensions; give blocks of one array");
  const auto [one_global, other_global] =
      extremes(global ? static_cast<std::int64_t>(field_hash(*global) >> 1) : -1);
  if (one_global != other_global)
    throw ShapeError(call +
                     ": different ranks give different global shapes; give one shape everywhere, or none");
  return static_cast<int>(fewest);
}

}  // namespace

Array make_array_from_process_local_data(Sharding sharding, HostArray block, std::optional<Shape> global,
                                         std::source_location where) {
  const Call here("make_array_from_process_local_data", where);
  const std::string call = call_text();
  comm::agree_on_call(comm::world(), agreed_call(current_call().name, "of all blocks", sharding));
  const bool member = takes_part(sharding);
  const int me = local_devices()[0].id;
  // Checked before sizes are exchanged, since the exchange itself depends on them.
  const Dtype dtype = common_dtype(member, block.dtype(), call + ": the blocks");
  const int ndim = common_ndim(call, member, block, global);
  if (!global)
    global =
        summed_shape(call, sharding, member ? block.shape().vector() : std::vector<std::int64_t>(), ndim);
  checked_bytes(*global, dtype, call);
  sharding.check_fits(*global, call.c_str());
  std::string wrong;
  const auto expected = box_shape(sharding.local_box(*global, me));
  if (member && !(expected == block.shape()))
    wrong = call + ": the block of shape " + to_string(block.shape()) + " on device " + std::to_string(me) +
            " does not match: an array of shape " + to_string(*global) + " has there a block of shape " +
            to_string(expected) + ". Blocks are ceil(n/parts) long, the last ones may be shorter";
  raise_everywhere<ShapeError>(wrong);
  Buffer buffer = own_or_copied(call, member, block);
  return make_leaf({std::move(*global), dtype}, std::move(sharding), std::move(buffer), true);
}

}  // namespace tessera
