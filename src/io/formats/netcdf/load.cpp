// load_netcdf: reads the stored numbers through HDF5 and applies their meaning under the CF conventions.
#include <tessera/io/netcdf.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <limits>
#include <set>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/file.hpp"
#include "io/formats/netcdf/scales.hpp"
#include "io/formats/netcdf/unpack.hpp"
#include "io/hdf5/attributes.hpp"

namespace tessera::io {
namespace {

// Attributes that belong to the format itself.
const std::set<std::string> own_names = {
    "CLASS",         "NAME",          "DIMENSION_LIST", "REFERENCE_LIST",
    "_Netcdf4Dimid", "_NCProperties", "_nc3_strict",    "_Netcdf4Coordinates"};

Handle opened(const Hdf5Source& source) {
  const File file(source.call, source.path, File::Mode::read);
  refuse_netcdf3(source, file);
  Handle handle(H5Fopen(source.path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (!handle.ok())
    source.fail("cannot be opened as netCDF-4: " + hdf5_reason(),
                "check that it is a netCDF file, whole and not open for writing elsewhere");
  return handle;
}

// Unpacks lists of one: netCDF stores single numbers and non-ASCII texts so.
Attribute plain(const Attribute& attribute) {
  if (const auto* whole = std::get_if<std::vector<std::int64_t>>(&attribute);
      whole != nullptr && whole->size() == 1)
    return whole->front();
  if (const auto* list = std::get_if<std::vector<double>>(&attribute); list != nullptr && list->size() == 1)
    return list->front();
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute);
      texts != nullptr && texts->size() == 1)
    return texts->front();
  return attribute;
}
std::map<std::string, Attribute> attributes_of(const Hdf5Source& source) {
  const Quiet quiet;
  std::map<std::string, Attribute> found;
  for (const auto& [name, value] : read_attributes(source, opened(source)))
    if (!own_names.contains(name)) found.emplace(name, plain(value));
  return found;
}

struct Numbers {
  std::vector<std::int64_t> whole;
  std::vector<double> real;
};
// The numbers of an attribute that is a number or a list.
Numbers numbers_in(const std::map<std::string, Attribute>& attributes, const char* name) {
  const auto found = attributes.find(name);
  Numbers numbers;
  if (found == attributes.end()) return numbers;
  if (const auto* one = std::get_if<std::int64_t>(&found->second)) numbers.whole = {*one};
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&found->second)) numbers.whole = *list;
  if (const auto* one = std::get_if<double>(&found->second)) numbers.real = {*one};
  if (const auto* list = std::get_if<std::vector<double>>(&found->second)) numbers.real = *list;
  numbers.real.insert(numbers.real.end(), numbers.whole.begin(), numbers.whole.end());
  return numbers;
}

// True at elements that hold a missing-value marker of the attributes.
Array where_missing(const Array& stored, const std::map<std::string, Attribute>& attributes) {
  Array missing = astype(zeros_like(stored), bool_);
  for (const char* name : {"_FillValue", "missing_value"}) {
    const Numbers numbers = numbers_in(attributes, name);
    if (is_integer(stored.dtype()) && stored.dtype() != uint64)
      for (const auto number : numbers.whole) missing = logical_or(missing, astype(stored, int64) == number);
    else
      for (const auto number : numbers.real) missing = logical_or(missing, astype(stored, float64) == number);
  }
  return missing;
}

// The smallest and the largest valid stored number: valid_range, or valid_min and valid_max.
struct ValidRange {
  Numbers least, most;
};
ValidRange valid_range_in(const std::map<std::string, Attribute>& attributes) {
  const Numbers both = numbers_in(attributes, "valid_range");
  if (both.real.size() != 2)
    return {numbers_in(attributes, "valid_min"), numbers_in(attributes, "valid_max")};
  ValidRange range{{{}, {both.real[0]}}, {{}, {both.real[1]}}};
  if (both.whole.size() == 2) range = {{{both.whole[0]}, {}}, {{both.whole[1]}, {}}};
  return range;
}
bool has_number(const Numbers& numbers) { return !numbers.whole.empty() || !numbers.real.empty(); }

