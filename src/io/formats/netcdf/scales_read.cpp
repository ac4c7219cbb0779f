#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/text.hpp"
#include "io/formats/netcdf/scales.hpp"

namespace tessera::io {
namespace {

constexpr const char* no_variable = "This is a netCDF dimension but not a netCDF variable.";

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// A text attribute of fixed length, as HDF5's dimension-scale library writes it; "" if there is none.
std::string text_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return "";
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose),
      type(H5Aget_type(attribute), H5Tclose);
  if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0) return "";
  std::string text(std::min<std::size_t>(H5Tget_size(type), 4096), '\0');
  const Handle memory(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(memory, text.size());
  if (H5Aread(attribute, memory, text.data()) < 0) return "";
  return text.substr(0, text.find('\0'));
}
bool is_scale(hid_t dataset) { return text_attribute(dataset, "CLASS") == "DIMENSION_SCALE"; }

std::string path_of_object(hid_t file, hobj_ref_t reference) {
  const Handle object(H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, &reference), H5Oclose);
  if (!object.ok()) return "";
  std::string name(1024, '\0');
  const auto length = H5Iget_name(object, name.data(), name.size());
  name.resize(static_cast<std::size_t>(std::clamp<ssize_t>(length, 0, 1023)));
  return name;
}

// The path of the first scale of each dim.
std::vector<std::string> scales_in_list(hid_t file, hid_t dataset, std::size_t ndim) {
  std::vector<std::string> names(ndim);
  if (ndim == 0 || H5Aexists(dataset, "DIMENSION_LIST") <= 0) return names;
  const Handle attribute(H5Aopen(dataset, "DIMENSION_LIST", H5P_DEFAULT), H5Aclose),
      space(H5Aget_space(attribute), H5Sclose), stored(H5Aget_type(attribute), H5Tclose),
      reference(H5Tcopy(H5T_STD_REF_OBJ), H5Tclose), type(H5Tvlen_create(reference), H5Tclose);
  const bool is_list =
      H5Tget_class(stored) == H5T_VLEN && H5Sget_simple_extent_npoints(space) == static_cast<hssize_t>(ndim);
  std::vector<hvl_t> lists(ndim);
  if (!is_list || H5Aread(attribute, type, lists.data()) < 0) return names;
  for (std::size_t d = 0; d < ndim; ++d)
    if (lists[d].len > 0) names[d] = path_of_object(file, *static_cast<hobj_ref_t*>(lists[d].p));
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, lists.data());
  return names;
}

using Visit = std::function<void(const std::string& name, hid_t dataset)>;
void for_each_dataset(hid_t file, const Visit& visit) {
  for (const auto& path : names_of_datasets(file)) {
    const std::string name = path.substr(1);
    const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset.ok()) visit(name, dataset);
  }
}

std::vector<std::string> dims_of(hid_t file, const std::string& name, hid_t dataset, const Shape& shape,
                                 std::map<std::int64_t, std::string>& phony) {
  auto dims = scales_in_list(file, dataset, shape.size());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    dims[d] = base_of(dims[d]);
    if (!dims[d].empty()) continue;
    if (d == 0 && is_scale(dataset)) {
      dims[d] = base_of(name);
      continue;
    }
    dims[d] = phony.emplace(shape[d], "phony_dim_" + std::to_string(phony.size())).first->second;
  }
  return dims;
}

// Paths of the scales of a variable's dims; a scale that is a variable itself has its own path first.
std::vector<std::string> scales_of(hid_t file, const std::string& name, hid_t dataset, std::size_t ndim) {
  auto scales = scales_in_list(file, dataset, ndim);
  if (ndim > 0 && scales[0].empty() && is_scale(dataset)) scales[0] = "/" + name;
  return scales;
}

// The length of each scale's dim: an unlimited dim is as long as its longest variable.
std::map<std::string, std::int64_t> lengths_of_scales(const Hdf5Source& source, hid_t file) {
  std::map<std::string, std::int64_t> lengths;
  for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (H5Sget_simple_extent_ndims(space) <= 0) return;
    const Shape shape = shape_of_dataset(source, dataset);
    const auto scales = scales_of(file, name, dataset, shape.size());
    for (std::size_t d = 0; d < scales.size(); ++d)
      if (!scales[d].empty()) lengths[scales[d]] = std::max(lengths[scales[d]], shape[d]);
  });
  return lengths;
}

}  // namespace

std::map<std::string, NetcdfVariable> read_variables(const Hdf5Source& source, hid_t file) {
  std::map<std::string, NetcdfVariable> found;
  std::map<std::int64_t, std::string> phony;
  const auto lengths = lengths_of_scales(source, file);
  for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
    if (text_attribute(dataset, "NAME").starts_with(no_variable)) return;
    try {
      Shape shape = shape_of_dataset(source, dataset);
      const Dtype dtype = dtype_of_dataset(source, dataset);
      auto dims = dims_of(file, name, dataset, shape, phony);
      const auto scales = scales_of(file, name, dataset, shape.size());
      for (std::size_t d = 0; d < scales.size(); ++d)
        if (const auto scale = lengths.find(scales[d]); scale != lengths.end()) shape[d] = scale->second;
      found.emplace(name, NetcdfVariable{{shape, dtype, "netcdf variable " + name}, std::move(dims)});
    } catch (const IoError&) {  // texts, or other types that tessera does not read
    }
  });
  return found;
}

std::map<std::string, NetcdfDim> read_dims(const Hdf5Source& source, hid_t file) {
  std::map<std::string, NetcdfDim> found;
  std::map<std::int64_t, std::string> phony;
  for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
    const Handle space(H5Dget_space(dataset), H5Sclose);
    const int ndim = H5Sget_simple_extent_ndims(space);
    if (ndim <= 0) return;
    std::vector<hsize_t> extents(static_cast<std::size_t>(ndim)), most(static_cast<std::size_t>(ndim));
    H5Sget_simple_extent_dims(space, extents.data(), most.data());
    const Shape shape = shape_of_dataset(source, dataset);
    const auto dims = dims_of(file, name, dataset, shape, phony);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      NetcdfDim& dim = found[dims[d]];
      dim.size = std::max(dim.size, shape[d]);  // variables may be shorter along an unlimited dim
      dim.is_unlimited = dim.is_unlimited || most[d] == H5S_UNLIMITED;
    }
  });
  return found;
}

}  // namespace tessera::io
