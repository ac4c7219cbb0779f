// Uncompressed members of .npz files: each rank computes the checksum of the bytes that it reads, and the
// ranks' sums are combined into the member's.
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

// A run of bytes and its checksum. Parts are combined in the order of `place`, in any unit.
struct SummedPart {
  std::int64_t place = 0, bytes = 0, sum = 0;
  auto operator<=>(const SummedPart&) const = default;
};
std::vector<SummedPart> all_parts(const SummedPart& mine);  // of all ranks; collective over all of them
// Continues the sum `first` of the preceding bytes by the parts; nullopt if replicas of a part have different
// sums.
std::optional<std::uint32_t> combined_sum(std::vector<SummedPart>, std::uint32_t first);

// A member as opened by a rank that reads it.
struct StoredNpy {
  const File& file;
  const ZipMember& facts;
  std::int64_t start = 0;
  const NpyHeader& header;
};
// Loads the array and verifies its checksum: every byte is read once and summed before it is used. If some
// rank's box is not one run of bytes (columns, Fortran order), equal runs are read and then resharded.
// `source` is called on the ranks of the sharding's mesh. IoError on all ranks if the sum differs.
Array load_stored(const Opened&, const std::string& what, bool is_fortran,
                  const std::function<StoredNpy()>& source);

}  // namespace tessera::io
