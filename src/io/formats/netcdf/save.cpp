// Netcdf: writes variables through an Hdf5Writer, and their dimensions on closing.
#include <tessera/io/netcdf.hpp>
#include <tessera/ops.hpp>

#include <filesystem>
#include <limits>

#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/formats/netcdf/new_variable.hpp"
#include "io/formats/netcdf/scales.hpp"
#include "io/hdf5/put.hpp"
#include "io/hdf5/writer_state.hpp"

namespace tessera::io {

struct Netcdf::State {
  State(const std::string& path_, Hdf5WriterOptions options) : path(path_), file(path_, options) {}
  std::string path;
  Hdf5Writer file;
  std::map<std::string, std::vector<std::string>> dims;  // of each variable
  std::map<std::string, std::int64_t> extents;           // of each dim that cannot grow
  bool is_open = true;
};

void check_netcdf_dtype(const std::string& name, Dtype dtype) {
  if (dtype != float32 && dtype != float64 && !is_integer(dtype))
    throw DtypeError(call_text() + ": the variable " + in_quotes(name) + " is " + tessera::name(dtype) +
                     ", which netCDF does not have; use astype, or store real and imaginary parts");
}
void name_dims(const std::string& call, const std::string& path, const std::string& variable,
               const std::vector<std::string>& dims) {
  const Quiet quiet;
  const Hdf5Source source{call, path, variable};
  Handle file = hdf5_opened(path, H5F_ACC_RDWR);
  if (!file.ok()) source.fail("cannot be opened as HDF5: " + hdf5_reason(), "write it again");
  write_scales(source, file, {{variable, dims}});
  if (!file.close()) source.fail("cannot be closed: " + hdf5_reason(), "free some space");
}

namespace {

// The numbers as stored: integers, one value of which stands for NaN.
Array packed(const std::string& name, const Array& x, const NetcdfVariableOptions& options) {
  if (!options.packed) {
    if (options.scale_factor || options.add_offset)
      throw ArgumentError(
          call_text() + ": the variable " + in_quotes(name) +
          " has a scale_factor or add_offset, and no dtype that it is packed into; give packed");
    if (!options.fill || !is_floating(x.dtype())) return x;
    return where(isnan(x), full_like(x, *options.fill), x);
  }
  if (!is_integer(*options.packed) || !is_floating(x.dtype()))
    throw DtypeError(call_text() + ": the variable " + in_quotes(name) + " of " + tessera::name(x.dtype()) +
                     " cannot be packed into " + tessera::name(*options.packed) +
                     "; floating point numbers are packed into integers");
  Array steps = (astype(x, float64) - options.add_offset.value_or(0)) / options.scale_factor.value_or(1);
  steps = where(isnan(x), full_like(steps, options.fill.value_or(0)), round(steps));
  return astype(steps, *options.packed);
}

}  // namespace

Netcdf::Netcdf(const std::string& path, Hdf5WriterOptions options, std::source_location where) {
  const Call call("Netcdf", where);
  state_ = std::make_unique<State>(path, options);
  if (options.mode == Hdf5Open::append && std::filesystem::exists(path))
    for (const auto& [name, variable] : netcdf_variables(path)) state_->dims.emplace(name, variable.dims);
}
Netcdf::~Netcdf() = default;
Netcdf::Netcdf(Netcdf&&) noexcept = default;

Netcdf::State& Netcdf::open_state() const {
  if (!state_) throw ArgumentError(call_text() + ": the writer was moved to another one; use that");
  if (!state_->is_open)
    throw ArgumentError(call_text() + ": the writer of " + in_quotes(state_->path) +
                        " is closed; make a new one, which appends");
  return *state_;
}

namespace {

// Checks that a dim has one extent in all variables; a first dim may grow.
void take_dims(std::map<std::string, std::int64_t>& extents, const std::string& name, const Array& x,
               const std::vector<std::string>& dims, bool grows) {
  if (dims.size() != static_cast<std::size_t>(x.ndim()))
    throw ShapeError(call_text() + ": " + format_count(std::ssize(dims), "dimension") + " for the variable " +
                     in_quotes(name) + " of shape " + to_string(x.shape()));
  auto all = extents;
  for (std::size_t d = grows ? 1 : 0; d < dims.size(); ++d) {
    const auto [at, is_new] = all.emplace(dims[d], x.shape()[d]);
    if (!is_new && at->second != x.shape()[d])
      throw ShapeError(call_text() + ": the variable " + in_quotes(name) + " of shape " +
                       to_string(x.shape()) + " has the dimension " + in_quotes(dims[d]) + ", which has " +
                       std::to_string(at->second) + " elements already");
  }
  extents = std::move(all);
}

void describe(Hdf5Writer& file, const std::string& name, const NetcdfVariableOptions& options) {
  if (options.scale_factor) file.attribute(name, "scale_factor", *options.scale_factor);
  if (options.add_offset) file.attribute(name, "add_offset", *options.add_offset);
}

// Runs `work` on the first rank, where the library has the file open.
template <class Work> void on_file(const Hdf5Source& source, hid_t file, const Work& work) {
  const Team team("Netcdf of " + in_quotes(source.path) + ", " + in_quotes(source.dataset));
  once_quietly(team, [&] { work(source, file); });
}

}  // namespace

void Netcdf::write(const std::string& name, const Array& x, const std::vector<std::string>& dims,
                   const NetcdfVariableOptions& options, std::source_location where) {
  const Call call("Netcdf::write", where);
  State& state = open_state();
  check_usable(x);
  const Array stored = packed(name, x, options);
  check_netcdf_dtype(name, stored.dtype());
  take_dims(state.extents, name, x, dims, false);
  state.file.write(name, stored, {.compression = options.compression});
  state.dims[name] = dims;
  describe(state.file, name, options);
  if (options.fill)
    on_file(state.file.state_->source(name), state.file.state_->file,
            [&](const Hdf5Source& source, hid_t file) {
              write_fill_attribute(source, file, stored.dtype(), *options.fill);
            });
}

void Netcdf::append(const std::string& name, const Array& x, const std::vector<std::string>& dims,
                    const NetcdfVariableOptions& options, std::source_location where) {
  const Call call("Netcdf::append", where);
  State& state = open_state();
  check_usable(x);
  const Array stored = packed(name, x, options);
  check_netcdf_dtype(name, stored.dtype());
  take_dims(state.extents, name, x, dims, true);
  const auto known = state.dims.find(name);
  if (known != state.dims.end() && known->second != dims)
    throw ShapeError(call_text() + ": the variable " + in_quotes(name) + " has the dimensions " +
                     join(known->second) + ", not " + join(dims));
  const bool is_new = known == state.dims.end();
  state.file.append(name, stored, {.compression = options.compression});
  state.dims[name] = dims;
  if (!is_new) return;
  describe(state.file, name, options);
  if (options.fill)
    on_file(state.file.state_->source(name), state.file.state_->file,
            [&](const Hdf5Source& source, hid_t file) {
              write_fill_attribute(source, file, stored.dtype(), *options.fill);
            });
}

void Netcdf::attribute(const std::string& variable, const std::string& name, const Attribute& value,
                       std::source_location where) {
  const Call call("Netcdf::attribute", where);
  open_state().file.attribute(variable.empty() ? "/" : variable, name, value);
}

void Netcdf::close(std::source_location where) {
  const Call call("Netcdf::close", where);
  State& state = open_state();
  on_file(state.file.state_->source("/"), state.file.state_->file,
          [&](const Hdf5Source& source, hid_t file) { write_scales(source, file, state.dims); });
  state.file.close();
  state.is_open = false;
}

void save_netcdf(const std::string& path, const std::map<std::string, Array>& variables,
                 const std::map<std::string, std::vector<std::string>>& dims, std::source_location where) {
  const Call call("save_netcdf", where);
  Netcdf out(path, {.mode = Hdf5Open::replace});
  for (const auto& [name, x] : variables) {
    const auto found = dims.find(name);
    if (found == dims.end() && x.ndim() > 0)
      throw ArgumentError(call_text() + ": the variable " + in_quotes(name) + " of shape " +
                          to_string(x.shape()) + " has no names of dimensions; give them");
    out.write(name, x, found == dims.end() ? std::vector<std::string>{} : found->second);
  }
  out.close();
}

}  // namespace tessera::io
