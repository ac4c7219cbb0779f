// Zip archives as .npz files use them (PKWARE's APPNOTE 6.3, with zip64). Pure: error texts start with the
// fact, as in npy_header.hpp.
//
//   [local header, name | data] [local header, name | data] ... [directory: a record each] [end]
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tessera::io {

struct ZipMember {
  std::string name;
  bool is_deflated = false;
  std::uint32_t crc = 0;
  std::int64_t stored_bytes = 0;  // in the file
  std::int64_t bytes = 0;         // unpacked
  std::int64_t header = 0;        // offset of the local header
  std::int64_t end = 0;           // offset of what follows: the next member or the directory
};

// The directory is found from the end of the file, which holds the end record and a comment.
constexpr std::int64_t zip_most_at_end = 22 + 65535 + 20 + 56;
struct ZipDirectory {
  std::int64_t offset = 0, bytes = 0, members = 0;
};
ZipDirectory parse_zip_end(std::string_view tail, std::int64_t file_bytes);
std::vector<ZipMember> parse_zip_directory(std::string_view directory, const ZipDirectory&);
// The offset of the data, given the first bytes at member.header: the local header and the name.
constexpr std::int64_t zip_local_header_start = 30;  // bytes before the name
std::int64_t zip_local_bytes(const ZipMember&, const ZipDirectory&);
std::int64_t parse_zip_local(std::string_view first_bytes, const ZipMember&, const ZipDirectory&);

// For writing: data are stored, not deflated. Headers always have room for 64-bit sizes, so that their length
// does not depend on the sizes.
std::string zip_local_header(const ZipMember&);
std::int64_t zip_local_header_bytes(const std::string& name);
std::int64_t zip_crc_offset();  // of the checksum in a local header
std::string zip_directory(const std::vector<ZipMember>&, std::int64_t offset);

}  // namespace tessera::io
