// The numbers of a packed netCDF variable.
#pragma once
#include <tessera/array.hpp>

#include <string>

namespace tessera::io {

// stored * scale_factor + add_offset, and NaN for _FillValue or missing_value, as the variable's attributes
// say; ops on `stored`, which is returned if there are none. IoError on this rank alone.
Array netcdf_unpacked(const std::string& call, const std::string& path, const std::string& variable,
                      const Array& stored);

}  // namespace tessera::io
