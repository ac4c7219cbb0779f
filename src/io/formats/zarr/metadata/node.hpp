// The folders of a Zarr store: what is in them. For one rank; IoErrors name the file.
#pragma once
#include <tessera/io/zarr.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {

struct Node {
  enum class Kind { none, array, group };
  Kind kind = Kind::none;
  int format = 3;
  ArrayMeta meta = {};  // of an array
  Json attributes = Json::object();
};

// What a folder is; none where it holds no metadata.
Node read_node(const std::string& call, const std::string& folder);
ArrayMeta read_array(const std::string& call, const std::string& folder);  // IoError if it is none
// The nodes below a folder by their paths in it: as consolidated metadata say it, or by a search. What
// tessera cannot read has the kind none.
std::map<std::string, Node> nodes_below(const std::string& call, const std::string& folder);
// A search, whatever is consolidated; the documents of version 3.
std::map<std::string, Json> documents_below(const std::string& call, const std::string& folder);

std::map<std::string, Attribute> attributes_of(const Json&);
Json json_of(const Attribute&);
std::string detail_of(const ArrayMeta&);  // "zarr 3, chunks (4, 6), zstd"

// Nothing a program would call a file: no empty part, no "..", no name that the format uses itself.
bool is_good_name(const std::string& path);
// A new file, on the disk; or to be brought there by who syncs what is in its folder.
void write_document(const std::string& call, const std::string& path, const Json&);

}  // namespace tessera::io::zarr
