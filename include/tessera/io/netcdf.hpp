/// @file
/// netCDF-4: named variables over named dimensions, in an HDF5 file.
///
/// **Collective** over all ranks of the runtime, unless said otherwise, and errors are the same on all, as in
/// io.hpp. Every rank reads and writes its own blocks, as with HDF5, whose library does it; the netCDF
/// library is not needed. Files of netCDF-3 are refused.
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
  FileInfo info;                  ///< as it is stored: packed numbers are not unpacked
  std::vector<std::string> dims;  ///< the name of each dimension
};
/// A dimension of a netCDF file.
struct NetcdfDim {
  std::int64_t size = 0;      ///< its extent
  bool is_unlimited = false;  ///< whether variables can grow along it
};
/// The variables of numbers, "group/x" in groups, with the names of their dimensions; those without a name
/// are called phony_dim_0, phony_dim_1, ... Not collective.
std::map<std::string, NetcdfVariable> netcdf_variables(
    const std::string& path, std::source_location where = std::source_location::current());
/// The dimensions that variables have. Not collective.
std::map<std::string, NetcdfDim> netcdf_dims(const std::string& path,
                                             std::source_location where = std::source_location::current());
/// The attributes of a variable, a group or the file (""), without those that the format itself uses. Not
/// collective.
std::map<std::string, Attribute> netcdf_attributes(
    const std::string& path, const std::string& variable = "",
    std::source_location where = std::source_location::current());

/// Options of load_netcdf.
struct NetcdfLoadOptions {
  /// Packed values (CF) become numbers: stored * scale_factor + add_offset, and NaN where _FillValue or
  /// missing_value stands. The result is then float64, or float32 where that is stored. Without those
  /// attributes, and with false, values and dtype are those that are stored.
  bool unpack = true;
  /// A part of the variable alone, a slice for each of its first dims. Steps must be positive.
  std::vector<Slice> slices = {};
};
/// Reads a variable: committed to the sharding, each rank its own block; without one uncommitted, every rank
/// all of it. Collective over all ranks.
Array load_netcdf(const std::string& path, const std::string& variable, const Sharding& sharding,
                  const NetcdfLoadOptions& options = {},
                  std::source_location where = std::source_location::current());
Array load_netcdf(const std::string& path, const std::string& variable, const NetcdfLoadOptions& options = {},
                  std::source_location where = std::source_location::current());

/// Options of a variable that is made.
struct NetcdfVariableOptions {
  int compression = 0;                      ///< deflate: 1 (fast) to 9 (small); 0: none
  std::optional<Dtype> packed = {};         ///< the integers that numbers are stored as
  std::optional<double> scale_factor = {};  ///< of packed: stored * scale_factor + add_offset; nullopt: 1
  std::optional<double> add_offset = {};    ///< nullopt: 0
  std::optional<double> fill = {};          ///< _FillValue: what stands for NaN
};

/// Writes one netCDF file, variable by variable, with the mode of Hdf5Writer.
///
///     io::Netcdf out("run.nc", {.mode = io::Hdf5Open::replace});
///     out.write("lat", lat, {"lat"});
///     for (...) out.append("t2m", expand_dims(t, 0), {"time", "lat", "lon"});
///     out.attribute("t2m", "units", std::string("K"));
///     out.close();
///
/// A variable of the name of its only dimension is that dimension's coordinate.
class Netcdf {
 public:
  /// Opens the file, as Hdf5Writer does.
  explicit Netcdf(const std::string& path, Hdf5WriterOptions options = {},
                  std::source_location where = std::source_location::current());
  ~Netcdf();
  /// The writer goes on in the new place; the old one can only be destroyed.
  Netcdf(Netcdf&& other) noexcept;
  Netcdf(const Netcdf&) = delete;
  Netcdf& operator=(const Netcdf&) = delete;

  /// Makes a variable over these dimensions. DtypeError for bool, complex and 16-bit floating point numbers,
  /// which the format does not have; ShapeError where a dimension has another extent already.
  void write(const std::string& name, const Array& x, const std::vector<std::string>& dims,
             const NetcdfVariableOptions& options = {},
             std::source_location where = std::source_location::current());
  /// Adds x behind what a variable holds, along its first dimension, which is unlimited; makes the variable
  /// when it is not there.
  void append(const std::string& name, const Array& x, const std::vector<std::string>& dims,
              const NetcdfVariableOptions& options = {},
              std::source_location where = std::source_location::current());
  /// Sets an attribute of a variable, or of the file ("").
  void attribute(const std::string& variable, const std::string& name, const Attribute& value,
                 std::source_location where = std::source_location::current());
  /// What was written so far stands under the final name, on the disk, with its dimensions.
  void close(std::source_location where = std::source_location::current());

 private:
  struct State;
  State& open_state() const;
  std::unique_ptr<State> state_;
};

/// Several variables as one save: values by their names, and the names of each one's dimensions. Collective
/// over all ranks.
void save_netcdf(const std::string& path, const std::map<std::string, Array>& variables,
                 const std::map<std::string, std::vector<std::string>>& dims,
                 std::source_location where = std::source_location::current());

}  // namespace tessera::io
