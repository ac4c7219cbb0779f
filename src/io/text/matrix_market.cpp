// Matrix Market files: every rank reads the text and keeps its own block.
#include "api/memory.hpp"
#include "base/call.hpp"
#include "io/blocks.hpp"
#include "io/file.hpp"
#include "io/matrix_market_text.hpp"

#include "base/text.hpp"

namespace tessera::io {
namespace {

// Reads the whole text into memory after a check that it fits.
std::string read_checked(const std::string& call, const std::string& path) {
  check_memory(File(call, path, File::Mode::read).bytes(), call + " of " + in_quotes(path));
  return read_text(call, path);
}

struct LoadedText {
  LoadedText(const std::string& call, const std::string& path)
      : bytes(read_checked(call, path)), parsed(bytes, call + ": " + in_quotes(path)) {}
  std::string bytes;
  MatrixMarketText parsed;
  FileInfo info() const {
    const auto& banner = parsed.banner();
    return {Shape{banner.rows, banner.columns}, banner.dtype,
            std::string("matrix market, ") + (banner.coordinate ? "coordinate" : "array")};
  }
};

Array load(const std::string& path, const std::optional<Sharding>& sharding) {
  std::optional<LoadedText> text;
  Reader reader;
  reader.header = [&] {
    text.emplace(call_text(), path);
    return text->info();
  };
  reader.block = [&](const Box& box, std::byte* out) { text->parsed.read(box, out); };
  return load_blocks(in_quotes(path), sharding, reader);
}

}  // namespace

FileInfo matrix_market_info(const std::string& path, std::source_location where) {
  const Call call("matrix_market_info", where);
  return LoadedText(call_text(), path).info();
}

Array load_matrix_market(const std::string& path, const Sharding& sharding, std::source_location where) {
  const Call call("load_matrix_market", where);
  return load(path, sharding);
}
Array load_matrix_market(const std::string& path, std::source_location where) {
  const Call call("load_matrix_market", where);
  return load(path, std::nullopt);
}

}  // namespace tessera::io
