/// @file
/// netCDF-4: named variables over named dimensions, in an HDF5 file.
///
/// **Collective** over all ranks of the runtime, unless stated otherwise, and errors are the same on all, as
/// in io.hpp. Every rank reads and writes its own blocks through the HDF5 library; the netCDF library is not
/// needed. netCDF-3 files are refused.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/io/zarr.hpp>

namespace tessera::io {

/// A variable of a netCDF file.
struct NetcdfVariable {
  FileInfo info;                  ///< as stored: packed numbers are not unpacked
  std::vector<std::string> dims;  ///< the name of each dimension
};
/// A dimension of a netCDF file.
struct NetcdfDim {
  std::int64_t size = 0;      ///< its extent
  bool is_unlimited = false;  ///< whether variables can grow along it
};
/// The numeric variables, "group/x" in groups, with the names of their dimensions; unnamed ones are called
/// phony_dim_0, phony_dim_1, ... Not collective.
std::map<std::string, NetcdfVariable> netcdf_variables(
    const std::string& path, std::source_location where = std::source_location::current());
/// The dimensions used by variables. Not collective.
std::map<std::string, NetcdfDim> netcdf_dims(const std::string& path,
                                             std::source_location where = std::source_location::current());
/// The attributes of a variable, a group or the file (""), without those that belong to the format itself.
/// Not collective.
std::map<std::string, Attribute> netcdf_attributes(
    const std::string& path, const std::string& variable = "",
    std::source_location where = std::source_location::current());

/// Options of load_netcdf.
struct NetcdfLoadOptions {
  /// Unpacks packed values (CF): stored * scale_factor + add_offset, and NaN for _FillValue, for
  /// missing_value, and outside valid_range or valid_min and valid_max, which count stored numbers.
  /// The result is then float64, or float32 if that is the stored type. Without those attributes, or if
  /// false, values and dtype are the stored ones.
  bool unpack = true;
  /// Reads only a part of the variable, one slice for each of its first dims. Steps must be positive.
  std::vector<Slice> slices = {};
};
/// Reads a variable: with a sharding a committed array, each rank reading its own block; without one
/// uncommitted, every rank reading all of it. Collective over all ranks.
Array load_netcdf(const std::string& path, const std::string& variable, const Sharding& sharding,
                  const NetcdfLoadOptions& options = {},
                  std::source_location where = std::source_location::current());
Array load_netcdf(const std::string& path, const std::string& variable, const NetcdfLoadOptions& options = {},
                  std::source_location where = std::source_location::current());

/// Options of a new variable.
struct NetcdfVariableOptions {
  int compression = 0;                      ///< deflate: 1 (fast) to 9 (small); 0: none
  std::optional<Dtype> packed = {};         ///< the integer dtype of stored numbers
  std::optional<double> scale_factor = {};  ///< for packed: stored * scale_factor + add_offset; nullopt: 1
  std::optional<double> add_offset = {};    ///< nullopt: 0
  std::optional<double> fill = {};          ///< _FillValue: stored in place of NaN
};

/// Writes one netCDF file, variable by variable, with the mode of Hdf5Writer.
///
///     io::Netcdf out("run.nc", {.mode = io::Hdf5Open::replace});
///     out.write("lat", lat, {"lat"});
///     for (...) out.append("t2m", expand_dims(t, 0), {"time", "lat", "lon"});
///     out.attribute("t2m", "units", std::string("K"));
///     out.close();
///
/// A variable named like its only dimension holds that dimension's coordinates.
class Netcdf {
 public:
  /// Opens the file, as Hdf5Writer does.
  explicit Netcdf(const std::string& path, Hdf5WriterOptions options = {},
                  std::source_location where = std::source_location::current());
  ~Netcdf();
  /// Moves the writer; the moved-from object can only be destroyed.
  Netcdf(Netcdf&& other) noexcept;
  Netcdf(const Netcdf&) = delete;
  Netcdf& operator=(const Netcdf&) = delete;

  /// Creates a variable over these dimensions. DtypeError for bool, complex and 16-bit floating point
  /// numbers, which the format does not have; ShapeError if a dimension already has another extent.
  void write(const std::string& name, const Array& x, const std::vector<std::string>& dims,
             const NetcdfVariableOptions& options = {},
             std::source_location where = std::source_location::current());
  /// Appends x to a variable along its first dimension, which is unlimited; creates the variable if it does
  /// not exist.
  void append(const std::string& name, const Array& x, const std::vector<std::string>& dims,
              const NetcdfVariableOptions& options = {},
              std::source_location where = std::source_location::current());
  /// Sets an attribute of a variable, or of the file ("").
  void attribute(const std::string& variable, const std::string& name, const Attribute& value,
                 std::source_location where = std::source_location::current());
  /// Makes the written data visible under the final name, on the disk, with the dimensions.
  void close(std::source_location where = std::source_location::current());

 private:
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

/// Writes several variables in one save: values by name, and the names of each one's dimensions. Collective
/// over all ranks.
void save_netcdf(const std::string& path, const std::map<std::string, Array>& variables,
                 const std::map<std::string, std::vector<std::string>>& dims,
                 std::source_location where = std::source_location::current());

}  // namespace tessera::io
