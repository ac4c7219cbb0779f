// Hdf5Writer: the first rank has the file open, creates datasets and sends the file offsets of their chunks;
// every rank writes its blocks there.
//
//   all      compare the call and its arguments                   agree
//   rank 0   makes or extends the dataset: places of its chunks   broadcast
//   all      their parts of the chunks, or whole compressed ones
//
// The library keeps its own pages in memory until the file is flushed: the file must not be read before that.
#include <tessera/io/hdf5_writer.hpp>
#include <tessera/ops.hpp>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/call.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/blocks.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "io/hdf5/attributes.hpp"
#include "io/hdf5/put.hpp"
#include "io/hdf5/writer_state.hpp"
#include "io/save_target.hpp"

namespace tessera::io {

namespace {

std::string options_text(const Hdf5DatasetOptions& options) {
  return ", compression " + std::to_string(options.compression) +
         (options.shuffle ? "" : " without shuffle") +
         (options.chunk.empty() ? "" : ", chunk " + to_string(options.chunk));
}

void check_name(const std::string& call, const char* what, const std::string& name) {
  if (name.empty() || name.back() == '/')
    throw ArgumentError(call + ": the " + what + " " + in_quotes(name) +
                        " has no name; give one, as in \"/group/x\"");
}

void check_first_dim(const std::string& call, const std::string& dataset, const Array& x) {
  if (x.ndim() == 0)
    throw ShapeError(call + ": a number has no first dim along which the dataset " + in_quotes(dataset) +
                     " could grow; use reshape(x, {1})");
}

Handle opened(const Hdf5Source& source, const std::string& file_name, bool exists) {
  Handle file = exists ? hdf5_opened(file_name, H5F_ACC_RDWR) : hdf5_created(file_name);
  if (!file.ok())
    source.fail(
        "cannot be opened as HDF5: " + hdf5_reason(),
        "check that it is an HDF5 file; open it with {.mode = io::Hdf5Open::replace} to start a new one");
  hsize_t user_bytes = 0;
  H5Pget_userblock(Handle(H5Fget_create_plist(file), H5Pclose), &user_bytes);
  if (user_bytes > 0)
    source.fail(
        "begins with " + std::to_string(user_bytes) + " bytes of another format (as MATLAB's files do)",
        "write to a file of its own");
  return file;
}

void check_existing(const Hdf5Source& source, Hdf5Open mode, bool exists) {
  if (exists && mode == Hdf5Open::fail)
    source.fail("exists, and the mode is fail",
                "open it with {.mode = io::Hdf5Open::append} or replace, or another file");
}

const char* name_of(Hdf5Open mode) {
  return mode == Hdf5Open::append ? "append" : mode == Hdf5Open::replace ? "replace" : "fail";
}

// Syncs this rank's own writes.
void store_own(const Team& team, std::optional<File>& own) {
  team.together([&] {
    if (own) own->sync();
    own.reset();
  });
}

// Flushes the library's data and closes the file, then restores the length that the ranks' writes need.
void finish(const Hdf5Source& source, Handle& file, const std::string& temporary, std::int64_t end) {
  if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 || !file.close())
    source.fail("cannot be written: " + hdf5_reason(), "free some space");
  File bytes(source.call, temporary, File::Mode::write);
  if (bytes.bytes() < end) bytes.resize(end);
  bytes.sync();
}

}  // namespace

Hdf5Writer::Hdf5Writer(const std::string& path, Hdf5WriterOptions options, std::source_location where)
    : state_(std::make_unique<State>()) {
  const Call call("Hdf5Writer", where);
  state_->path = path;
  const Team team("Hdf5Writer of " + in_quotes(path) + ", mode " + name_of(options.mode));
  const NoSizeSignal size_is_an_error;
  once_quietly(team, [&] {
    const Hdf5Source source = state_->source("/");
    state_->place.emplace(source.call, path);
    const std::string& target = state_->place->target();
    const bool exists = std::filesystem::exists(target), is_kept = exists && options.mode == Hdf5Open::append;
    check_existing(source, options.mode, exists);
    state_->temporary = state_->place->temporary();
    if (is_kept) copy_file(source.call, target, state_->temporary);
    state_->file = opened(source, state_->temporary, is_kept);
  });
  state_->temporary = team.from_first(state_->temporary);
}

