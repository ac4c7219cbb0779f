#include <tessera/multihost.hpp>

#include <tessera/runtime.hpp>

#include <cstring>
#include <sstream>

#include "comm/collectives/collectives.hpp"
#include "comm/watch/agreement.hpp"
#include "comm/watch/waiting.hpp"
#include "graph/op.hpp"
#include "kernels/visit.hpp"
#include "types/extents.hpp"

namespace tessera::multihost {
namespace {

std::string type_text(const HostArray& x) { return to_string(Type{x.shape(), x.dtype()}); }

// Facts of all processes are compared on all of them, so that all come to the same verdict.
void check_alike(const HostArray& x) {
  std::uint64_t mine = mix(field_hash(x.shape()), field_hash(x.dtype()));
  std::uint64_t bounds[2] = {mine, ~mine}, most[2];
  comm::all_reduce(comm::world(), ReduceKind::max, uint64, bounds, most, 2);
  if (most[0] == ~most[1]) return;
  std::vector<int> ids(process_count());
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int>(i);
  throw ArgumentError(call_text() + ": the processes bring arrays of different types: " +
                      comm::list_by_text(comm::gather_texts(comm::world(), type_text(x)), ids) +
                      ". Pad or convert them to one shape and dtype");
}

std::string element_text(const HostArray& x, std::int64_t i) {
  const auto item = itemsize(x.dtype());
  std::ostringstream text;
  kernels::visit_stored(x.dtype(), [&]<class T>(T) {
    std::conditional_t<std::is_same_v<T, bool>, std::uint8_t, T> value;
    std::memcpy(&value, x.bytes() + static_cast<std::size_t>(i) * item, item);
    if constexpr (sizeof(T) == 1)
      text << +value;
    else
      text << value;
  });
  return text.str();
}

template <class T> bool same_number(const std::byte* a, const std::byte* b) {
  T x, y;
  std::memcpy(&x, a, sizeof x);
  std::memcpy(&y, b, sizeof y);
  return x == y || (x != x && y != y);
}

// Equal values; -0 equals 0, NaN equals NaN.
bool same_element(const HostArray& a, const HostArray& b, std::int64_t i) {
  const auto item = static_cast<std::int64_t>(itemsize(a.dtype()));
  const std::byte *x = a.bytes() + i * item, *y = b.bytes() + i * item;
  const auto same_part = [&](std::int64_t at) {
    return kernels::visit_real(real_dtype(a.dtype()),
                               [&]<class T>(T) { return same_number<T>(x + at, y + at); });
  };
  if (is_complex(a.dtype())) return same_part(0) && same_part(item / 2);
  if (is_floating(a.dtype())) return same_part(0);
  return std::memcmp(x, y, item) == 0;
}

Shape gathered_shape(const Shape& shape, bool tiled) {
  if (!tiled || shape.empty()) return with_dim(shape, 0, process_count());
  Shape extents = shape;
  extents[0] *= process_count();
  return extents;
}

std::string index_text(std::int64_t flat, const Shape& shape) {
  std::vector<std::int64_t> index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) index[d] = flat % shape[d], flat /= shape[d];
  return field_text(index);
}

}  // namespace

HostArray process_allgather(const HostArray& x, bool tiled, std::source_location where) {
  const Call call("process_allgather", where);
  const comm::Purpose purpose("multihost::process_allgather");
  comm::agree_on_call(comm::world(), "process_allgather");
  check_alike(x);
  HostArray gathered(gathered_shape(x.shape(), tiled), x.dtype());
  if (x.nbytes() > 0) comm::all_gather(comm::world(), x.bytes(), x.nbytes(), gathered.bytes());
  return gathered;
}

HostArray process_allgather(const Array& x, bool tiled, std::source_location where) {
  const Call call("process_allgather", where);
  check_usable(x);
  const bool spread = output_of(x).sharding.has_value() && process_count() > 1;
  if (!spread) return process_allgather(to_host(x), tiled);
  if (!tiled)
    throw ArgumentError(call_text() + ": " + describe(x) +
                        " is spread over processes, which hold one value together and have nothing to stack; "
                        "say process_allgather(x, true), or to_host(x)");
  return to_host(x);
}

HostArray process_gather(const Array& x, std::source_location where) {
  const Call call("process_gather", where);
  check_usable(x);
  const Array on_first = device_put(x, SingleDeviceSharding(devices()[0]));
  eval({on_first});
  if (!is_main_process()) return HostArray(Shape{0}, x.dtype());
  HostArray host(x.shape(), x.dtype());
  if (host.nbytes() > 0)
    std::memcpy(host.bytes(), output_of(on_first).stored->buffer.data(),
                static_cast<std::size_t>(host.nbytes()));
  return host;
}

HostArray broadcast_one_to_all(const HostArray& x, std::source_location where) {
  const Call call("broadcast_one_to_all", where);
  const comm::Purpose purpose("multihost::broadcast_one_to_all");
  comm::agree_on_call(comm::world(), "broadcast_one_to_all");
  check_alike(x);
  HostArray result(x.shape(), x.dtype());
  if (x.nbytes() == 0) return result;
  if (is_main_process()) std::memcpy(result.bytes(), x.bytes(), x.nbytes());
  comm::broadcast(comm::world(), result.bytes(), x.nbytes(), 0);
  return result;
}

void sync_global_devices(const std::string& name, std::source_location where) {
  const Call call("sync_global_devices", where);
  const comm::Purpose purpose("multihost::sync_global_devices");
  comm::agree(comm::world(), field_hash(name), [&] { return "sync_global_devices(\"" + name + "\")"; });
}

void assert_equal(const HostArray& x, std::source_location where) {
  const Call call("assert_equal", where);
  const comm::Purpose purpose("multihost::assert_equal");
  const HostArray first = broadcast_one_to_all(x);
  std::string mine;
  for (std::int64_t i = 0; i < x.size() && mine.empty(); ++i)
    if (!same_element(x, first, i))
      mine = "element " + index_text(i, x.shape()) + " of " + type_text(x) + " is " + element_text(x, i) +
             ", process 0 has " + element_text(first, i);
  const auto difference = comm::first_error(comm::world(), mine);
  if (!difference.empty())
    throw ArgumentError(
        call_text() + ": the processes hold different values. " + difference +
        ". Compute or read the value on one process and pass it on with broadcast_one_to_all");
}

void assert_equal(const Array& x, std::source_location where) {
  const Call call("assert_equal", where);
  assert_equal(to_host(x));
}

}  // namespace tessera::multihost
