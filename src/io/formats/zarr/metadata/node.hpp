// Reads the folders of a Zarr store. For one rank; IoErrors name the file.
#pragma once
#include <tessera/io/zarr.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/zarr/metadata/metadata.hpp"

namespace tessera::io::zarr {

struct ZarrNode {
  enum class Kind { none, array, group };
  Kind kind = Kind::none;
  int format = 3;
  ArrayMeta meta = {};  // set for arrays
  Json attributes = Json::object();
};

// The node in a folder; kind none if the folder holds no metadata.
ZarrNode read_node(const std::string& call, const std::string& folder);
ArrayMeta read_array(const std::string& call, const std::string& folder);  // IoError if it is no array
// The nodes below a folder by their paths in it, from consolidated metadata or else by a search. Nodes that
// tessera cannot read have the kind none.
std::map<std::string, ZarrNode> nodes_below(const std::string& call, const std::string& folder);
// Searches folders even if there are consolidated metadata; returns the documents of version 3.
std::map<std::string, Json> documents_below(const std::string& call, const std::string& folder);

std::map<std::string, Attribute> attributes_of(const Json&);
Json json_of(const Attribute&);
std::string detail_of(const ArrayMeta&);  // "zarr 3, chunks (4, 6), zstd"

// Refuses empty path components, "..", and names that the format uses itself.
bool is_good_name(const std::string& path);
// Writes a new file and syncs it, or leaves that to a later sync of its folder.
void write_document(const std::string& call, const std::string& path, const Json&);

}  // namespace tessera::io::zarr