Hdf5Writer::~Hdf5Writer() {
  if (!state_) return;
  const Quiet quiet;
  // Truncates the abandoned file: on a full disk the library could not flush and close it otherwise, and
  // would fail at exit.
  if (state_->place && ::truncate(state_->temporary.c_str(), 0) != 0)
    log(LogLevel::debug, "the temporary file of a writer cannot be emptied");
  state_.reset();
}
Hdf5Writer::Hdf5Writer(Hdf5Writer&&) noexcept = default;

// The state for a write; throws if the writer cannot be written to.
Hdf5Writer::State& Hdf5Writer::open_state() const {
  if (!state_) throw ArgumentError(call_text() + ": the writer was moved to another one; use that");
  const std::string what = call_text() + ": the writer of " + in_quotes(state_->path);
  if (!state_->is_open) throw ArgumentError(what + " is closed; make a new one, which appends");
  if (state_->is_broken)
    throw IoError(what +
                  " failed in the midst of a write; the file stands as it was at the last flush: make a "
                  "new writer");
  return *state_;
}

void Hdf5Writer::write(const std::string& dataset, const Array& x, const Hdf5DatasetOptions& options,
                       std::source_location where) {
  const Call call("Hdf5Writer::write", where);
  State& state = open_state();
  check_name(call_text(), "dataset", dataset);
  check_usable(x);
  check_options(call_text(), x.shape(), x.dtype(), options);
  const Team team("Hdf5Writer::write to " + in_quotes(state.path) + ", dataset " + in_quotes(dataset) +
                  options_text(options) + ", of " + name(x.dtype()) + to_string(x.shape()) + ", " +
                  layout_text(x.sharding()));
  const NoSizeSignal size_is_an_error;
  Put put(team, state.source(dataset), state.file, state.own, state.temporary);
  const Hdf5Chunks plan = put.plan(x, options, false);
  Array placed = x;
  team.together([&] {
    placed = with_long_runs(x);
    eval({placed});
  });
  put.make(x, plan, false);
  state.is_broken = true;
  state.end = std::max(state.end, put.data(placed, 0, plan));
  state.is_broken = false;
}

namespace {

// x behind the rows of the dataset's last chunk, which is not full.
Array with_tail(const std::map<std::string, Array>& tails, const Hdf5Source& source, const Hdf5Chunks& plan,
                const Array& x) {
  const std::int64_t held = plan.held[0], rest = held % plan.chunk[0];
  if (rest == 0) return x;
  const auto found = tails.find(source.dataset);
  const Array tail = found != tails.end() ? device_put(found->second, x.sharding())
                                          : load_hdf5(source.path, source.dataset, x.sharding(),
                                                      {.slices = {slice(held - rest, held)}});
  return concatenate({tail, x});
}

}  // namespace

void Hdf5Writer::append(const std::string& dataset, const Array& x, const Hdf5DatasetOptions& options,
                        std::source_location where) {
  const Call call("Hdf5Writer::append", where);
  State& state = open_state();
  check_name(call_text(), "dataset", dataset);
  check_usable(x);
  check_first_dim(call_text(), dataset, x);
  check_options(call_text(), x.shape(), x.dtype(), options);
  const Team team("Hdf5Writer::append to " + in_quotes(state.path) + ", dataset " + in_quotes(dataset) +
                  options_text(options) + ", of " + name(x.dtype()) + to_string(x.shape()) + ", " +
                  layout_text(x.sharding()));
  const NoSizeSignal size_is_an_error;
  const Hdf5Source source = state.source(dataset);
  Put put(team, source, state.file, state.own, state.temporary);
  const Hdf5Chunks plan = put.plan(x, options, true);
  Array rows = x;
  team.together([&] {
    rows = plan.compression > 0 ? with_tail(state.tails, source, plan, x) : with_long_runs(x);
    eval({rows});
  });
  put.make(x, plan, true);
  state.is_broken = true;
  const std::int64_t all = plan.held[0] + x.shape()[0];
  state.end = std::max(state.end, put.data(rows, all - rows.shape()[0], plan));
  if (plan.compression > 0) {
    const Array tail = rows(slice(rows.shape()[0] - all % plan.chunk[0], rows.shape()[0]));
    eval({tail});
    state.tails.insert_or_assign(source.dataset, tail);
  }
  state.is_broken = false;
}

