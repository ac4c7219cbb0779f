// Compiled in place of hdf5.cpp where the build found no HDF5.
#include <tessera/io.hpp>

#include "base/call.hpp"
#include "base/text.hpp"

namespace tessera::io {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& path, std::source_location where) {
  const Call call(name, where);
  throw IoError(
      call_text() + ": " + quoted(path) +
      " needs HDF5, and this build of tessera was made without HDF5; save .npy or .npz, or build with HDF5 "
      "(-D TESSERA_HDF5=ON says what is missing)");
}

}  // namespace

FileInfo hdf5_info(const std::string& path, const std::string&, std::source_location where) {
  refuse("hdf5_info", path, where);
}
std::vector<std::string> hdf5_datasets(const std::string& path, std::source_location where) {
  refuse("hdf5_datasets", path, where);
}
Array load_hdf5(const std::string& path, const std::string&, const Sharding&, Hdf5LoadOptions,
                std::source_location where) {
  refuse("load_hdf5", path, where);
}
Array load_hdf5(const std::string& path, const std::string&, Hdf5LoadOptions, std::source_location where) {
  refuse("load_hdf5", path, where);
}
void save_hdf5(const std::string& path, const std::string&, const Array&, Hdf5SaveOptions,
               std::source_location where) {
  refuse("save_hdf5", path, where);
}

}  // namespace tessera::io
