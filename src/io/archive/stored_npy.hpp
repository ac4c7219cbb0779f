// Members of .npz files that are stored as they are: each rank sums what it reads, and the sums of all ranks
// together are the member's.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/archive/zip.hpp"
#include "io/blocks.hpp"
#include "io/file.hpp"
#include "io/npy_header.hpp"

namespace tessera::io {

// The checksum of zip archives.
std::uint32_t crc_of(const void* data, std::int64_t bytes);

// A run of bytes and its checksum. Parts are put together by `place`, whatever it counts.
struct SummedPart {
  std::int64_t place = 0, bytes = 0, sum = 0;
  auto operator<=>(const SummedPart&) const = default;
};
std::vector<SummedPart> all_parts(const SummedPart& mine);  // of all ranks; collective over all of them
// The sum of what stands before (`first`) and of the parts; nullopt where replicas of a part have different
// sums.
std::optional<std::uint32_t> combined_sum(std::vector<SummedPart>, std::uint32_t first);

// A member as a rank that reads it has it open.
struct StoredNpy {
  const File& file;
  const ZipMember& facts;
  std::int64_t start = 0;
  const NpyHeader& header;
};
// The array, of bytes that are checked: every byte is read once and summed before it is used. Where a rank's
// box is not one run of bytes (columns, Fortran order), equal runs are read and then rearranged. `source` is
// called on ranks of the sharding's mesh. IoError on all ranks: the sum is another one.
Array load_stored(const Opened&, const std::string& what, bool is_fortran,
                  const std::function<StoredNpy()>& source);

}  // namespace tessera::io
