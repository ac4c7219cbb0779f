// The description of a Zarr array, read from its metadata document, and the document of a new one. Pure:
// error texts start with the fact, as in npy_header.hpp. Hostile documents are refused with bounded work.
#pragma once
#include <tessera/dtype.hpp>
#include <tessera/shape.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/formats/zarr/metadata/json_document.hpp"

namespace tessera::io::zarr {

// One element, in this machine's byte order.
using Element = std::array<std::byte, 16>;

// One step of the encoding from an array to the bytes in a file.
struct Codec {
  enum class Kind { transpose, bytes, sharding, crc32c, zstd, gzip, zlib, blosc };
  Kind kind = Kind::bytes;
  bool is_big_endian = false;            // bytes
  std::vector<int> order = {};           // transpose: stored dim i is dim order[i]
  int level = 0;                         // zstd, gzip, zlib, blosc
  bool checksum = false;                 // zstd
  std::string packer = {};               // blosc: lz4, zstd, ...
  int shuffle = 0, typesize = 0;         // blosc: 0 none, 1 bytes, 2 bits; bytes of an element
  std::int64_t blocksize = 0;            // blosc; 0: its choice
  Shape chunk = {};                      // sharding: of the inner chunks
  std::vector<Codec> codecs = {};        // sharding: of the inner chunks
  std::vector<Codec> index_codecs = {};  // sharding: of the index
  bool index_at_start = false;           // sharding
};
const char* name_of(Codec::Kind);

struct ArrayMeta {
  int format = 3;
  Shape shape, chunk;  // the chunk is the contents of one file: for a sharded array the shard
  Dtype dtype = float32;
  Element fill = {};
  bool fill_is_given = true;      // v2 allows arrays without one
  bool has_v2_keys = false;       // "0.1" and not "c/0/1"
  char separator = '/';           // of the numbers in a key
  std::vector<Codec> codecs;      // transposes, then bytes or sharding, then bytes-to-bytes codecs
  std::vector<std::string> dims;  // names; "" for an unnamed dim; empty if none is named
  Json attributes = Json::object();
  Json document;  // the parsed document, so that a change keeps its other members
};

// zarr.json of an array, or .zarray and the text of .zattrs beside it ("" if there is none).
ArrayMeta parse_array_v3(std::string_view text);
ArrayMeta parse_array_v2(std::string_view text, std::string_view attributes);
// The same from values inside consolidated metadata.
ArrayMeta read_array_v3(const Json& document);
ArrayMeta read_array_v2(const Json& document, const Json& attributes);

// Attributes of a group, from zarr.json or .zgroup.
Json read_group_v3(const Json& document);
void parse_group_v2(std::string_view text);

// zarr.json of a new array.
Json array_document(const ArrayMeta&);
Json group_document(const Json& attributes);

// Parse values of one kind; `what` names the value in errors.
std::int64_t whole_number(const Json&, const std::string& what);
Shape read_shape(const Json&, const std::string& what);
Element read_fill(const Json&, Dtype);
Json fill_json(const Element&, Dtype);
// Bytes of a chunk; refuses sizes of 2^63 and more.
std::int64_t chunk_bytes(const Shape& chunk, Dtype);
// Refuses codecs in an impossible order.
void check_codecs(const std::vector<Codec>&);
// Refuses 2^63 bytes and more; chunk extents of 0, which an empty array may have, become 1.
void check_sizes(ArrayMeta&);
std::vector<Codec> read_codecs(const Json&, const Shape& chunk, Dtype, int depth);
Json codecs_json(const std::vector<Codec>&, Dtype);

}  // namespace tessera::io::zarr
