// The road that every format takes: a format supplies the header and the place of its data, here the ranks
// read and write their boxes.
#pragma once
#include <tessera/io.hpp>

#include <functional>
#include <optional>
#include <string>

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

// Creates the file `temporary` with everything but the array's data, and gives the place of the data; called
// on one rank. `target` is where the file will be: the path with its symbolic links followed.
using Prepare = std::function<std::int64_t(const std::string& temporary, const std::string& target)>;
// `details` is what else the ranks must agree on: the dataset, the mode.
void save_blocks(const std::string& path, const std::string& details, const Array&, const Prepare&);

}  // namespace tessera::io