// `missing`, and true at elements outside the range. Integers are compared as integers, since float64 does
// not have all of int64.
Array outside(Array missing, const Array& stored, const ValidRange& range) {
  const auto mark = [&](const Numbers& limit, auto&& is_beyond) {
    if (!limit.whole.empty() && is_integer(stored.dtype()) && stored.dtype() != uint64)
      missing = logical_or(missing, is_beyond(astype(stored, int64), limit.whole[0]));
    else if (has_number(limit))
      missing = logical_or(
          missing, is_beyond(astype(stored, float64),
                             limit.real.empty() ? static_cast<double>(limit.whole[0]) : limit.real[0]));
  };
  mark(range.least, [](const Array& x, auto least) { return x < least; });
  mark(range.most, [](const Array& x, auto most) { return x > most; });
  return missing;
}

Array unpacked(const Array& stored, const std::map<std::string, Attribute>& attributes) {
  const Numbers scale = numbers_in(attributes, "scale_factor"), offset = numbers_in(attributes, "add_offset");
  const ValidRange range = valid_range_in(attributes);
  const bool has_missing = attributes.contains("_FillValue") || attributes.contains("missing_value") ||
                           has_number(range.least) || has_number(range.most);
  const bool is_packed = !scale.real.empty() || !offset.real.empty();
  Array raw = stored;
  const auto is_unsigned = attributes.find("_Unsigned");
  if (is_unsigned != attributes.end() && is_unsigned->second == Attribute(std::string("true")) &&
      is_signed_integer(raw.dtype()))
    raw = astype(raw, Dtype{raw.dtype().code + 4});
  if (!is_packed && !has_missing) return raw;
  const Dtype result = stored.dtype() == float32 ? float32 : float64;
  const Array missing = outside(where_missing(stored, attributes), raw, range);
  Array values = astype(raw, is_packed ? float64 : result);
  if (!scale.real.empty()) values = values * scale.real[0];
  if (!offset.real.empty()) values = values + offset.real[0];
  values = astype(values, result);
  return where(missing, full_like(values, std::numeric_limits<double>::quiet_NaN()), values);
}

// The fill value of elements that were never written, unless the variable has a _FillValue.
double usual_fill(Dtype dtype) {
  if (is_inexact(dtype)) return 9.9692099683868690e+36;
  if (dtype == int8) return -127;
  if (dtype == uint8) return 255;
  if (dtype == int16) return -32767;
  if (dtype == uint16) return 65535;
  if (dtype == int32) return -2147483647;
  return dtype == uint32 ? 4294967295. : 0;
}

// Whether the dataset has named dims, one of them unlimited.
bool may_be_longer(hid_t file, const std::string& variable) {
  const Handle dataset(H5Dopen2(file, variable.c_str(), H5P_DEFAULT), H5Dclose);
  if (!dataset.ok()) return false;
  const bool is_named = H5Aexists(dataset, "DIMENSION_LIST") > 0 || H5Aexists(dataset, "CLASS") > 0;
  const Handle space(H5Dget_space(dataset), H5Sclose);
  std::vector<hsize_t> extents(H5S_MAX_RANK), most(H5S_MAX_RANK);
  const int ndim = H5Sget_simple_extent_dims(space, extents.data(), most.data());
  return is_named && ndim > 0 && std::count(most.begin(), most.begin() + ndim, H5S_UNLIMITED) > 0;
}

std::string with_slash(const std::string& variable) {
  return variable.starts_with('/') ? variable : "/" + variable;
}

