// A variable of a file that holds no other, without the library's types; also in builds without HDF5.
#pragma once
#include <tessera/dtype.hpp>

#include <string>
#include <vector>

namespace tessera::io {

// DtypeError for dtypes that netCDF does not have.
void check_netcdf_dtype(const std::string& variable, Dtype);
// Names the dims of a dataset that is there; on one rank, IoError.
void name_dims(const std::string& call, const std::string& path, const std::string& variable,
               const std::vector<std::string>& dims);

}  // namespace tessera::io
