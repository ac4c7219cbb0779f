// The numbers of a packed netCDF variable.
#pragma once
#include <tessera/io.hpp>

#include <optional>
#include <string>

namespace tessera::io {

// stored * scale_factor + add_offset, and NaN for _FillValue, missing_value and numbers outside the valid
// range, as the variable's attributes say; ops on `stored`, which is returned if there are none. IoError on
// this rank alone.
Array netcdf_unpacked(const std::string& call, const std::string& path, const std::string& variable,
                      const Array& stored);

// A variable that is stored with fewer elements than its dims have, since another variable has made a shared
// unlimited dim longer: the shape, and the number that stands where nothing is stored.
struct NetcdfLonger {
  Shape shape;
  double fill = 0;
};
// nullopt for variables with all of their elements, and for datasets without named dims.
std::optional<NetcdfLonger> netcdf_longer(const std::string& call, const std::string& path,
                                          const std::string& variable, const FileInfo& stored);

}  // namespace tessera::io
