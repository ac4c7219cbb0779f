// The HDF5 library in C++: identifiers that close themselves, its types for ours, its reasons as texts.
#pragma once
#include <hdf5.h>

#include <tessera/array/index.hpp>
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <string>
#include <utility>
#include <vector>

namespace tessera::io {

// An HDF5 identifier that closes itself.
class Handle {
 public:
  Handle() = default;
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_), std::swap(close_, other.close_);
    return *this;
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  // Before its time, to see whether that worked.
  bool close() {
    const hid_t id = std::exchange(id_, -1);
    return id < 0 || close_(id) >= 0;
  }
  operator hid_t() const { return id_; }
  bool ok() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
  herr_t (*close_)(hid_t) = nullptr;
};

// The library prints its error stack to stderr by itself; what matters of it is put into our message.
struct Quiet {
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &print_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, print_, data_); }
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
};
std::string hdf5_reason();

// What is asked of which file: for messages, and for opening.
struct Hdf5Source {
  std::string call, path, dataset;
  bool other_files = false;
  std::vector<Slice> slices = {};
  [[noreturn]] void fail(const std::string& facts, const std::string& mend) const;
};

// This machine's type for a dtype; bool and complex as h5py has them.
Handle hdf5_memory_type(Dtype);
Dtype dtype_of_dataset(const Hdf5Source&, hid_t dataset);
Shape shape_of_dataset(const Hdf5Source&, hid_t dataset);

}  // namespace tessera::io
