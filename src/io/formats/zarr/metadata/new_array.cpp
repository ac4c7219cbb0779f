#include "io/formats/zarr/metadata/new_array.hpp"

#include <tessera/error.hpp>

#include <algorithm>

#include "base/text.hpp"
#include "types/checked.hpp"

namespace tessera::io::zarr {
namespace {

using Kind = Codec::Kind;
constexpr std::int64_t largest_chunk = std::int64_t{64} << 20;

// The largest divisor of n up to `most`; `most` itself if that divisor is less than half of it.
std::int64_t divisor_of(std::int64_t n, std::int64_t most) {
  for (std::int64_t part = most; 2 * part > most && part > 0; --part)
    if (n % part == 0) return part;
  return most;
}

[[noreturn]] void refuse_option(const std::string& call, const std::string& facts) {
  throw ArgumentError(call + ": " + facts);
}

Shape checked_extents(const std::string& call, const char* what, const std::vector<std::int64_t>& extents,
                      const Shape& shape) {
  const bool is_good = extents.size() == shape.size() &&
                       std::all_of(extents.begin(), extents.end(), [](std::int64_t n) { return n > 0; });
  if (!is_good)
    refuse_option(call, std::string(what) + " " + to_string(Shape(extents)) +
                            " do not suit an array of shape " + to_string(shape) +
                            "; give an extent of at least 1 for each dimension");
  return Shape(extents);
}

std::vector<Codec> packing(const std::string& call, const ZarrOptions& options, Dtype dtype) {
  std::vector<Codec> steps{{.kind = Kind::bytes}};
  const std::string& word = options.compression;
  if (word == "zstd") {
    steps.push_back({.kind = Kind::zstd, .level = options.level.value_or(1)});
  } else if (word == "gzip") {
    steps.push_back({.kind = Kind::gzip, .level = options.level.value_or(1)});
  } else if (word == "blosc" || word == "blosc-zstd") {
    const int width = static_cast<int>(itemsize(dtype));
    steps.push_back({.kind = Kind::blosc,
                     .level = options.level.value_or(5),
                     .packer = word == "blosc" ? "lz4" : "zstd",
                     .shuffle = width > 1 ? 1 : 0,
                     .typesize = width});
  } else if (word != "none") {
    refuse_option(call, "there is no compression " + in_quotes(word) +
                            did_you_mean(word, {"zstd", "gzip", "blosc", "none"}) +
                            "; give zstd, gzip, blosc, blosc-zstd or none");
  }
  const int least = word == "zstd" ? -7 : 0, most = word == "zstd" ? 22 : 9;
  if (word != "none" && (steps.back().level < least || steps.back().level > most))
    refuse_option(call, "the level " + std::to_string(steps.back().level) + " of " + word +
                            " is not between " + std::to_string(least) + " and " + std::to_string(most));
  if (options.checksum) steps.push_back({.kind = Kind::crc32c});
  return steps;
}

Codec sharding_of(const std::string& call, const Shape& shard, const Shape& chunk, std::vector<Codec> inner) {
  for (std::size_t d = 0; d < shard.size(); ++d)
    if (shard[d] % chunk[d] != 0)
      refuse_option(call, "shards " + to_string(shard) + " are no multiples of chunks " + to_string(chunk) +
                              "; choose extents that divide those of the shards");
  Codec sharding{.kind = Kind::sharding};
  sharding.chunk = chunk;
  sharding.codecs = std::move(inner);
  sharding.index_codecs = {{.kind = Kind::bytes}, {.kind = Kind::crc32c}};
  return sharding;
}

Element fill_of(const std::string& call, const ZarrOptions& options, Dtype dtype) {
  if (!options.fill) return {};
  const double fill = *options.fill;
  try {
    if (dtype == bool_) return read_fill(fill != 0, dtype);
    if (is_complex(dtype)) return read_fill(Json::array({fill, 0.0}), dtype);
    return read_fill(fill, dtype);
  } catch (const IoError&) {
    refuse_option(call, "the fill value " + value_text(fill) + " is no " + name(dtype));
  }
}

}  // namespace

Shape chosen_chunk(const Shape& block, std::int64_t itemsize) {
  std::vector<std::int64_t> extents;
  for (const auto extent : block) extents.push_back(std::max<std::int64_t>(extent, 1));
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::int64_t bytes = checked_bytes(Shape(extents), static_cast<std::size_t>(itemsize), "zarr");
    if (bytes <= largest_chunk) break;
    extents[d] =
        divisor_of(extents[d], std::max<std::int64_t>(1, extents[d] / ((bytes - 1) / largest_chunk + 1)));
  }
  return Shape(extents);
}

ArrayMeta new_array(const std::string& call, const Shape& shape, Dtype dtype, const Sharding& sharding,
                    const ZarrOptions& options) {
  ArrayMeta meta;
  meta.shape = shape;
  meta.dtype = dtype;
  meta.fill = fill_of(call, options, dtype);
  if (!options.dims.empty() && options.dims.size() != shape.size())
    refuse_option(call, format_count(std::ssize(options.dims), "name") + " of dims for an array of shape " +
                            to_string(shape) + "; give one for each dimension, \"\" for none");
  meta.dims = options.dims;
  const bool is_sharded = !options.shards.empty();
  const Shape block =
      is_sharded ? checked_extents(call, "shards", options.shards, shape) : sharding.shard_shape(shape);
  const Shape chunk = options.chunks.empty() ? chosen_chunk(block, static_cast<std::int64_t>(itemsize(dtype)))
                                             : checked_extents(call, "chunks", options.chunks, shape);
  meta.chunk = is_sharded ? block : chunk;
  meta.codecs = packing(call, options, dtype);
  if (is_sharded) meta.codecs = {sharding_of(call, block, chunk, std::move(meta.codecs))};
  checked_bytes(meta.chunk, dtype, call);
  return meta;
}

std::string options_text(const ZarrOptions& options) {
  return ", chunks " + to_string(Shape(options.chunks)) + ", shards " + to_string(Shape(options.shards)) +
         ", " + options.compression + (options.level ? " " + std::to_string(*options.level) : "") +
         (options.checksum ? ", checksum" : "") +
         (options.fill ? ", fill " + value_text(*options.fill) : "") +
         (options.dims.empty() ? "" : ", dims " + join(options.dims));
}

}  // namespace tessera::io::zarr
