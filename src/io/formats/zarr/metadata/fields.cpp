// Numbers, shapes and codecs of metadata, common to both versions of the format.
#include <tessera/error.hpp>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <set>

#include "base/text.hpp"
#include "io/formats/zarr/metadata/metadata.hpp"
#include "types/checked.hpp"

namespace tessera::io::zarr {
namespace {

constexpr std::size_t most_dims = 64, most_codecs = 32;
constexpr int deepest_shards = 4;

using Kind = Codec::Kind;

// The name and configuration of {"name": ..., "configuration": {...}}; other members and unknown keys are
// refused.
struct Named {
  std::string name;
  Json configuration = Json::object();
  bool is_configured = false;
};
Named read_named(const Json& value, const std::string& what) {
  if (!value.is_object()) refuse("has no object with a name for " + what);
  Named named;
  for (const auto& [key, part] : value.items()) {
    if (key == "name" && part.is_string())
      named.name = part.get<std::string>();
    else if (key == "configuration" && part.is_object())
      named.configuration = part, named.is_configured = true;
    else if (key != "must_understand" || !part.is_boolean())
      refuse("has the entry " + shown(key) + " in " + what);
  }
  if (named.name.empty()) refuse("says no name of " + what);
  return named;
}
void check_keys(const Named& named, std::initializer_list<std::string_view> known) {
  for (const auto& [key, part] : named.configuration.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      refuse("configures " + shown(key) + " of its codec " + shown(named.name));
}

int small_number(const Named& named, const char* key, int least, int most, std::optional<int> otherwise) {
  const auto found = named.configuration.find(key);
  const std::string what = std::string(key) + " of its codec " + shown(named.name);
  if (found == named.configuration.end()) {
    if (!otherwise) refuse("says no " + what);
    return *otherwise;
  }
  if (!found->is_number_integer() || *found < least || *found > most)
    refuse("has " + value_text(*found).substr(0, 40) + " for " + what + ", which is not between " +
           std::to_string(least) + " and " + std::to_string(most));
  return found->get<int>();
}
std::string word(const Named& named, const char* key, std::initializer_list<std::string_view> known) {
  const std::string what = std::string(key) + " of its codec " + shown(named.name);
  const Json& value = member(named.configuration, key, "its codec " + shown(named.name));
  if (!value.is_string()) refuse("has no text for " + what);
  const auto text = value.get<std::string>();
  if (std::find(known.begin(), known.end(), text) == known.end())
    refuse("has " + shown(text) + " for " + what);
  return text;
}

Codec read_bytes(const Named& named, Dtype dtype) {
  check_keys(named, {"endian"});
  Codec codec{.kind = Kind::bytes};
  if (named.configuration.contains("endian"))
    codec.is_big_endian = word(named, "endian", {"little", "big"}) == "big";
  else if (itemsize(dtype) > 1)
    refuse("says no endian of its codec 'bytes', which " + name(dtype) + " needs");
  return codec;
}
Codec read_transpose(const Named& named, std::size_t ndim) {
  check_keys(named, {"order"});
  Codec codec{.kind = Kind::transpose};
  const Json& order = member(named.configuration, "order", "its codec 'transpose'");
  std::set<int> seen;
  if (!order.is_array() || order.size() != ndim)
    refuse("has no order of " + std::to_string(ndim) + " dims in its codec 'transpose'");
  for (const Json& dim : order) {
    if (!dim.is_number_integer() || dim < 0 || dim >= ndim || !seen.insert(dim.get<int>()).second)
      refuse("has the order " + value_text(order).substr(0, 80) + " in its codec 'transpose'");
    codec.order.push_back(dim.get<int>());
  }
  return codec;
}
Codec read_zstd(const Named& named) {
  check_keys(named, {"level", "checksum"});
  Codec codec{.kind = Kind::zstd, .level = small_number(named, "level", -131072, 22, 0)};
  const auto checksum = named.configuration.find("checksum");
  if (checksum != named.configuration.end() && !checksum->is_boolean())
    refuse("has a checksum of its codec 'zstd' that is neither true nor false");
  codec.checksum = checksum != named.configuration.end() && checksum->get<bool>();
  return codec;
}
Codec read_blosc(const Named& named) {
  check_keys(named, {"cname", "clevel", "shuffle", "typesize", "blocksize"});
  Codec codec{.kind = Kind::blosc, .level = small_number(named, "clevel", 0, 9, std::nullopt)};
  codec.packer = word(named, "cname", {"lz4", "lz4hc", "blosclz", "snappy", "zlib", "zstd"});
  const auto shuffle = word(named, "shuffle", {"noshuffle", "shuffle", "bitshuffle"});
  codec.shuffle = shuffle == "noshuffle" ? 0 : shuffle == "shuffle" ? 1 : 2;
  codec.typesize = small_number(named, "typesize", 1, 255, 1);
  codec.blocksize = small_number(named, "blocksize", 0, std::numeric_limits<int>::max(), 0);
  return codec;
}

Shape divided(const Shape& shape, const Shape& by) {
  std::vector<std::int64_t> counts;
  for (std::size_t d = 0; d < shape.size(); ++d) counts.push_back(shape[d] / by[d]);
  return Shape(counts);
}
Codec read_sharding(const Named& named, const Shape& shard, Dtype dtype, int depth) {
  check_keys(named, {"chunk_shape", "codecs", "index_codecs", "index_location"});
  if (depth >= deepest_shards) refuse("has shards inside shards more than 4 deep");
  Codec codec{.kind = Kind::sharding};
  const std::string what = "its codec 'sharding_indexed'";
  codec.chunk = read_shape(member(named.configuration, "chunk_shape", what), "the chunk_shape of " + what);
  bool fits = codec.chunk.size() == shard.size();
  for (std::size_t d = 0; fits && d < shard.size(); ++d)
    fits = codec.chunk[d] > 0 && shard[d] % codec.chunk[d] == 0;
  if (!fits)
    refuse("divides shards of " + to_string(shard) + " into chunks of " + to_string(codec.chunk) +
           ", which do not fill them");
  codec.codecs = read_codecs(member(named.configuration, "codecs", what), codec.chunk, dtype, depth + 1);
  std::vector<std::int64_t> index = divided(shard, codec.chunk).vector();
  index.push_back(2);
  codec.index_codecs =
      read_codecs(member(named.configuration, "index_codecs", what), Shape(index), uint64, deepest_shards);
  for (const Codec& step : codec.index_codecs)
    if (step.kind != Kind::bytes && step.kind != Kind::crc32c)
      refuse("packs the index of its shards with " + std::string(name_of(step.kind)) +
             ", so that its length is not known");
  chunk_bytes(Shape(index), uint64);
  codec.index_at_start = named.configuration.contains("index_location") &&
                         word(named, "index_location", {"start", "end"}) == "start";
  return codec;
}

Codec read_codec(const Json& value, const Shape& chunk, Dtype dtype, int depth) {
  const Named named = read_named(value, "a codec");
  if (!named.is_configured && named.name != "bytes" && named.name != "crc32c")
    refuse("has no configuration of its codec " + shown(named.name));
  if (named.name == "bytes") return read_bytes(named, dtype);
  if (named.name == "transpose") return read_transpose(named, chunk.size());
  if (named.name == "sharding_indexed") return read_sharding(named, chunk, dtype, depth);
  if (named.name == "zstd") return read_zstd(named);
  if (named.name == "blosc") return read_blosc(named);
  if (named.name == "gzip") {
    check_keys(named, {"level"});
    return {.kind = Kind::gzip, .level = small_number(named, "level", 0, 9, 5)};
  }
  if (named.name == "crc32c") {
    check_keys(named, {});
    return {.kind = Kind::crc32c};
  }
  refuse("uses the codec " + shown(named.name) +
         ", which tessera does not have (it has bytes, transpose, sharding_indexed, crc32c, zstd, gzip, "
         "blosc)");
}

Shape turned(const Shape& shape, const std::vector<int>& order) {
  std::vector<std::int64_t> extents;
  for (const int d : order) extents.push_back(shape[static_cast<std::size_t>(d)]);
  return Shape(extents);
}

}  // namespace

const char* name_of(Kind kind) {
  constexpr const char* names[] = {"transpose", "bytes", "sharding_indexed", "crc32c", "zstd", "gzip",
                                   "zlib",      "blosc"};
  return names[static_cast<int>(kind)];
}

std::int64_t whole_number(const Json& value, const std::string& what) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer() || (value.is_number_unsigned() && value.get<std::uint64_t>() > most))
    refuse("has " + value_text(value).substr(0, 40) + " in " + what +
           ", which is no whole number below 2^63");
  return value.get<std::int64_t>();
}

