// DLPack, the exchange of arrays in memory between libraries (dmlc/dlpack, versions 0.8 and 1.0), in both
// directions. NumPy's own functions for it support no bools before 2.0.
#include <tessera/error.hpp>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "python/convert.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

// The layout of these structs is defined by the protocol.
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
  static constexpr const char *name = "dltensor", *used_name = "used_dltensor";
  static constexpr bool has_flags = false;
  DLTensor tensor;
  void* manager;
  void (*deleter)(DLManagedTensor*);
};
struct DLManagedTensorVersioned {
  static constexpr const char *name = "dltensor_versioned", *used_name = "used_dltensor_versioned";
  static constexpr bool has_flags = true;
  std::uint32_t major, minor;
  void* manager;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
constexpr std::uint64_t read_only_flag = 1, is_copied_flag = 2;
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

template <class Managed> struct Exported {
  Managed managed{};
  std::shared_ptr<const void> keeps;
  std::vector<std::int64_t> shape, strides;
};
std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<std::int64_t>(shape[d], 1);
  return strides;
}

// The tensor in a capsule; nullptr after a consumer has taken it over, which renames the capsule.
template <class Managed> Managed* tensor_in(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, Managed::name) == 0) return nullptr;
  return static_cast<Managed*>(PyCapsule_GetPointer(capsule, Managed::name));
}
template <class Managed> py::capsule capsule_of(const Block& block) {
  auto* made = new Exported<Managed>{{}, block.keeps, {block.shape.begin(), block.shape.end()}, {}};
  made->strides = row_major(made->shape);
  auto& managed = made->managed;
  managed.tensor = {const_cast<void*>(block.data),
                    {cpu, 0},
                    static_cast<std::int32_t>(made->shape.size()),
                    type_of(block.dtype),
                    made->shape.data(),
                    made->strides.data(),
                    0};
  managed.manager = made;
  managed.deleter = [](Managed* tensor) { delete static_cast<Exported<Managed>*>(tensor->manager); };
  if constexpr (Managed::has_flags)
    managed.major = 1, managed.flags = block.read_only ? read_only_flag : is_copied_flag;
  return py::capsule(&managed, Managed::name, [](PyObject* capsule) {
    if (auto* unused = tensor_in<Managed>(capsule)) unused->deleter(unused);
  });
}

// Copies the elements of a strided tensor to consecutive memory.
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

py::capsule dlpack_capsule(const Block& block, bool versioned) {
  if (versioned) return capsule_of<DLManagedTensorVersioned>(block);
  if (block.read_only) throw InternalError("a capsule that may be written, of memory that may not");
  return capsule_of<DLManagedTensor>(block);
}

void bind_dlpack(py::module_& m) {
  m.def("from_dlpack_capsule", [](py::capsule capsule) {
    const auto take = [&]<class Managed>(Managed* managed) {
      const Array copied = copy_of(managed->tensor);
      PyCapsule_SetName(capsule.ptr(), Managed::used_name);
      if (managed->deleter != nullptr) managed->deleter(managed);
      return copied;
    };
    if (auto* managed = tensor_in<DLManagedTensor>(capsule.ptr())) return take(managed);
    auto* managed = tensor_in<DLManagedTensorVersioned>(capsule.ptr());
    if (managed == nullptr)
      throw py::value_error("from_dlpack: the capsule holds no tensor, or one that was taken already");
    if (managed->major != 1)
      throw py::value_error("from_dlpack: the tensor is of DLPack " + std::to_string(managed->major) +
                            ", whose layout is not known here");
    return take(managed);
  });
}

}  // namespace tessera::python
