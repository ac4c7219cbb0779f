#include "io/archive/npz_archive.hpp"

#include <zlib.h>

#include <algorithm>

#include "base/text.hpp"

namespace tessera::io {
namespace {

constexpr const char* mend = "write it again with numpy.savez or io::save_npz";
constexpr std::int64_t step = 1 << 20, longest_directory = 64 << 20;

// zlib's state, freed with its owner even if the file cannot be read.
class Inflation {
 public:
  explicit Inflation(std::string& content) : content_(content) {
    state_ = inflateInit2(&stream_, -MAX_WBITS);
  }
  ~Inflation() { inflateEnd(&stream_); }
  Inflation(const Inflation&) = delete;
  Inflation& operator=(const Inflation&) = delete;

  bool goes_on() const { return state_ == Z_OK; }
  bool wants_more() const { return stream_.avail_in == 0; }
  void take(std::string& piece) {
    stream_.next_in = reinterpret_cast<Bytef*>(piece.data());
    stream_.avail_in = static_cast<uInt>(piece.size());
  }
  void unpack() {
    const std::int64_t bytes = static_cast<std::int64_t>(content_.size()),
                       room = std::min(step, bytes - filled_);
    unsigned char beyond = 0;  // receives a byte too many, if there is one
    stream_.next_out = room > 0 ? reinterpret_cast<Bytef*>(content_.data() + filled_) : &beyond;
    stream_.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const auto before = stream_.avail_out;
    state_ = inflate(&stream_, Z_NO_FLUSH);
    filled_ += before - stream_.avail_out;
    if (filled_ > bytes) state_ = Z_BUF_ERROR;
  }
  bool is_whole() const {
    return state_ == Z_STREAM_END && filled_ == static_cast<std::int64_t>(content_.size());
  }

 private:
  std::string& content_;
  z_stream stream_{};
  int state_;
  std::int64_t filled_ = 0;
};

// Refuses archives that begin behind other bytes, as a self-extracting program does; .npz files never do.
void check_start(const File& file) {
  char first[4] = "";
  if (file.bytes() >= 4) file.read(first, 4, 0);
  const std::string_view start(first, 4);
  if (start != "PK\3\4" && start != "PK\5\6")
    file.fail("is a damaged zip archive: it does not begin with a member", mend);
}

}  // namespace

NpzArchive::NpzArchive(File opened) : file_(std::move(opened)) {
  const std::int64_t size = file_.bytes(), at_end = std::min(size, zip_most_at_end);
  std::string tail(at_end, '\0');
  file_.read(tail.data(), at_end, size - at_end);
  directory_ = parsed(file_, mend, [&] { return parse_zip_end(tail, size); });
  if (directory_.bytes > longest_directory)
    file_.fail("claims a directory of " + format_bytes(directory_.bytes),
               "no archive of arrays has one beyond " + format_bytes(longest_directory) + ": " + mend);
  std::string text(directory_.bytes, '\0');
  file_.read(text.data(), directory_.bytes, directory_.offset);
  members_ = parsed(file_, mend, [&] { return parse_zip_directory(text, directory_); });
  check_start(file_);
}

std::string NpzArchive::array_name(const std::string& member) {
  return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
}

const ZipMember& NpzArchive::find(const std::string& name) const {
  std::vector<std::string> names;
  for (const ZipMember& member : members_) {
    if (array_name(member.name) == name) return member;
    names.push_back(array_name(member.name));
  }
  std::vector<std::string> shown;
  for (const auto& known : names) shown.push_back(in_quotes(known));
  file_.fail("has no array " + in_quotes(name),
             names.empty() ? "it has none at all" : "it has " + join(shown) + did_you_mean(name, names));
}

std::int64_t NpzArchive::data_of(const ZipMember& member) const {
  std::string first(zip_local_bytes(member, directory_), '\0');
  file_.read(first.data(), static_cast<std::int64_t>(first.size()), member.header);
  return parsed(file_, mend, [&] { return parse_zip_local(first, member, directory_); });
}

std::string NpzArchive::inflated(const ZipMember& member) const {
  const auto damaged = [&](const std::string& what) {
    file_.fail("has a damaged member " + in_quotes(member.name) + ": " + what, mend);
  };
  const std::int64_t start = data_of(member);
  std::string content(member.bytes, '\0'), piece;
  Inflation inflation(content);
  for (std::int64_t taken = 0; inflation.goes_on(); inflation.unpack()) {
    if (!inflation.wants_more() || taken == member.stored_bytes) continue;
    piece.resize(std::min(step, member.stored_bytes - taken));
    file_.read(piece.data(), static_cast<std::int64_t>(piece.size()), start + taken);
    taken += static_cast<std::int64_t>(piece.size());
    inflation.take(piece);
  }
  if (!inflation.is_whole()) damaged("its data do not unpack to their size");
  if (crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size()) != member.crc)
    damaged("its checksum is another one");
  return content;
}

}  // namespace tessera::io