// The stored elements, and the fill value beyond them.
Array load_longer(const std::string& path, const std::string& variable, const NetcdfLonger& longer,
                  const std::optional<Sharding>& sharding) {
  const Hdf5LoadOptions all{.other_files = false};
  const Array stored = sharding ? load_hdf5(path, variable, *sharding, all) : load_hdf5(path, variable, all);
  std::vector<std::pair<int, int>> widths;
  for (std::size_t d = 0; d < longer.shape.size(); ++d)
    widths.emplace_back(0, static_cast<int>(longer.shape[d] - stored.shape()[d]));
  return pad(stored, widths, longer.fill);
}

Array load_stored(const std::string& path, const std::string& variable,
                  const std::optional<Sharding>& sharding, const std::vector<Slice>& slices) {
  const Hdf5LoadOptions part{.other_files = false, .slices = slices};
  // First, because all ranks agree in it whether they can read the file.
  const Array stored =
      sharding ? load_hdf5(path, variable, *sharding, part) : load_hdf5(path, variable, part);
  const auto longer = netcdf_longer(call_text(), path, variable, hdf5_info(path, variable));
  if (!longer) return stored;
  Array all = load_longer(path, variable, *longer, sharding);
  if (!slices.empty()) all = index(all, {slices.begin(), slices.end()});
  return sharding ? device_put(all, *sharding) : all;
}

Array load(const std::string& path, const std::string& variable, const std::optional<Sharding>& sharding,
           const NetcdfLoadOptions& options) {
  const Array stored = load_stored(path, variable, sharding, options.slices);
  if (!options.unpack || is_complex(stored.dtype()) || is_bool(stored.dtype())) return stored;
  return unpacked(stored, attributes_of({call_text(), path, "/" + variable}));
}

}  // namespace

Array netcdf_unpacked(const std::string& call, const std::string& path, const std::string& variable,
                      const Array& stored) {
  return unpacked(stored, attributes_of({call, path, with_slash(variable)}));
}

std::optional<NetcdfLonger> netcdf_longer(const std::string& call, const std::string& path,
                                          const std::string& variable, const FileInfo& stored) {
  const Quiet quiet;
  const Hdf5Source source{call, path, "/"};
  const Handle file = opened(source);
  if (!may_be_longer(file, with_slash(variable))) return std::nullopt;
  const auto variables = read_variables(source, file);
  const auto found = variables.find(with_slash(variable).substr(1));
  if (found == variables.end() || found->second.info.shape == stored.shape) return std::nullopt;
  const auto own = numbers_in(attributes_of({call, path, with_slash(variable)}), "_FillValue").real;
  return NetcdfLonger{found->second.info.shape, own.empty() ? usual_fill(stored.dtype) : own[0]};
}

std::map<std::string, NetcdfVariable> netcdf_variables(const std::string& path, std::source_location where) {
  const Call call("netcdf_variables", where);
  const Quiet quiet;
  const Hdf5Source source{call_text(), path, "/"};
  return read_variables(source, opened(source));
}
std::map<std::string, NetcdfDim> netcdf_dims(const std::string& path, std::source_location where) {
  const Call call("netcdf_dims", where);
  const Quiet quiet;
  const Hdf5Source source{call_text(), path, "/"};
  return read_dims(source, opened(source));
}
std::map<std::string, Attribute> netcdf_attributes(const std::string& path, const std::string& variable,
                                                   std::source_location where) {
  const Call call("netcdf_attributes", where);
  return attributes_of({call_text(), path, "/" + variable});
}

Array load_netcdf(const std::string& path, const std::string& variable, const Sharding& sharding,
                  const NetcdfLoadOptions& options, std::source_location where) {
  const Call call("load_netcdf", where);
  return load(path, variable, sharding, options);
}
Array load_netcdf(const std::string& path, const std::string& variable, const NetcdfLoadOptions& options,
                  std::source_location where) {
  const Call call("load_netcdf", where);
  return load(path, variable, std::nullopt, options);
}

}  // namespace tessera::io
