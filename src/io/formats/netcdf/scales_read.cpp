#include <algorithm>
#include <cstdint>
#include <functional>

#include "base/text.hpp"
#include "io/formats/netcdf/scales.hpp"

namespace tessera::io {
namespace {

constexpr hssize_t most_uses = 1 << 24;  // of a scale: more stand in damaged files only
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

using Visit = std::function<void(const std::string& name, hid_t dataset)>;
void for_each_dataset(hid_t file, const Visit& visit) {
  for (const auto& path : names_of_datasets(file)) {
    const std::string name = path.substr(1);
    const Handle dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    if (dataset.ok()) visit(name, dataset);
  }
}

// Integers of an attribute; none if it has another type, or more than `most` of them.
std::vector<std::int32_t> integers_attribute(hid_t object, const char* name, std::size_t most) {
  if (H5Aexists(object, name) <= 0) return {};
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT), H5Aclose),
      space(H5Aget_space(attribute), H5Sclose), stored(H5Aget_type(attribute), H5Tclose);
  const hssize_t count = H5Sget_simple_extent_npoints(space);
  if (H5Tget_class(stored) != H5T_INTEGER || count <= 0 || count > static_cast<hssize_t>(most)) return {};
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  if (H5Aread(attribute, H5T_NATIVE_INT32, values.data()) < 0) return {};
  return values;
}

struct Extents {
  std::vector<hsize_t> now, most;
  explicit Extents(hid_t dataset) {
    const Handle space(H5Dget_space(dataset), H5Sclose);
    const int ndim = std::max(0, H5Sget_simple_extent_ndims(space));
    now.resize(static_cast<std::size_t>(ndim)), most.resize(now.size());
    if (ndim > 0) H5Sget_simple_extent_dims(space, now.data(), most.data());
  }
  // The length of a dim; one that may grow has none, since variables may be shorter than it.
  hsize_t length(std::size_t d) const { return most[d] == H5S_UNLIMITED ? H5S_UNLIMITED : now[d]; }
};

// The paths of the scales of dims. Each scale lists its uses in REFERENCE_LIST; DIMENSION_LIST of the
// variables says the same from a global heap, in whose damage HDF5 1.10 crashes or never ends. Where uses are
// not listed (copies by other tools lose them), a dim has the only scale of its length, if there is one. A
// coordinate variable of several dims is a scale itself and has no scales: netCDF-C keeps the numbers of its
// dims.
class ScalesOfDims {
 public:
  explicit ScalesOfDims(hid_t file) : file_(file) {
    const Handle type = ScaleUse::type();
    for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
      if (const auto number = integers_attribute(dataset, "_Netcdf4Dimid", 1); !number.empty())
        numbered_.emplace(number[0], "/" + name);
      if (const Extents extents(dataset); is_scale(dataset) && extents.now.size() == 1)
        of_length_[extents.length(0)].push_back("/" + name);
      if (H5Aexists(dataset, "REFERENCE_LIST") <= 0) return;
      const Handle attribute(H5Aopen(dataset, "REFERENCE_LIST", H5P_DEFAULT), H5Aclose),
          space(H5Aget_space(attribute), H5Sclose), stored(H5Aget_type(attribute), H5Tclose);
      const hssize_t count = H5Sget_simple_extent_npoints(space);
      if (H5Tget_class(stored) != H5T_COMPOUND || count <= 0 || count > most_uses) return;
      std::vector<ScaleUse> uses(static_cast<std::size_t>(count));
      if (H5Aread(attribute, type, uses.data()) < 0) return;
      for (const auto& use : uses) used_.emplace(std::pair{use.variable, use.dim}, "/" + name);
    });
  }

  // A path for each dim of a variable, "" where there is none.
  std::vector<std::string> paths(const std::string& name, hid_t dataset, std::size_t ndim) const {
    std::vector<std::string> found(ndim);
    const auto numbers = integers_attribute(dataset, "_Netcdf4Coordinates", ndim);
    hobj_ref_t variable = 0;
    if (H5Rcreate(&variable, file_, name.c_str(), H5R_OBJECT, -1) < 0) return found;
    const bool has_scales = H5Aexists(dataset, "DIMENSION_LIST") > 0;
    const Extents extents(dataset);
    for (std::size_t d = 0; d < ndim; ++d) {
      const auto alike = of_length_.find(extents.length(d));
      const auto used = used_.find({variable, static_cast<std::int32_t>(d)});
      const auto numbered = d < numbers.size() ? numbered_.find(numbers[d]) : numbered_.end();
      if (used != used_.end())
        found[d] = used->second;
      else if (numbered != numbered_.end())
        found[d] = numbered->second;
      else if (has_scales && alike != of_length_.end() && alike->second.size() == 1)
        found[d] = alike->second[0];
    }
    return found;
  }

 private:
  hid_t file_;
  std::map<std::pair<hobj_ref_t, std::int32_t>, std::string> used_;
  std::map<std::int32_t, std::string> numbered_;
  std::map<hsize_t, std::vector<std::string>> of_length_;
};

