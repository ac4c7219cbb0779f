// The road that every format takes: a format supplies the header and the place of its data, here the ranks
// read and write their boxes.
#pragma once
#include <tessera/io.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/team.hpp"
#include "types/box.hpp"

namespace tessera::io {

// "with sharding ..." as all ranks must give it.
std::string layout_text(const Sharding&);

// Members read what the header says, then each its box of it; the others learn what was found.
struct Reader {
  std::function<FileInfo()> header;                       // may throw IoError on this rank alone
  std::function<void(const Box&, std::byte* out)> block;  // the same
};
// `what` is the file as the errors name it: "'a.npy'". Without a sharding: every rank reads all of it, and
// the array is uncommitted.
Array load_blocks(const std::string& what, const std::optional<Sharding>&, const Reader&);

// The two halves of load_blocks, for a format that decides by the header how it reads: all ranks know what
// the header says; then the members read their boxes of `info` under `sharding`.
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

// Creates the file `temporary` with everything but the array's data, and gives the place of the data; called
// on one rank. `target` is where the file will be: the path with its symbolic links followed.
using Prepare = std::function<std::int64_t(const std::string& temporary, const std::string& target)>;
// `details` is what else the ranks must agree on: the dataset, the mode.
void save_blocks(const std::string& path, const std::string& details, const Array&, const Prepare&);

// Several arrays in one file.
struct ManyWriter {
  // As Prepare; one place for each array.
  std::function<std::vector<std::int64_t>(const std::string& temporary, const std::string& target)> prepare;
  // Called on every rank when all have written, with the arrays as they lie then: what is known only of the
  // bytes themselves. May be empty.
  std::function<void(const Team&, const std::string& temporary, const std::vector<Array>& placed)> finish;
  // Each rank holds whole rows, so that its part of an array is one run of bytes in the file.
  bool by_rows = false;
};
void save_many(const std::string& path, const std::string& details, const std::vector<Array>&,
               const ManyWriter&);
// x with its first dim over all devices of its mesh, in order; what has no dims, or one device, stays.
Array in_rows(const Array& x);
// x so that each rank's block is written in long runs of bytes: narrow columns become rows.
Array with_long_runs(const Array& x);
// This rank's block of a computed array, and whether it is the rank that writes it.
struct OwnBlock {
  Box box;
  const std::byte* data = nullptr;
  bool writes = false;
};
OwnBlock own_block(const Array& x);

}  // namespace tessera::io
