// The JSON of Zarr's metadata, as Python's json module reads and writes it: JSON plus the numbers NaN,
// Infinity and -Infinity. Pure: error texts start with the fact, as in npy_header.hpp.
#pragma once
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace tessera::io::zarr {

using Json = nlohmann::json;

// IoError "fact; mend" for a document that cannot be parsed.
[[noreturn]] void refuse(const std::string& facts);
std::string shown(const std::string& text);  // quoted, and cut if it is long

// An object; its depth and length are bounded. `what` names the document in errors: "zarr.json".
Json parse_document(std::string_view text, const std::string& what);
// Any value, as attributes may have.
Json parse_value(std::string_view text, const std::string& what);
// With an indentation of 2, or on one line.
std::string document_text(const Json&);
std::string value_text(const Json&);

// The member of an object, which must be there; `what` names the object.
const Json& member(const Json& object, const char* key, const std::string& what);

}  // namespace tessera::io::zarr
