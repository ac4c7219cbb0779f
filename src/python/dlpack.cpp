// DLPack, the exchange of arrays in memory between libraries (dmlc/dlpack, versions 0.8 and 1.0), in both
// directions. NumPy's own functions for it support no bools before 2.0.
#include <tessera/dlpack.hpp>
#include <tessera/error.hpp>

#include <string>

#include "python/convert.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

using dlpack::ManagedTensor, dlpack::ManagedTensorVersioned;

// The names of a capsule, before and after a consumer has taken its tensor over.
template <class Managed> constexpr bool is_versioned = detail::has_dlpack_flags<Managed>;
template <class Managed> constexpr const char* offered =
    is_versioned<Managed> ? "dltensor_versioned" : "dltensor";
template <class Managed> constexpr const char* used =
    is_versioned<Managed> ? "used_dltensor_versioned" : "used_dltensor";
constexpr std::uint64_t is_copied_flag = 2;

// The tensor in a capsule; nullptr after a consumer has taken it over, which renames the capsule.
template <class Managed> Managed* tensor_in(PyObject* capsule) {
  if (PyCapsule_IsValid(capsule, offered<Managed>) == 0) return nullptr;
  return static_cast<Managed*>(PyCapsule_GetPointer(capsule, offered<Managed>));
}
template <class Managed> py::capsule capsule_of(const Block& block) {
  auto* tensor = detail::managed_tensor<Managed>(block.data, block.shape, block.dtype, block.keeps,
                                                 block.read_only ? dlpack::flag_read_only : is_copied_flag);
  return py::capsule(tensor, offered<Managed>, [](PyObject* capsule) {
    if (auto* unused = tensor_in<Managed>(capsule)) unused->deleter(unused);
  });
}

}  // namespace

py::capsule dlpack_capsule(const Block& block, bool versioned) {
  if (versioned) return capsule_of<ManagedTensorVersioned>(block);
  if (block.read_only) throw InternalError("a capsule that may be written, of memory that may not");
  return capsule_of<ManagedTensor>(block);
}

void bind_dlpack(py::module_& m) {
  m.def("from_dlpack_capsule", [](py::capsule capsule) {
    const auto take = [&]<class Managed>(Managed* managed) {
      const HostArray host = from_dlpack(managed, here());
      PyCapsule_SetName(capsule.ptr(), used<Managed>);
      return array(host, here());  // a copy: the owner may write to its memory
    };
    if (auto* managed = tensor_in<ManagedTensor>(capsule.ptr())) return take(managed);
    auto* managed = tensor_in<ManagedTensorVersioned>(capsule.ptr());
    if (managed == nullptr)
      throw py::value_error("from_dlpack: the capsule holds no tensor, or one that was taken already");
    return take(managed);
  });
}

}  // namespace tessera::python
