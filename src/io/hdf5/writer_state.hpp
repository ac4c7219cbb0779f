// The state of an open Hdf5Writer; also for the formats written through one.
#pragma once
#include <tessera/io/hdf5_writer.hpp>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/call.hpp"
#include "io/file.hpp"
#include "io/hdf5/library.hpp"
#include "io/hdf5/places.hpp"
#include "io/save_target.hpp"

namespace tessera::io {

struct Hdf5Writer::State {
  std::string path, temporary;
  std::optional<SaveTarget> place;  // on the first rank, like `file`
  Handle file;
  std::int64_t end = 0;                // of the file space allocated for data
  std::optional<File> own;             // this rank's own descriptor, for data
  std::map<std::string, Array> tails;  // of compressed datasets: the rows of a last chunk that is not full
  bool is_open = true, is_broken = false;

  Hdf5Source source(const std::string& object) const { return {call_text(), path, absolute_name(object)}; }
};

}  // namespace tessera::io