void Hdf5Writer::group(const std::string& path, std::source_location where) {
  const Call call("Hdf5Writer::group", where);
  State& state = open_state();
  check_name(call_text(), "group", path);
  const Team team("Hdf5Writer::group " + in_quotes(path) + " in " + in_quotes(state.path));
  once_quietly(team, [&] {
    const Hdf5Source source = state.source(path);
    if (hdf5_exists(state.file, source.dataset)) {
      const Handle group(H5Gopen2(state.file, source.dataset.c_str(), H5P_DEFAULT), H5Gclose);
      if (!group.ok()) source.fail("has " + in_quotes(path) + ", which is no group", "choose another name");
      return;
    }
    const Handle links(H5Pcreate(H5P_LINK_CREATE), H5Pclose);
    H5Pset_create_intermediate_group(links, 1);
    const Handle group(H5Gcreate2(state.file, source.dataset.c_str(), links, H5P_DEFAULT, H5P_DEFAULT),
                       H5Gclose);
    if (!group.ok())
      source.fail("cannot get the group " + in_quotes(path) + ": " + hdf5_reason(), "check its path");
  });
}

namespace {

// Attribute values as text, for the agreement of the ranks.
struct ValueText {
  std::string operator()(const std::string& text) const { return in_quotes(text); }
  std::string operator()(double number) const { return to_text(number); }
  std::string operator()(std::int64_t number) const { return std::to_string(number); }
  template <class T> std::string operator()(const std::vector<T>& list) const {
    std::string text = "[";
    for (const T& element : list) text += (text.size() > 1 ? ", " : "") + (*this)(element);
    return text + "]";
  }
  static std::string to_text(double number) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", number);
    return text;
  }
};

}  // namespace

void Hdf5Writer::attribute(const std::string& object, const std::string& name, const Hdf5Attribute& value,
                           std::source_location where) {
  const Call call("Hdf5Writer::attribute", where);
  State& state = open_state();
  if (name.empty()) throw ArgumentError(call_text() + ": the attribute has no name");
  const Team team("Hdf5Writer::attribute " + in_quotes(name) + " of " + in_quotes(object) + " in " +
                  in_quotes(state.path) + ": " + std::visit(ValueText{}, value));
  const NoSizeSignal size_is_an_error;
  once_quietly(team, [&] { write_attribute(state.source(object), state.file, name, value); });
}

void Hdf5Writer::flush(std::source_location where) {
  const Call call("Hdf5Writer::flush", where);
  State& state = open_state();
  const Team team("Hdf5Writer::flush of " + in_quotes(state.path));
  const NoSizeSignal size_is_an_error;
  state.is_broken = true;
  store_own(team, state.own);
  once_quietly(team, [&] {
    const Hdf5Source source = state.source("/");
    finish(source, state.file, state.temporary, state.end);
    state.place->commit_and_go_on();
    state.temporary = state.place->temporary();
    state.file = opened(source, state.temporary, true);
  });
  state.temporary = team.from_first(state.temporary);
  state.is_broken = false;
}

void Hdf5Writer::close(std::source_location where) {
  const Call call("Hdf5Writer::close", where);
  State& state = open_state();
  const Team team("Hdf5Writer::close of " + in_quotes(state.path));
  const NoSizeSignal size_is_an_error;
  state.is_broken = true;
  store_own(team, state.own);
  once_quietly(team, [&] {
    finish(state.source("/"), state.file, state.temporary, state.end);
    fault_point("closing");
    state.place->commit();
    state.place.reset();
    fault_point("saved");
  });
  state.is_broken = state.is_open = false;
}

}  // namespace tessera::io
