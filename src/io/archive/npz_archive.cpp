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
  explicit Inflation(std::int64_t bytes) : bytes_(bytes), window_(std::min(bytes, step) + 1, '\0') {
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
  // The next bytes, valid until the next call. There is room for a byte too many, if there is one.
  std::string_view unpacked() {
    const std::int64_t room = std::min(std::ssize(window_), bytes_ - filled_ + 1);
    stream_.next_out = reinterpret_cast<Bytef*>(window_.data());
    stream_.avail_out = static_cast<uInt>(room);
    state_ = inflate(&stream_, Z_NO_FLUSH);
    const std::int64_t count = room - stream_.avail_out;
    filled_ += count;
    if (filled_ > bytes_) state_ = Z_BUF_ERROR;
    const std::string_view found = std::string_view(window_).substr(0, static_cast<std::size_t>(count));
    sum_ = crc32_z(sum_, reinterpret_cast<const Bytef*>(found.data()), found.size());
    return filled_ > bytes_ ? std::string_view() : found;
  }
  bool is_whole() const { return state_ == Z_STREAM_END && filled_ == bytes_; }
  std::uint32_t sum() const { return static_cast<std::uint32_t>(sum_); }

 private:
  std::int64_t bytes_, filled_ = 0;
  std::string window_;
  z_stream stream_{};
  int state_;
  uLong sum_ = 0;
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

void NpzArchive::inflate(const ZipMember& member, const std::function<void(std::string_view)>& take) const {
  const auto damaged = [&](const std::string& what) {
    file_.fail("has a damaged member " + in_quotes(member.name) + ": " + what, mend);
  };
  const std::int64_t start = data_of(member);
  std::string piece;
  Inflation inflation(member.bytes);
  for (std::int64_t taken = 0; inflation.goes_on(); take(inflation.unpacked())) {
    if (!inflation.wants_more() || taken == member.stored_bytes) continue;
    piece.resize(std::min(step, member.stored_bytes - taken));
    file_.read(piece.data(), static_cast<std::int64_t>(piece.size()), start + taken);
    taken += static_cast<std::int64_t>(piece.size());
    inflation.take(piece);
  }
  if (!inflation.is_whole()) damaged("its data do not unpack to their size");
  if (inflation.sum() != member.crc) damaged("its checksum is another one");
}

std::string NpzArchive::inflated(const ZipMember& member) const {
  std::string content;
  content.reserve(member.bytes);
  inflate(member, [&](std::string_view piece) { content += piece; });
  return content;
}

}  // namespace tessera::io