Shape read_shape(const Json& value, const std::string& what) {
  if (!value.is_array() || value.size() > most_dims) refuse("has no list of at most 64 numbers for " + what);
  std::vector<std::int64_t> extents;
  for (const Json& part : value) {
    extents.push_back(whole_number(part, what));
    if (extents.back() < 0) refuse("has " + std::to_string(extents.back()) + " in " + what);
  }
  return Shape(std::move(extents));
}

std::int64_t chunk_bytes(const Shape& chunk, Dtype dtype) {
  try {
    return checked_bytes(chunk, dtype, "zarr");
  } catch (const ShapeError&) {
    refuse("claims " + to_string(chunk) + " of " + name(dtype) + ", whose bytes exceed 2^63");
  }
}

std::vector<Codec> read_codecs(const Json& value, const Shape& chunk, Dtype dtype, int depth) {
  if (!value.is_array() || value.size() > most_codecs) refuse("has no list of at most 32 codecs");
  std::vector<Codec> codecs;
  Shape stored = chunk;
  for (const Json& part : value) {
    codecs.push_back(read_codec(part, stored, dtype, depth));
    if (codecs.back().kind == Kind::transpose) stored = turned(stored, codecs.back().order);
  }
  check_codecs(codecs);
  return codecs;
}

void check_codecs(const std::vector<Codec>& codecs) {
  const auto is_serializer = [](const Codec& c) { return c.kind == Kind::bytes || c.kind == Kind::sharding; };
  if (std::count_if(codecs.begin(), codecs.end(), is_serializer) != 1)
    refuse("has not exactly one codec that makes bytes of an array ('bytes' or 'sharding_indexed')");
  bool is_bytes = false;
  for (const Codec& codec : codecs) {
    if (codec.kind == Kind::transpose && is_bytes) refuse("transposes behind the codec that makes bytes");
    if (codec.kind > Kind::sharding && !is_bytes)
      refuse("uses " + std::string(name_of(codec.kind)) + " before the codec that makes bytes");
    is_bytes = is_bytes || is_serializer(codec);
  }
}

}  // namespace tessera::io::zarr
