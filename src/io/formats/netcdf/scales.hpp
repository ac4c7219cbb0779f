// HDF5's dimension scales, by which netCDF-4 names dimensions. Called on the rank that has the file open.
#pragma once
#include <tessera/io/netcdf.hpp>

#include <map>
#include <string>
#include <vector>

#include "io/hdf5/library.hpp"

namespace tessera::io {

// Variables by their paths without the leading '/'. Dimensions that are not variables are left out.
std::map<std::string, NetcdfVariable> read_variables(const Hdf5Source&, hid_t file);
std::map<std::string, NetcdfDim> read_dims(const Hdf5Source&, hid_t file);

// Turns each variable's dims into references to scales; scales without a variable of that name are created.
void write_scales(const Hdf5Source&, hid_t file, const std::map<std::string, std::vector<std::string>>& dims);
// _FillValue must have the variable's own dtype.
void write_fill_attribute(const Hdf5Source&, hid_t file, Dtype, double fill);

}  // namespace tessera::io
