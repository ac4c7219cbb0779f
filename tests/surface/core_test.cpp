// Spellings of errors, small values, runtime, meshes, shardings and arrays.
#include <tessera/mpi.hpp>

#include "surface/gives.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <ostream>

namespace tessera::test {
namespace {

using std::int64_t;
using Text = std::string;

template <class E, class Base> constexpr bool derives =
    std::is_base_of_v<Base, E>&& std::is_constructible_v<E, Text>;
static_assert(derives<Error, std::runtime_error> && derives<UserError, Error> &&
              derives<SystemError, Error> && derives<InternalError, Error>);
static_assert(derives<ShapeError, UserError> && derives<DtypeError, UserError> &&
              derives<ShardingError, UserError> && derives<AxisNameError, UserError> &&
              derives<IndexError, UserError> && derives<ArgumentError, UserError>);
static_assert(derives<CommError, SystemError> && derives<IoError, SystemError> &&
              derives<MemoryError, SystemError> && derives<LinAlgError, SystemError>);

static_assert(bool_.code == 0 && int8.code == 1 && int16.code == 2 && int32.code == 3 && int64.code == 4 &&
              uint8.code == 5 && uint16.code == 6 && uint32.code == 7 && uint64.code == 8 &&
              float32.code == 9 && float64.code == 10 && complex64.code == 11 && complex128.code == 12 &&
              bfloat16.code == 13 && float16.code == 14);
GIVES(std::ostream, out << float32);
COMPILES(Shape());
COMPILES(Shape{1, 2});
COMPILES(Shape(std::vector<int64_t>{1, 2}));
COMPILES(*shape.begin(), *shape.end(), shape.size(), shape[0], shape == shape);
GIVES(int64_t, shape[std::size_t{0}]);
COMPILES(Index{Range{0, 1}});

GIVES(int, run(1, static_cast<char**>(nullptr), [] {}));
static_assert(std::is_constructible_v<Runtime, int&, char**&> &&
              std::is_constructible_v<Runtime, int&, char**&, RuntimeOptions>);
COMPILES(Runtime::attach(MPI_COMM_WORLD));
COMPILES(Device{0, 0, "host"}.id, device.process_index, device.host);
COMPILES(device == device, device < device, out << device);
GIVES(std::vector<Device>, devices());
GIVES(std::vector<Device>, local_devices());
GIVES(int, device_count() + process_index() + process_count());
GIVES(bool, is_main_process());

COMPILES(Mesh(NdDevices{0, 1}, {"x"}));
COMPILES(Mesh(NdDevices{{0, 1}, {2, 3}}, {"x", "y"}));
COMPILES(Mesh(devices(), {"x"}));
COMPILES(Mesh(std::vector<std::vector<Device>>{}, {"x", "y"}));
COMPILES(Mesh(std::vector<std::vector<int>>{}, {"x", "y"}));
COMPILES(Mesh(create_device_mesh({2, 2}), {"x", "y"}));
using AxisSizes = std::vector<std::pair<Text, int>>;
GIVES(AxisSizes, mesh.shape());
GIVES(std::vector<Text>, mesh.axis_names());
GIVES(std::vector<int>, mesh.axis_sizes());
GIVES(int, mesh.axis_size("x") + mesh.size() + mesh.ndim());
GIVES(std::vector<Device>, mesh.devices());
GIVES(bool, mesh.contains(device));
GIVES(std::optional<std::vector<int>>, mesh.coords(device));
COMPILES(mesh == mesh, out << mesh);
GIVES(Mesh, make_mesh({4, 2}, {"x", "y"}));
GIVES(Mesh, make_mesh({4, 2}, {"x", "y"}, devices()));
GIVES(Mesh, abstract_mesh({4, 2}, {"x", "y"}));

COMPILES(P(), P("x", "y"), P("x", None), P(axes("x", "y"), None), P{"x", {"y", "z"}}, P(Text("x")));
COMPILES(P() == P("x"), out << P());
GIVES(Sharding, NamedSharding(mesh, P("x")));
static_assert(std::is_same_v<NamedSharding, Sharding>);
GIVES(Sharding, SingleDeviceSharding(device));
GIVES(Shape, sharding.shard_shape(shape));
GIVES(Shape, sharding.local_shape(shape, device));
using IndexMap = std::vector<std::pair<Device, Index>>;
GIVES(IndexMap, sharding.devices_indices_map(shape));
GIVES(int, sharding.replica_id(shape, device) + sharding.num_devices());
GIVES(std::set<Device>, sharding.device_set());
GIVES(bool, sharding.is_fully_replicated() && sharding.is_equivalent_to(sharding, 2) && sharding == sharding);
GIVES(int64_t, sharding.memory_bytes(shape, float32, device));
GIVES(PartitionSpec, sharding.spec());
GIVES(Mesh, sharding.mesh());
COMPILES(out << sharding, Sharding(PositionalSharding(devices())));
using Positional = PositionalSharding;
COMPILES(Positional(NdDevices{0, 1}));
GIVES(Shape, Positional(devices()).shape());
GIVES(int, Positional(devices()).ndim());
GIVES(Positional, Positional(devices()).reshape({2, 2}).T().transpose({1, 0}).replicate());
GIVES(Positional, Positional(devices()).replicate(0).replicate(0, false));
COMPILES(out << Positional(devices()));

COMPILES(HostArray(std::vector<float>{1, 2}, Shape{2}));
GIVES(Shape, host.shape());
GIVES(Dtype, host.dtype());
GIVES(std::span<const float>, host.as<float>());
COMPILES(Array(1), Array(1.5), Array(true), Array(std::complex<float>(1, 2)));
GIVES(Shape, x.shape());
GIVES(int, x.ndim());
GIVES(int64_t, x.size() + x.nbytes());
GIVES(Dtype, x.dtype());
GIVES(Sharding, x.sharding());
GIVES(bool, x.is_committed() && x.is_fully_replicated() && x.is_deleted());
GIVES(Array, x.T());
GIVES(std::vector<Shard>, x.addressable_shards());
GIVES(std::set<Device>, x.devices());
COMPILES(Array(x).delete_());
GIVES(Array, x(0, slice(), slice(2, 10, 2), slice(None, -1), None, y));
GIVES(Array, x(ellipsis, 0));
GIVES(Array, x.at(0, slice()).set(y));
GIVES(Array, x.at(0, ellipsis).add(1));
COMPILES(std::declval<Shard>().device, std::declval<Shard>().index, std::declval<Shard>().replica_id,
         std::declval<Shard>().data);
COMPILES(out << x, print(x));

GIVES(Array, zeros({2, 3}));
GIVES(Array, zeros({2, 3}, int32));
GIVES(Array, ones(shape, float64));
GIVES(Array, full({2}, 1.5, float64));
GIVES(Array, eye(3, float64));
GIVES(Array, arange(3));
GIVES(Array, arange(1, 3));
GIVES(Array, arange(0.0, 1.0, 0.1));
GIVES(Array, linspace(0, 1));
GIVES(Array, linspace(0, 1, 5));
GIVES(Array, zeros_like(x));
GIVES(Array, ones_like(x));
GIVES(Array, full_like(x, 2));
GIVES(Array, array(std::span<const float>(), shape));
GIVES(Array, array<float>(std::vector<float>{1, 2}, {2}));
GIVES(Array, array({1.f, 2.f}));
GIVES(Array, array({{1.f, 2.f}, {3.f, 4.f}}));
GIVES(Array, make_array_from_callback(shape, sharding, [](const Index&) {
        return HostArray(std::vector<float>(), Shape{0});
      }));
GIVES(Array, make_array_from_process_local_data(sharding, host));
GIVES(Array, make_array_from_process_local_data(sharding, host, shape));
GIVES(Array, device_put(x, sharding));
GIVES(Array, device_put(x, mesh, P("x")));
GIVES(Array, device_put(x, device));
GIVES(Array, device_put(x, Positional(devices())));
GIVES(Array, with_sharding_constraint(x, sharding));
COMPILES(eval(x), eval(x, y), eval(std::tuple(x, y)));
GIVES(Array, block_until_ready(x));
GIVES(float, item<float>(x));
GIVES(std::vector<double>, to_vector<double>(x));
GIVES(HostArray, to_host(x));
GIVES(std::span<const float>, local<float>(x));

TEST(Surface, a_program_in_the_spelling_of_the_page_runs) {
  const Mesh grid = make_mesh({device_count(), 1}, {"x", "y"});
  const Array a = device_put(reshape(arange(12), {4, 3}), grid, P("x", None)),
              b = device_put(ones({3, 2}), grid, P(None, "y"));
  EXPECT_EQ(to_vector<float>(matmul(a, b)), (std::vector<float>{3, 3, 12, 12, 21, 21, 30, 30}));
  EXPECT_EQ(item<int>(sum(a(slice(), 0))), 18);
}

}  // namespace
}  // namespace tessera::test
