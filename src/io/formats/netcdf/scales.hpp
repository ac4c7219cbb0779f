// HDF5's dimension scales, by which netCDF-4 names dimensions. For the rank that has the file open.
#pragma once
#include <tessera/io/netcdf.hpp>

#include <map>
#include <string>
#include <vector>

#include "io/hdf5/library.hpp"

namespace tessera::io {

// The variables by their paths without the first '/'. Dimensions that are no variables are left out.
std::map<std::string, NetcdfVariable> read_variables(const Hdf5Source&, hid_t file);
std::map<std::string, NetcdfDim> read_dims(const Hdf5Source&, hid_t file);

// Each variable's dims become references to scales, which are made where there is no variable of that name.
void write_scales(const Hdf5Source&, hid_t file, const std::map<std::string, std::vector<std::string>>& dims);
// _FillValue has the variable's own dtype.
void write_fill_attribute(const Hdf5Source&, hid_t file, Dtype, double fill);

}  // namespace tessera::io