std::vector<std::string> dims_of(const ScalesOfDims& scales, const std::string& name, hid_t dataset,
                                 const Shape& shape, std::map<std::int64_t, std::string>& phony) {
  auto dims = scales.paths(name, dataset, shape.size());
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
std::vector<std::string> scales_of(const ScalesOfDims& scales, const std::string& name, hid_t dataset,
                                   std::size_t ndim) {
  auto paths = scales.paths(name, dataset, ndim);
  if (ndim > 0 && paths[0].empty() && is_scale(dataset)) paths[0] = "/" + name;
  return paths;
}

// The length of each scale's dim: an unlimited dim is as long as its longest variable.
std::map<std::string, std::int64_t> lengths_of_scales(const ScalesOfDims& scales, const Hdf5Source& source,
                                                      hid_t file) {
  std::map<std::string, std::int64_t> lengths;
  for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
    const Handle space(H5Dget_space(dataset), H5Sclose);
    if (H5Sget_simple_extent_ndims(space) <= 0) return;
    const Shape shape = shape_of_dataset(source, dataset);
    const auto paths = scales_of(scales, name, dataset, shape.size());
    for (std::size_t d = 0; d < paths.size(); ++d)
      if (!paths[d].empty()) lengths[paths[d]] = std::max(lengths[paths[d]], shape[d]);
  });
  return lengths;
}

}  // namespace

std::map<std::string, NetcdfVariable> read_variables(const Hdf5Source& source, hid_t file) {
  std::map<std::string, NetcdfVariable> found;
  std::map<std::int64_t, std::string> phony;
  const ScalesOfDims scales(file);
  const auto lengths = lengths_of_scales(scales, source, file);
  for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
    if (text_attribute(dataset, "NAME").starts_with(no_variable)) return;
    try {
      Shape shape = shape_of_dataset(source, dataset);
      const Dtype dtype = dtype_of_dataset(source, dataset);
      auto dims = dims_of(scales, name, dataset, shape, phony);
      const auto paths = scales_of(scales, name, dataset, shape.size());
      for (std::size_t d = 0; d < paths.size(); ++d)
        if (const auto scale = lengths.find(paths[d]); scale != lengths.end()) shape[d] = scale->second;
      found.emplace(name, NetcdfVariable{{shape, dtype, "netcdf variable " + name}, std::move(dims)});
    } catch (const IoError&) {  // texts, or other types that tessera does not read
    }
  });
  return found;
}

std::map<std::string, NetcdfDim> read_dims(const Hdf5Source& source, hid_t file) {
  std::map<std::string, NetcdfDim> found;
  std::map<std::int64_t, std::string> phony;
  const ScalesOfDims scales(file);
  for_each_dataset(file, [&](const std::string& name, hid_t dataset) {
    const Extents extents(dataset);
    if (extents.now.empty()) return;
    const Shape shape = shape_of_dataset(source, dataset);
    const auto dims = dims_of(scales, name, dataset, shape, phony);
    for (std::size_t d = 0; d < dims.size(); ++d) {
      NetcdfDim& dim = found[dims[d]];
      dim.size = std::max(dim.size, shape[d]);  // variables may be shorter along an unlimited dim
      dim.is_unlimited = dim.is_unlimited || extents.most[d] == H5S_UNLIMITED;
    }
  });
  return found;
}

}  // namespace tessera::io
