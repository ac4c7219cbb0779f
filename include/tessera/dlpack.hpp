/// @file
/// DLPack: exchanges blocks of memory with other libraries without a copy. The structs are those of DLPack
/// 1.0, defined here again; a program that includes <dlpack/dlpack.h> can request its own types:
///
///   DLManagedTensor* tensor = tessera::to_dlpack<DLManagedTensor>(x);
///
/// Not part of tessera.hpp.
#pragma once
#include <cstdint>
#include <memory>
#include <source_location>
#include <type_traits>

#include <tessera/array/handle.hpp>
#include <tessera/array/host.hpp>

namespace tessera {

/// The layout of <dlpack/dlpack.h>, word for word.
namespace dlpack {

/// The device of the memory: type 1 is a CPU.
struct Device {
  std::int32_t device_type;  ///< kDLCPU is 1
  std::int32_t device_id;    ///< 0
};
/// An element type: code 0 int, 1 unsigned, 2 float, 5 complex, 6 bool.
struct DataType {
  std::uint8_t code;    ///< kind of number
  std::uint8_t bits;    ///< bits of one element
  std::uint16_t lanes;  ///< 1
};
/// A block with extents and strides.
struct Tensor {
  void* data;                 ///< start of the memory, without byte_offset
  Device device;              ///< the device that owns the memory
  std::int32_t ndim;          ///< number of dims
  DataType dtype;             ///< element type
  std::int64_t* shape;        ///< extents
  std::int64_t* strides;      ///< in elements; null: row-major
  std::uint64_t byte_offset;  ///< offset of the first element
};
/// The version of a ManagedTensorVersioned; flags exist since 1.0.
struct Version {
  std::uint32_t major;  ///< a different one means a different layout
  std::uint32_t minor;  ///< additions without a change of layout
};
constexpr std::uint64_t flag_read_only = 1;  ///< the reader must not write
/// A tensor that its reader releases: DLManagedTensor, which cannot be marked read-only.
struct ManagedTensor {
  Tensor dl_tensor;                 ///< the block
  void* manager_ctx;                ///< for the owner
  void (*deleter)(ManagedTensor*);  ///< called by the reader when it is done; may be null
};

/// The same with flags, since DLPack 1.0: DLManagedTensorVersioned.
struct ManagedTensorVersioned {
  Version version;                           ///< 1.0
  void* manager_ctx;                         ///< for the owner
  void (*deleter)(ManagedTensorVersioned*);  ///< called by the reader when it is done; may be null
  std::uint64_t flags;                       ///< flag_read_only
  Tensor dl_tensor;                          ///< the block
};

}  // namespace dlpack

namespace detail {
template <class Managed> Managed* export_dlpack(const Array& x, std::source_location where);
// A tensor over row-major memory, which `memory` keeps until the reader calls the deleter. Flags are left out
// of a ManagedTensor.
template <class Managed> Managed* managed_tensor(const void* data, const Shape&, Dtype,
                                                 std::shared_ptr<const void> memory, std::uint64_t flags);
template <class Managed> HostArray import_dlpack(Managed*, std::source_location where);
template <class T>
concept has_dlpack_flags = requires(T tensor) {
  tensor.version;
  tensor.flags;
};
template <class T> using ManagedLike =
    std::conditional_t<has_dlpack_flags<T>, dlpack::ManagedTensorVersioned, dlpack::ManagedTensor>;
}  // namespace detail

/// This rank's block of x as a tensor, without a copy; a rank without one gets a tensor with extents of 0.
/// Its memory is kept unchanged until its deleter is called, on any thread, whatever happens to x. Arrays are
/// immutable, so the reader must not write: the flags of T = DLManagedTensorVersioned say so. Computes x.
/// Collective over the ranks of x.
template <class T = dlpack::ManagedTensor>
[[nodiscard]] T* to_dlpack(const Array& x, std::source_location where = std::source_location::current()) {
  using Own = detail::ManagedLike<T>;
  static_assert(sizeof(T) == sizeof(Own), "to_dlpack gives a DLManagedTensor, or a DLManagedTensorVersioned");
  return reinterpret_cast<T*>(detail::export_dlpack<Own>(x, where));
}

/// The memory of a tensor. Dense row-major memory is neither copied nor written, and its deleter is called
/// when it is no longer used; strided memory is copied and its deleter called at once. To make an array:
/// `array(from_dlpack(tensor))` if all ranks hold the same, make_array_from_process_local_data if each holds
/// its block. Not collective. ArgumentError: null, memory not accessible to the CPU, or a newer layout of
/// DLPack than 1; DtypeError: an element type that tessera does not have.
template <class T>
[[nodiscard]] HostArray from_dlpack(T* tensor, std::source_location where = std::source_location::current()) {
  using Own = detail::ManagedLike<T>;
  static_assert(sizeof(T) == sizeof(Own),
                "from_dlpack takes a DLManagedTensor, or a DLManagedTensorVersioned");
  return detail::import_dlpack(reinterpret_cast<Own*>(tensor), where);
}

}  // namespace tessera
