#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/text.hpp"
#include "io/formats/netcdf/scales.hpp"
#include "io/hdf5/places.hpp"

namespace tessera::io {
namespace {

class Scales {
 public:
  Scales(const Hdf5Source& source, hid_t file) : source_(source), file_(file) {}

  void check(bool ok, const std::string& what) const {
    if (!ok) source_.fail("cannot get " + what + ": " + hdf5_reason(), "free some space");
  }
  Handle open(const std::string& name) const {
    Handle dataset(H5Dopen2(file_, absolute_name(name).c_str(), H5P_DEFAULT), H5Dclose);
    check(dataset.ok(), "the dimensions of " + in_quotes(name));
    return dataset;
  }
  hobj_ref_t reference(const std::string& name) const {
    hobj_ref_t reference = 0;
    check(H5Rcreate(&reference, file_, absolute_name(name).c_str(), H5R_OBJECT, -1) >= 0,
          "a reference to " + in_quotes(name));
    return reference;
  }
  void put(hid_t object, const char* name, hid_t type, hid_t space, const void* data) const {
    if (H5Aexists(object, name) > 0) H5Adelete(object, name);
    const Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    check(attribute.ok() && H5Awrite(attribute, type, data) >= 0, "the attribute " + in_quotes(name));
  }
  void put_text(hid_t object, const char* name, const std::string& text) const {
    const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
    H5Tset_size(type, text.size() + 1);
    put(object, name, type, space, text.c_str());
  }

  // Creates a scale for a dimension without a variable: a dataset of its extent without values.
  void make_scale(const std::string& dim, hsize_t extent, bool is_unlimited, std::int32_t number) const {
    std::string label = dim;
    if (!hdf5_exists(file_, absolute_name(dim))) {
      const hsize_t most = is_unlimited ? H5S_UNLIMITED : extent, chunk = 1024;
      const Handle space(H5Screate_simple(1, &extent, &most), H5Sclose),
          creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
      if (is_unlimited) H5Pset_chunk(creation, 1, &chunk);
      const Handle made(H5Dcreate2(file_, absolute_name(dim).c_str(), H5T_IEEE_F32BE, space, H5P_DEFAULT,
                                   creation, H5P_DEFAULT),
                        H5Dclose);
      check(made.ok(), "the dimension " + in_quotes(dim));
      char text[80];
      std::snprintf(text, sizeof text, "This is a netCDF dimension but not a netCDF variable.%10lld",
                    static_cast<long long>(extent));
      label = text;
    }
    const Handle dataset = open(dim), space(H5Screate(H5S_SCALAR), H5Sclose);
    put_text(dataset, "CLASS", "DIMENSION_SCALE");
    put_text(dataset, "NAME", label);
    put(dataset, "_Netcdf4Dimid", H5T_NATIVE_INT32, space, &number);
  }

  void attach(const std::string& variable, const std::vector<std::string>& dims) const {
    std::vector<hobj_ref_t> references;
    for (const auto& dim : dims) references.push_back(reference(dim));
    std::vector<hvl_t> lists;
    for (auto& one : references) lists.push_back({1, &one});
    const hsize_t extent = dims.size();
    const Handle type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose),
        space(H5Screate_simple(1, &extent, nullptr), H5Sclose), dataset = open(variable);
    put(dataset, "DIMENSION_LIST", type, space, lists.data());
  }
  void list_uses(const std::string& dim, const std::vector<ScaleUse>& uses) const {
    const Handle type = ScaleUse::type();
    const hsize_t extent = uses.size();
    const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose), dataset = open(dim);
    put(dataset, "REFERENCE_LIST", type, space, uses.data());
  }

  // The extent of a variable's dim, and whether it can grow.
  std::pair<hsize_t, bool> extent_of(const std::string& variable, std::size_t dim) const {
    const Handle dataset = open(variable), space(H5Dget_space(dataset), H5Sclose);
    const auto ndim = static_cast<std::size_t>(std::max(0, H5Sget_simple_extent_ndims(space)));
    std::vector<hsize_t> extents(ndim), most(ndim);
    H5Sget_simple_extent_dims(space, extents.data(), most.data());
    return {extents.at(dim), most.at(dim) == H5S_UNLIMITED};
  }

 private:
  const Hdf5Source& source_;
  hid_t file_;
};

bool is_coordinate(const std::string& variable, const std::vector<std::string>& dims) {
  return !dims.empty() && dims[0] == variable;
}

}  // namespace

void write_scales(const Hdf5Source& source, hid_t file,
                  const std::map<std::string, std::vector<std::string>>& dims) {
  const Scales scales(source, file);
  std::map<std::string, std::pair<hsize_t, bool>> extents;
  for (const auto& [variable, names] : dims)
    for (std::size_t d = 0; d < names.size(); ++d) {
      auto& [extent, is_unlimited] = extents[names[d]];
      const auto found = scales.extent_of(variable, d);
      extent = std::max(extent, found.first), is_unlimited = is_unlimited || found.second;
    }
  std::int32_t number = 0;
  for (const auto& [dim, extent] : extents) scales.make_scale(dim, extent.first, extent.second, number++);
  std::map<std::string, std::vector<ScaleUse>> uses;
  for (const auto& [variable, names] : dims) {
    if (names.empty() || is_coordinate(variable, names)) continue;
    scales.attach(variable, names);
    for (std::size_t d = 0; d < names.size(); ++d)
      uses[names[d]].push_back({scales.reference(variable), static_cast<std::int32_t>(d)});
  }
  for (const auto& [dim, list] : uses) scales.list_uses(dim, list);
}

void write_fill_attribute(const Hdf5Source& source, hid_t file, Dtype dtype, double fill) {
  const Scales scales(source, file);
  std::byte stored[16] = {};
  std::memcpy(stored, &fill, sizeof fill);
  scales.check(H5Tconvert(H5T_NATIVE_DOUBLE, hdf5_memory_type(dtype), 1, stored, nullptr, H5P_DEFAULT) >= 0,
               "a fill value");
  const hsize_t one = 1;
  const Handle space(H5Screate_simple(1, &one, nullptr), H5Sclose), dataset = scales.open(source.dataset);
  scales.put(dataset, "_FillValue", hdf5_memory_type(dtype), space, stored);
}

}  // namespace tessera::io
