// Properties of an array handle, and reading its value on the host.
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstring>

#include "api/evaluate.hpp"
#include "api/host_buffer.hpp"
#include "api/local_block.hpp"
#include "api/memory.hpp"
#include "base/session.hpp"
#include "base/settings.hpp"
#include "base/text.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/move/content_hash.hpp"
#include "kernels/move/copy.hpp"
#include "mesh/devices.hpp"
#include "ops/functions.hpp"

namespace tessera {

namespace {
struct Everywhere {
  std::size_t devices = 0;
  std::optional<Sharding> sharding;
};
}  // namespace

const Sharding& replicated_everywhere() {
  auto& [devices, sharding] = state<Everywhere>();
  const auto& now = device_table();
  if (devices != now.size()) {
    sharding = Sharding::replicated(make_mesh({static_cast<int>(now.size())}, {"devices"}, now));
    devices = now.size();  // set last, in case the line above throws
  }
  return *sharding;
}

// Shape, dtype and layout of a deleted array remain, as in JAX: calls that were made before still read them.
const Shape& Array::shape() const& {
  if (!node_) check_usable(*this);
  return output_of(*this).type.shape;
}
Shape Array::shape() const&& { return static_cast<const Array&>(*this).shape(); }
int Array::ndim() const { return shape().ndim(); }
std::int64_t Array::size() const { return shape().elements(); }
Dtype Array::dtype() const {
  if (!node_) check_usable(*this);
  return output_of(*this).type.dtype;
}
bool Array::is_weakly_typed() const { return output_of(*this).type.weak; }
std::int64_t Array::nbytes() const { return size() * static_cast<std::int64_t>(itemsize(dtype())); }
Sharding Array::sharding() const {
  if (!node_) check_usable(*this);
  const auto& output = output_of(*this);
  return output.sharding ? *output.sharding : replicated_everywhere();
}
bool Array::is_committed() const { return output_of(*this).sharding.has_value(); }
bool Array::is_fully_replicated() const { return sharding().is_fully_replicated(); }
std::set<Device> Array::devices() const { return sharding().device_set(); }
bool Array::is_deleted() const { return node_ && output_of(*this).deleted; }
void Array::delete_(std::source_location where) {
  const Call call("delete_", where);
  if (is_deleted()) return;
  check_usable(*this);
  auto& output = mutable_output_of(*this);
  output.deleted = true;
  if (output.stored && node_->readers == 0) output.stored->buffer.reset();
}

std::vector<Shard> Array::addressable_shards(std::source_location where) const {
  const Call call("addressable_shards", where);
  evaluate({*this});
  const auto& stored = *output_of(*this).stored;
  const int me = local_devices()[0].id;
  if (stored.layout.mesh().position(me) < 0) return {};
  const Device device = local_devices()[0];
  const auto box = stored.layout.local_box(shape(), me);
  Array data = make_leaf({box_shape(box), dtype()}, SingleDeviceSharding(device), stored.buffer, true);
  return {Shard{device, box, stored.layout.replica_id(shape(), device), std::move(data)}};
}

void eval(const std::vector<Array>& arrays, std::source_location where) {
  const Call call("eval", where);
  evaluate(arrays);
}

HostArray::HostArray(Shape shape, Dtype dtype, std::source_location where)
    : shape_(std::move(shape)), dtype_(dtype) {
  const Call call("HostArray", where);
  const auto bytes = checked_bytes(shape_, itemsize(dtype), "HostArray");
  data_ = std::shared_ptr<std::byte[]>(new std::byte[std::max<std::int64_t>(bytes, 1)]());
}
HostArray HostArray::adopt(void* values, Shape shape, Dtype dtype, std::function<void()> release) {
  HostArray host;
  host.shape_ = std::move(shape);
  host.dtype_ = dtype;
  host.is_adopted_ = true;
  host.data_ = std::shared_ptr<std::byte[]>(static_cast<std::byte*>(values),
                                            [release = std::move(release)](std::byte*) {
                                              if (release) release();
                                            });
  return host;
}
std::shared_ptr<std::byte[]> HostArray::take() {
  if (data_.use_count() != 1) return nullptr;
  auto memory = std::move(data_);
  *this = HostArray(Shape{0}, dtype_);
  return memory;
}
void detail::check_count(std::int64_t count, const Shape& shape, const char* name,
                         std::source_location where) {
  const Call call(name, where);
  if (count != shape.elements())
    throw ShapeError(call_text() + ": " + format_count(count, "value") + (count == 1 ? " does" : " do") +
                     " not fill the shape " + to_string(shape) + ", which has " +
                     format_count(shape.elements(), "element"));
}
void detail::throw_ragged(std::size_t row, std::size_t values, std::size_t width, std::source_location where,
                          const char* part, const char* of) {
  const Call call("array", where);
  throw ShapeError(call_text() + ": " + part + " " + std::to_string(row) + " has " +
                   format_count(static_cast<std::int64_t>(values), std::string(of, std::strlen(of) - 1)) +
                   ", the first " + part + " has " + std::to_string(width));
}
void detail::copy_extents(const Shape& shape, std::span<std::int64_t> extents, std::source_location where) {
  const Call call("shape", where);
  if (shape.size() != extents.size())
    throw ShapeError(call_text() + ": the array has " + format_count(shape.ndim(), "dimension") + ", " +
                     to_string(shape) + ", and not " + std::to_string(extents.size()));
  std::copy(shape.begin(), shape.end(), extents.begin());
}
void detail::check_bindings(std::size_t given, std::size_t wanted, const char* name,
                            std::source_location where) {
  const Call call(name, where);
  if (given != wanted)
    throw ArgumentError(call_text() + ": " + name + "<" + std::to_string(wanted) + "> is given " +
                        format_count(static_cast<std::int64_t>(given), "array"));
}
void HostArray::check_dtype(Dtype dtype, std::source_location where) const {
  const Call call("HostArray::as", where);
  if (!(dtype == dtype_))
    throw DtypeError(call_text() + ": the block holds " + name(dtype_) + ", not " + name(dtype) +
                     "; ask for its own type, or convert with astype before to_host");
}
void HostArray::copy_from(const void* values) {
  if (nbytes() > 0) std::memcpy(data_.get(), values, nbytes());
}

HostArray to_host(const Array& x, std::source_location where) {
  const Call call("to_host", where);
  check_usable(x);
  if (x.node()->region)
    throw ArgumentError(
        call_text() + ": the whole value of " + describe(x) +
        " is asked for inside a mapped function (shard_map or pmap), where every rank has its own block. " +
        "Return it, look at local(x), or use debug::print");
  const Array everywhere = output_of(x).sharding ? device_put(x, replicated_everywhere()) : x;
  evaluate({everywhere});
  HostArray host(x.shape(), x.dtype());
  const auto& buffer = output_of(everywhere).stored->buffer;
  if (host.nbytes() > 0) std::memcpy(host.bytes(), buffer.data(), host.nbytes());
  return host;
}

HostArray to_host(const Array& x, Dtype dtype, std::source_location where) {
  const Call call("to_host", where);
  HostArray host = to_host(x);
  if (host.dtype() == dtype) return host;
  HostArray converted(host.shape(), dtype);
  const void* in = host.bytes();
  kernels::find_cast(host.dtype(), dtype)(&in, converted.bytes(), host.size());
  return converted;
}

std::vector<bool> to_bool_vector(const Array& x, std::source_location where) {
  const Call call("to_vector", where);
  const HostArray host = to_host(x, bool_);
  std::vector<bool> values;
  for (std::int64_t i = 0; i < host.size(); ++i) values.push_back(host.bytes()[i] != std::byte{0});
  return values;
}

LocalBlock local_block(const Array& x) {
  check_usable(x);
  evaluate({x});
  return {output_of(x).stored->buffer, local_shape(x)};
}

namespace detail {

const std::byte* local_bytes(const Array& x, Dtype dtype, std::int64_t& elements,
                             std::source_location where) {
  const Call call("local", where);
  check_usable(x);
  if (!(x.dtype() == dtype))
    throw DtypeError(call_text() + ": " + describe(x) + " holds " + name(x.dtype()) + ", not " + name(dtype));
  auto [buffer, shape] = local_block(x);
  elements = buffer ? shape.elements() : 0;
  auto& seen = mutable_output_of(x).stored->seen = std::move(buffer);
  return seen.data();
}

void item_bytes(const Array& x, Dtype dtype, void* out, std::source_location where) {
  const Call call("item", where);
  check_usable(x);
  if (x.size() != 1)
    throw ShapeError(
        call_text() + ": " + describe(x) + " has " + format_count(x.size(), "element") +
        "; item, and a condition in Python, take the only element of an array of size 1. Use all or "
        "any for a condition, to_vector (in Python device_get) for values");
  const HostArray host = to_host(x, dtype);
  std::memcpy(out, host.bytes(), itemsize(dtype));
}

}  // namespace detail

namespace {
// Whether data that every rank provides are compared at their first use.
bool compares_data() { return settings().check > 0 && settings().check_data && process_count() > 1; }
Array make_data(Type type, Buffer buffer, std::uint64_t content) {
  Array x = make_leaf(std::move(type), replicated_everywhere(), std::move(buffer), false);
  mutable_output_of(x).stored->content = content;
  return x;
}
}  // namespace

Array array_from_host(const void* values, Shape shape, Dtype dtype, std::source_location where) {
  const Call call("array", where);
  const auto bytes = checked_bytes(shape, itemsize(dtype), "array");
  Buffer buffer = Buffer::allocate(bytes);
  const auto size = static_cast<std::size_t>(bytes);
  std::uint64_t content = 0;
  if (compares_data())
    content = kernels::copy_with_hash(buffer.data(), values, size);
  else if (bytes > 0)
    std::memcpy(buffer.data(), values, size);
  return make_data({std::move(shape), dtype}, std::move(buffer), content);
}
Array array(const HostArray& host, std::source_location where) {
  return array_from_host(host.bytes(), host.shape(), host.dtype(), where);
}
Array array(HostArray&& host, std::source_location where) {
  const Call call("array", where);
  const auto bytes = checked_bytes(host.shape(), itemsize(host.dtype()), "array");
  const Type type{host.shape(), host.dtype()};
  Buffer buffer = taken_over(host);
  if (!buffer) return array_from_host(host.bytes(), type.shape, type.dtype, where);
  check_memory(bytes, call_text());
  const auto content =
      compares_data() ? kernels::content_hash(buffer.data(), static_cast<std::size_t>(bytes)) : 0;
  return make_data(type, std::move(buffer), content);
}

Buffer taken_over(HostArray& host) {
  const auto bytes = static_cast<std::size_t>(host.nbytes());
  const bool is_ours = !host.is_adopted();
  auto memory = host.take();
  if (!memory) return {};
  std::byte* const data = memory.get();
  const auto release = [memory = std::move(memory)] {};
  return is_ours ? Buffer::wrap(data, bytes, release) : Buffer::borrow(data, bytes, release);
}

Shape local_shape(const Array& x) {
  check_usable(x);
  const Sharding sharding = x.sharding();
  const int me = local_devices()[0].id;
  if (sharding.mesh().position(me) < 0) return Shape(std::vector<std::int64_t>(x.shape().size(), 0));
  return box_shape(sharding.local_box(x.shape(), me));
}

std::int64_t release_memory() {
  const auto before = memory_use().pooled_bytes;
  release_pooled_memory();
  return before - memory_use().pooled_bytes;
}

}  // namespace tessera
