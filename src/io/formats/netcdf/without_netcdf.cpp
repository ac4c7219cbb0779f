// Compiled instead of the netCDF sources if the build found no HDF5.
#include <tessera/io/netcdf.hpp>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/formats/netcdf/new_variable.hpp"
#include "io/formats/netcdf/unpack.hpp"

namespace tessera::io {
namespace {

[[noreturn]] void refuse(const char* name, const std::string& path, std::source_location where) {
  const Call call(name, where);
  throw IoError(call_text() + ": " + in_quotes(path) +
                " needs HDF5, and this build of tessera was made without HDF5; build with HDF5 "
                "(-D TESSERA_HDF5=ON says what is missing), or use Zarr");
}

}  // namespace

// Only an HDF5 file that was opened has a packed variable.
Array netcdf_unpacked(const std::string&, const std::string&, const std::string&, const Array& stored) {
  return stored;
}

std::optional<NetcdfLonger> netcdf_longer(const std::string&, const std::string&, const std::string&,
                                          const FileInfo&) {
  return std::nullopt;
}

void check_netcdf_dtype(const std::string&, Dtype) {}
void name_dims(const std::string& call, const std::string& path, const std::string&,
               const std::vector<std::string>&) {
  throw IoError(call + ": " + in_quotes(path) + " needs HDF5, and this build of tessera was made without it");
}

std::map<std::string, NetcdfVariable> netcdf_variables(const std::string& path, std::source_location where) {
  refuse("netcdf_variables", path, where);
}
std::map<std::string, NetcdfDim> netcdf_dims(const std::string& path, std::source_location where) {
  refuse("netcdf_dims", path, where);
}
std::map<std::string, Attribute> netcdf_attributes(const std::string& path, const std::string&,
                                                   std::source_location where) {
  refuse("netcdf_attributes", path, where);
}
Array load_netcdf(const std::string& path, const std::string&, const Sharding&, const NetcdfLoadOptions&,
                  std::source_location where) {
  refuse("load_netcdf", path, where);
}
Array load_netcdf(const std::string& path, const std::string&, const NetcdfLoadOptions&,
                  std::source_location where) {
  refuse("load_netcdf", path, where);
}
void save_netcdf(const std::string& path, const std::map<std::string, Array>&,
                 const std::map<std::string, std::vector<std::string>>&, std::source_location where) {
  refuse("save_netcdf", path, where);
}

// The constructor always throws, so the other functions are never called.
struct Netcdf::State {};
Netcdf::Netcdf(const std::string& path, Hdf5WriterOptions, std::source_location where) {
  refuse("Netcdf", path, where);
}
Netcdf::~Netcdf() = default;
Netcdf::Netcdf(Netcdf&&) noexcept = default;
Netcdf::State& Netcdf::open_state() const { return *state_; }
void Netcdf::write(const std::string&, const Array&, const std::vector<std::string>&,
                   const NetcdfVariableOptions&, std::source_location) {}
void Netcdf::append(const std::string&, const Array&, const std::vector<std::string>&,
                    const NetcdfVariableOptions&, std::source_location) {}
void Netcdf::attribute(const std::string&, const std::string&, const Attribute&, std::source_location) {}
void Netcdf::close(std::source_location) {}

}  // namespace tessera::io
