// HDF5's dimension scales, by which netCDF-4 names dimensions. Called on the rank that has the file open.
#pragma once
#include <tessera/io/netcdf.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "io/hdf5/library.hpp"

namespace tessera::io {

// A use of a scale, as its REFERENCE_LIST has them: a variable and one of its dims.
struct ScaleUse {
  hobj_ref_t variable = 0;
  std::int32_t dim = -1;

  static Handle type() {
    Handle type(H5Tcreate(H5T_COMPOUND, sizeof(ScaleUse)), H5Tclose);
    H5Tinsert(type, "dataset", offsetof(ScaleUse, variable), H5T_STD_REF_OBJ);
    H5Tinsert(type, "dimension", offsetof(ScaleUse, dim), H5T_NATIVE_INT32);
    return type;
  }
};

// Variables by their paths without the leading '/'. Dimensions that are not variables are left out.
std::map<std::string, NetcdfVariable> read_variables(const Hdf5Source&, hid_t file);
std::map<std::string, NetcdfDim> read_dims(const Hdf5Source&, hid_t file);

// Turns each variable's dims into references to scales; scales without a variable of that name are created.
void write_scales(const Hdf5Source&, hid_t file, const std::map<std::string, std::vector<std::string>>& dims);
// _FillValue must have the variable's own dtype.
void write_fill_attribute(const Hdf5Source&, hid_t file, Dtype, double fill);

}  // namespace tessera::io
