// The code path of every format: the format supplies the header and the data's offset, and the ranks read and
// write their boxes here.
#pragma once
#include <tessera/io.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/team.hpp"
#include "types/box.hpp"

namespace tessera::io {

// "with sharding ...", which must be the same on all ranks.
std::string layout_text(const Sharding&);

// The members read the header, then each its box; the other ranks receive the header.
struct Reader {
  std::function<FileInfo()> header;                       // may throw IoError on this rank alone
  std::function<void(const Box&, std::byte* out)> block;  // may throw IoError on this rank alone
};
// `what` names the file in errors: "'a.npy'". Without a sharding every rank reads the whole array, which is
// uncommitted.
Array load_blocks(const std::string& what, const std::optional<Sharding>&, const Reader&);

// load_blocks in two halves, for a format whose way of reading depends on the header. After open_blocks all
// ranks know the header; read_blocks then reads the members' boxes of `info` under `sharding`.
struct Opened {
  Team team;
  Sharding sharding;
  FileInfo info;
  bool committed = false;
};
Opened open_blocks(const std::string& what, const std::optional<Sharding>&,
                   const std::function<FileInfo()>& header);
Array read_blocks(const Opened&, const std::string& what,
                  const std::function<void(const Box&, std::byte* out)>& block);

// Creates the file `temporary` with everything but the array's data, and returns the offset of the data;
// called on one rank. `target` is the final file: the path with its symbolic links followed.
using Prepare = std::function<std::int64_t(const std::string& temporary, const std::string& target)>;
// `details` lists further things that the ranks must agree on: the dataset, the mode.
void save_blocks(const std::string& path, const std::string& details, const Array&, const Prepare&);

// Several arrays in one file.
struct ManyWriter {
  // Like Prepare, but returns an offset for each array.
  std::function<std::vector<std::int64_t>(const std::string& temporary, const std::string& target)> prepare;
  // Called on every rank when all have written, with the arrays in the layout that was written: for facts
  // that depend on the data bytes, such as checksums. May be empty.
  std::function<void(const Team&, const std::string& temporary, const std::vector<Array>& placed)> finish;
  // Reshards arrays to whole rows, so that each rank's part of an array is one run of bytes in the file.
  bool by_rows = false;
};
void save_many(const std::string& path, const std::string& details, const std::vector<Array>&,
               const ManyWriter&);
// x with its first dim split over all devices of its mesh, in order; unchanged if it has no dims or one
// device.
Array in_rows(const Array& x);
// x in a layout in which each rank's block is written in long runs of bytes: narrow columns become rows.
Array with_long_runs(const Array& x);
// This rank's block of a computed array, and whether it is the rank that writes it.
struct OwnBlock {
  Box box;
  const std::byte* data = nullptr;
  bool writes = false;
};
OwnBlock own_block(const Array& x);

}  // namespace tessera::io
