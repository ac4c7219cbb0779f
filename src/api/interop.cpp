// Exchange of memory with other libraries.
#include <tessera/dlpack.hpp>
#include <tessera/eigen.hpp>
#include <tessera/error.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/evaluate.hpp"
#include "api/local_block.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "kernels/move/copy.hpp"
#include "types/box.hpp"

namespace tessera::detail {
namespace {

// Codes of DLPack.
enum Code : std::uint8_t {
  dl_int = 0,
  dl_uint = 1,
  dl_float = 2,
  dl_bfloat = 4,
  dl_complex = 5,
  dl_bool = 6
};
constexpr std::int32_t dl_cpu = 1, dl_cuda_host = 2, dl_rocm_host = 11;  // memory that the CPU can read

dlpack::DataType dl_type(Dtype dtype) {
  const Code code = is_bool(dtype)               ? dl_bool
                    : is_signed_integer(dtype)   ? dl_int
                    : is_unsigned_integer(dtype) ? dl_uint
                    : is_complex(dtype)          ? dl_complex
                    : dtype == bfloat16          ? dl_bfloat
                                                 : dl_float;
  return {code, static_cast<std::uint8_t>(8 * itemsize(dtype)), 1};
}

Dtype dtype_of_dl(dlpack::DataType type) {
  if (type.lanes == 1)
    for (int code = 0; code < dtype_count; ++code)
      if (const auto own = dl_type(Dtype{code}); own.code == type.code && own.bits == type.bits)
        return Dtype{code};
  throw DtypeError(call_text() + ": elements of DLPack's code " + std::to_string(type.code) + ", " +
                   std::to_string(type.bits) + " bits and " + format_count(type.lanes, "lane") +
                   " have no dtype here. Convert them where they come from");
}

// An exported tensor together with its memory.
template <class Managed> struct Exported {
  Managed tensor{};
  std::shared_ptr<const void> memory;
  std::vector<std::int64_t> shape, strides;
};

template <class Managed> void release(Managed* tensor) {
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

}  // namespace

template <class Managed> Managed* managed_tensor(const void* data, const Shape& shape, Dtype dtype,
                                                 std::shared_ptr<const void> memory,
                                                 [[maybe_unused]] std::uint64_t flags) {
  auto exported = std::make_unique<Exported<Managed>>();
  exported->memory = std::move(memory);
  exported->shape.assign(shape.begin(), shape.end());
  exported->strides = row_major_strides(shape);
  Managed& tensor = exported->tensor;
  tensor.dl_tensor = {const_cast<void*>(data),
                      {dl_cpu, 0},
                      shape.ndim(),
                      dl_type(dtype),
                      exported->shape.data(),
                      exported->strides.data(),
                      0};
  tensor.manager_ctx = exported.get();
  tensor.deleter = [](Managed* own) { delete static_cast<Exported<Managed>*>(own->manager_ctx); };
  if constexpr (has_dlpack_flags<Managed>) tensor.version = {1, 0}, tensor.flags = flags;
  return &exported.release()->tensor;
}
template dlpack::ManagedTensor* managed_tensor(const void*, const Shape&, Dtype, std::shared_ptr<const void>,
                                               std::uint64_t);
template dlpack::ManagedTensorVersioned* managed_tensor(const void*, const Shape&, Dtype,
                                                        std::shared_ptr<const void>, std::uint64_t);

template <class Managed> Managed* export_dlpack(const Array& x, std::source_location where) {
  const Call call("to_dlpack", where);
  auto [memory, shape] = local_block(x);
  const void* const data = memory.data();
  return managed_tensor<Managed>(data, shape, x.dtype(), std::make_shared<Buffer>(std::move(memory)),
                                 dlpack::flag_read_only);
}
template dlpack::ManagedTensor* export_dlpack(const Array&, std::source_location);
template dlpack::ManagedTensorVersioned* export_dlpack(const Array&, std::source_location);

template <class Managed> HostArray import_dlpack(Managed* tensor, std::source_location where) {
  const Call call("from_dlpack", where);
  if (tensor == nullptr) throw ArgumentError(call_text() + ": the tensor is null");
  if constexpr (has_dlpack_flags<Managed>)
    if (tensor->version.major != 1)
      throw ArgumentError(call_text() + ": the tensor is of DLPack " + std::to_string(tensor->version.major) +
                          ", whose layout tessera does not know; ask its library for version 1");
  const dlpack::Tensor& block = tensor->dl_tensor;
  const auto device = block.device.device_type;
  if (device != dl_cpu && device != dl_cuda_host && device != dl_rocm_host)
    throw ArgumentError(call_text() + ": the tensor lies on a device of DLPack's type " +
                        std::to_string(device) +
                        ", and tessera reads the memory of CPUs (1). Copy it there first");
  const Dtype dtype = dtype_of_dl(block.dtype);
  const Shape shape(std::vector<std::int64_t>(block.shape, block.shape + block.ndim));
  const auto dense = row_major_strides(shape);
  auto* const data = static_cast<std::byte*>(block.data) + block.byte_offset;
  bool is_dense = true;
  for (int d = 0; d < block.ndim && block.strides != nullptr; ++d)
    is_dense &= shape[d] <= 1 || block.strides[d] == dense[d];
  if (is_dense || shape.elements() == 0)
    return HostArray::adopt(data, shape, dtype, [tensor] { release(tensor); });
  HostArray copy(shape, dtype, where);
  kernels::copy_strided(copy.bytes(), dense, data, {block.strides, shape.size()}, shape, itemsize(dtype));
  release(tensor);
  return copy;
}
template HostArray import_dlpack(dlpack::ManagedTensor*, std::source_location);
template HostArray import_dlpack(dlpack::ManagedTensorVersioned*, std::source_location);

void check_matrix_or_vector(const Array& x, std::source_location where) {
  const Call call("local_map", where);
  if (x.ndim() != 1 && x.ndim() != 2)
    throw ShapeError(call_text() + ": a view of a matrix or vector is asked for, and x has " +
                     format_count(x.ndim(), "dim") + ". Reshape it, or use local_mdspan");
}

}  // namespace tessera::detail
