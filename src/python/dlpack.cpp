// DLPack, the exchange of arrays in memory between libraries (dmlc/dlpack, version 0.8), in both directions.
// NumPy's own functions for it have no bools before 2.0.
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

// The layout of these structs is the protocol.
struct DLDevice {
  std::int32_t device_type, device_id;
};
struct DLDataType {
  std::uint8_t code, bits;
  std::uint16_t lanes;
};
struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t ndim;
  DLDataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major
  std::uint64_t byte_offset;
};
struct DLManagedTensor {
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
constexpr std::int32_t cpu = 1;
enum Code : std::uint8_t {
  signed_integer = 0,
  unsigned_integer = 1,
  floating = 2,
  brain_floating = 4,
  complex = 5,
  boolean = 6
};

DLDataType type_of(Dtype dtype) {
  const Code code = is_bool(dtype)                      ? boolean
                    : is_complex(dtype)                 ? complex
                    : dtype == bfloat16                 ? brain_floating
                    : is_floating(dtype)                ? floating
                    : name(dtype).rfind("uint", 0) == 0 ? unsigned_integer
                                                        : signed_integer;
  return {code, static_cast<std::uint8_t>(8 * itemsize(dtype)), 1};
}
Dtype dtype_of_tensor(const DLDataType& type) {
  for (int code = 0; code < dtype_count; ++code) {
    const DLDataType known = type_of(Dtype{code});
    if (known.code == type.code && known.bits == type.bits && type.lanes == 1) return Dtype{code};
  }
  throw py::type_error("from_dlpack: elements of code " + std::to_string(type.code) + " with " +
                       std::to_string(type.bits) + " bits have no counterpart here");
}

struct Exported {
  DLManagedTensor managed;
  std::shared_ptr<const void> keeps;
  std::vector<std::int64_t> shape, strides;
};
std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  return strides;
}
void drop_unused(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, "dltensor") == 0) return;  // a consumer has taken it over, and renamed it
  auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
  managed->deleter(managed);
}

// The elements of a strided tensor one after the other.
void copy_rows(const DLTensor& from, const std::vector<std::int64_t>& strides, std::int64_t bytes,
               const std::byte* source, std::byte*& target, std::int32_t dim) {
  if (dim == from.ndim) {
    std::memcpy(target, source, static_cast<std::size_t>(bytes));
    target += bytes;
    return;
  }
  for (std::int64_t i = 0; i < from.shape[dim]; ++i)
    copy_rows(from, strides, bytes, source + i * strides[static_cast<std::size_t>(dim)] * bytes, target,
              dim + 1);
}
Array copy_of(const DLTensor& tensor) {
  if (tensor.device.device_type != cpu)
    throw py::value_error("from_dlpack: the memory is on device type " +
                          std::to_string(tensor.device.device_type) + "; only the CPU's can be read");
  const Dtype dtype = dtype_of_tensor(tensor.dtype);
  const std::vector<std::int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
  const auto strides = tensor.strides != nullptr
                           ? std::vector<std::int64_t>(tensor.strides, tensor.strides + tensor.ndim)
                           : row_major(shape);
  HostArray host(Shape(shape), dtype, here());
  auto* target = static_cast<std::byte*>(host.bytes());
  if (host.nbytes() > 0)
    copy_rows(tensor, strides, itemsize(dtype),
              static_cast<const std::byte*>(tensor.data) + tensor.byte_offset, target, 0);
  return array(host, here());
}

}  // namespace

py::capsule dlpack_capsule(const Block& block) {
  auto* made = new Exported{{}, block.keeps, {block.shape.begin(), block.shape.end()}, {}};
  made->strides = row_major(made->shape);
  made->managed.tensor = {const_cast<void*>(block.data),
                          {cpu, 0},
                          static_cast<std::int32_t>(made->shape.size()),
                          type_of(block.dtype),
                          made->shape.data(),
                          made->strides.data(),
                          0};
  made->managed.manager = made;
  made->managed.deleter = [](DLManagedTensor* managed) { delete static_cast<Exported*>(managed->manager); };
  return py::capsule(&made->managed, "dltensor", &drop_unused);
}

void bind_dlpack(py::module_& m) {
  m.def("from_dlpack_capsule", [](py::capsule capsule) {
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor") == 0)
      throw py::value_error("from_dlpack: the capsule holds no tensor, or one that was taken already");
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor"));
    const Array copied = copy_of(managed->tensor);
    PyCapsule_SetName(capsule.ptr(), "used_dltensor");
    if (managed->deleter != nullptr) managed->deleter(managed);
    return copied;
  });
}

}  // namespace tessera::python
