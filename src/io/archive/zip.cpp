#include "io/archive/zip.hpp"

#include <tessera/error.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "base/text.hpp"

namespace tessera::io {
namespace {

constexpr std::uint32_t local_mark = 0x04034b50, record_mark = 0x02014b50, end_mark = 0x06054b50,
                        end64_mark = 0x06064b50, locator_mark = 0x07064b50;
constexpr std::uint32_t full32 = 0xffffffff;
constexpr std::uint16_t zip64_field = 1, encrypted_flag = 0x1, patched_flag = 0x20,
                        strongly_encrypted_flag = 0x40;
constexpr int newest_version = 63;  // of the format, in the specification
constexpr std::size_t end_bytes = 22, locator_bytes = 20, end64_bytes = 56, record_bytes = 46;

[[noreturn]] void refuse_archive(const std::string& facts) {
  throw IoError(facts + "; write it again, or copy it again");
}

// Reads consecutive little-endian numbers.
class Fields {
 public:
  explicit Fields(std::string_view text) : text_(text) {}
  std::uint64_t next(std::size_t bytes) {
    if (bytes > text_.size() - at_) refuse_archive("is no whole zip archive: a record is cut short");
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(text_[at_ + i])} << (8 * i);
    at_ += bytes;
    return value;
  }
  std::uint16_t u16() { return static_cast<std::uint16_t>(next(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(next(4)); }
  std::int64_t place() {  // an offset of 64 bits
    const auto value = next(8);
    if (value > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / 2)
      refuse_archive("is a damaged zip archive: it claims a place beyond 2^62");
    return static_cast<std::int64_t>(value);
  }
  std::string_view text(std::size_t bytes) {
    if (bytes > text_.size() - at_) refuse_archive("is no whole zip archive: a record is cut short");
    at_ += bytes;
    return text_.substr(at_ - bytes, bytes);
  }
  bool is_at_end() const { return at_ == text_.size(); }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

void put(std::string& text, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i) & 0xff);
}

// Members that share bytes would be a damaged file or one that unpacks to far more than it holds.
void set_ends(std::vector<ZipMember>& members, std::int64_t directory) {
  std::vector<ZipMember*> backwards;
  for (ZipMember& member : members) backwards.push_back(&member);
  std::stable_sort(backwards.begin(), backwards.end(),
                   [](const ZipMember* a, const ZipMember* b) { return a->header > b->header; });
  for (ZipMember* member : backwards) member->end = std::exchange(directory, member->header);
}

// Reads the end record of a zip64 archive, which holds the 64-bit numbers and precedes the ordinary one.
ZipDirectory parse_end64(std::string_view tail, std::size_t end, std::int64_t file_bytes) {
  if (end < locator_bytes) refuse_archive("is no whole zip archive: its 64-bit end record is missing");
  Fields locator(tail.substr(end - locator_bytes, locator_bytes));
  if (locator.u32() != locator_mark)
    refuse_archive("is no whole zip archive: its 64-bit end record is missing");
  locator.u32();
  const std::int64_t place = locator.place(),
                     tail_start = file_bytes - static_cast<std::int64_t>(tail.size());
  if (place < tail_start || place + static_cast<std::int64_t>(end64_bytes) > file_bytes)
    refuse_archive("is a damaged zip archive: its 64-bit end record lies elsewhere");
  Fields record(tail.substr(static_cast<std::size_t>(place - tail_start), end64_bytes));
  if (record.u32() != end64_mark) refuse_archive("is a damaged zip archive: its 64-bit end record is none");
  record.place(), record.u32(), record.u32(), record.u32(), record.place();
  ZipDirectory found;
  found.members = record.place();
  found.bytes = record.place();
  found.offset = record.place();
  return found;
}

// Reads the 64-bit sizes from the extra field; they replace 32-bit sizes that are all ones.
void read_extra(std::string_view text, ZipMember& member, bool wants_bytes, bool wants_stored,
                bool wants_header) {
  Fields extra(text);
  while (!extra.is_at_end()) {
    const auto id = extra.u16();
    Fields field(extra.text(extra.u16()));
    if (id != zip64_field) continue;
    if (wants_bytes) member.bytes = field.place();
    if (wants_stored) member.stored_bytes = field.place();
    if (wants_header) member.header = field.place();
    return;
  }
  refuse_archive("is a damaged zip archive: the 64-bit sizes of " + in_quotes(member.name) + " are missing");
}

ZipMember read_record(Fields& fields, const ZipDirectory& directory) {
  if (fields.u32() != record_mark)
    refuse_archive("is a damaged zip archive: its directory has no record where one is due");
  fields.u16();
  const auto needed_version = fields.u16() & 0xff;
  const auto flags = fields.u16(), method = fields.u16();
  fields.u32();  // time and date
  ZipMember member;
  member.crc = fields.u32();
  const auto stored = fields.u32(), bytes = fields.u32();
  const std::size_t name_bytes = fields.u16(), extra_bytes = fields.u16(), comment_bytes = fields.u16();
  fields.u16(), fields.u16(), fields.u32();
  const auto header = fields.u32();
  member.name = std::string(fields.text(name_bytes));
  member.stored_bytes = stored, member.bytes = bytes, member.header = header;
  const auto extra = fields.text(extra_bytes);
  fields.text(comment_bytes);
  if (stored == full32 || bytes == full32 || header == full32)
    read_extra(extra, member, bytes == full32, stored == full32, header == full32);
  if (needed_version > newest_version || (flags & patched_flag) != 0)
    throw IoError("holds " + in_quotes(member.name) + " in a form of zip version " +
                  std::to_string(needed_version) + ", beyond stored and deflated; write it with numpy.savez");
  if ((flags & (encrypted_flag | strongly_encrypted_flag)) != 0)
    throw IoError("holds an encrypted member " + in_quotes(member.name) + "; unpack it first");
  if (method != 0 && method != 8)
    throw IoError("holds " + in_quotes(member.name) + " packed by method " + std::to_string(method) +
                  "; write it with numpy.savez or numpy.savez_compressed");
  member.is_deflated = method == 8;
  if (member.header > directory.offset || member.stored_bytes > directory.offset - member.header)
    refuse_archive("is a damaged zip archive: the member " + in_quotes(member.name) +
                   " does not lie before the directory");
  if (!member.is_deflated && member.stored_bytes != member.bytes)
    refuse_archive("is a damaged zip archive: the member " + in_quotes(member.name) +
                   " has two different sizes");
  constexpr std::int64_t best_ratio = 1032, least_bytes = 64;  // of deflate
  if (member.is_deflated && (member.bytes - least_bytes) / best_ratio > member.stored_bytes)
    refuse_archive("is a damaged zip archive: the member " + in_quotes(member.name) +
                   " claims more bytes than it can hold");
  return member;
}

}  // namespace

ZipDirectory parse_zip_end(std::string_view tail, std::int64_t file_bytes) {
  for (std::size_t back = end_bytes; back <= tail.size(); ++back) {
    const std::size_t at = tail.size() - back;
    if (tail[at] != 'P' || Fields(tail.substr(at)).u32() != end_mark) continue;
    Fields end(tail.substr(at));
    end.u32(), end.u16(), end.u16(), end.u16();
    ZipDirectory found;
    found.members = end.u16();
    found.bytes = end.u32();
    found.offset = end.u32();
    if (end.u16() != back - end_bytes) continue;  // a chance match of the signature inside a comment
    std::int64_t directory_end = file_bytes - static_cast<std::int64_t>(back);
    if (found.members == 0xffff || found.bytes == full32 || found.offset == full32) {
      found = parse_end64(tail, at, file_bytes);
      directory_end -= static_cast<std::int64_t>(locator_bytes + end64_bytes);
    }
    if (found.bytes > file_bytes || found.offset > file_bytes - found.bytes)
      refuse_archive("is no whole zip archive: its directory would lie beyond its end");
    if (found.offset + found.bytes != directory_end)
      refuse_archive("is a damaged zip archive: its directory does not lie before its end record");
    if (found.members > found.bytes / static_cast<std::int64_t>(record_bytes))
      refuse_archive("is a damaged zip archive: its directory is too short for its " +
                     std::to_string(found.members) + " members");
    return found;
  }
  refuse_archive("is no whole zip archive: it has no end record");
}

std::vector<ZipMember> parse_zip_directory(std::string_view text, const ZipDirectory& directory) {
  Fields fields(text);
  std::vector<ZipMember> members;
  std::set<std::string> names;
  for (std::int64_t i = 0; i < directory.members; ++i) {
    members.push_back(read_record(fields, directory));
    if (!names.insert(members.back().name).second)
      refuse_archive("is a damaged zip archive: it has two members " + in_quotes(members.back().name));
  }
  if (!fields.is_at_end())
    refuse_archive("is a damaged zip archive: bytes stand behind the " + std::to_string(directory.members) +
                   " records of its directory");
  set_ends(members, directory.offset);
  return members;
}

std::int64_t zip_local_bytes(const ZipMember& member, const ZipDirectory& directory) {
  return std::min(zip_local_header_start + static_cast<std::int64_t>(member.name.size()),
                  directory.offset - member.header);
}

std::int64_t parse_zip_local(std::string_view first_bytes, const ZipMember& member,
                             const ZipDirectory& directory) {
  Fields fields(first_bytes);
  if (fields.u32() != local_mark)
    refuse_archive("is a damaged zip archive: where " + in_quotes(member.name) +
                   " should begin, no header stands");
  fields.text(22);
  const std::int64_t name_bytes = fields.u16(), extra_bytes = fields.u16(),
                     data = member.header + zip_local_header_start + name_bytes + extra_bytes;
  if (first_bytes.substr(zip_local_header_start) != member.name ||
      name_bytes != static_cast<std::int64_t>(member.name.size()))
    refuse_archive("is a damaged zip archive: the member " + in_quotes(member.name) +
                   " has another name in its header");
  if (data > member.end || member.stored_bytes > member.end - data)
    refuse_archive("is a damaged zip archive: the member " + in_quotes(member.name) + " reaches into " +
                   (member.end == directory.offset ? "the directory" : "the next member"));
  return data;
}

namespace {

constexpr std::uint16_t version = 45, utf8_names = 0x800;
constexpr std::uint32_t first_of_1980 =
    0x00210000;  // a constant date (the earliest one), so that equal contents give equal files
constexpr std::int64_t local_extra = 20;

}  // namespace

std::int64_t zip_crc_offset() { return 14; }
std::int64_t zip_local_header_bytes(const std::string& name) {
  return zip_local_header_start + static_cast<std::int64_t>(name.size()) + local_extra;
}

std::string zip_local_header(const ZipMember& member) {
  std::string text;
  put(text, local_mark, 4), put(text, version, 2), put(text, utf8_names, 2), put(text, 0, 2);
  put(text, first_of_1980, 4), put(text, member.crc, 4), put(text, full32, 4), put(text, full32, 4);
  put(text, member.name.size(), 2), put(text, local_extra, 2);
  text += member.name;
  put(text, zip64_field, 2), put(text, 16, 2);
  put(text, static_cast<std::uint64_t>(member.bytes), 8);
  put(text, static_cast<std::uint64_t>(member.stored_bytes), 8);
  return text;
}

std::string zip_directory(const std::vector<ZipMember>& members, std::int64_t offset) {
  std::string text;
  for (const ZipMember& member : members) {
    put(text, record_mark, 4), put(text, version, 2), put(text, version, 2), put(text, utf8_names, 2);
    put(text, 0, 2), put(text, first_of_1980, 4), put(text, member.crc, 4);
    put(text, full32, 4), put(text, full32, 4), put(text, member.name.size(), 2), put(text, 28, 2);
    put(text, 0, 2), put(text, 0, 2), put(text, 0, 2), put(text, 0, 4), put(text, full32, 4);
    text += member.name;
    put(text, zip64_field, 2), put(text, 24, 2);
    put(text, static_cast<std::uint64_t>(member.bytes), 8);
    put(text, static_cast<std::uint64_t>(member.stored_bytes), 8);
    put(text, static_cast<std::uint64_t>(member.header), 8);
  }
  const auto bytes = text.size();
  if (members.empty()) {  // readers recognize an empty archive by the plain end record at its start
    put(text, end_mark, 4), put(text, 0, 8), put(text, 0, 8), put(text, 0, 2);
    return text;
  }
  const auto end64 = static_cast<std::uint64_t>(offset) + bytes;
  put(text, end64_mark, 4), put(text, 44, 8), put(text, version, 2), put(text, version, 2);
  put(text, 0, 4), put(text, 0, 4), put(text, members.size(), 8), put(text, members.size(), 8);
  put(text, bytes, 8), put(text, static_cast<std::uint64_t>(offset), 8);
  put(text, locator_mark, 4), put(text, 0, 4), put(text, end64, 8), put(text, 1, 4);
  put(text, end_mark, 4), put(text, 0, 2), put(text, 0, 2), put(text, 0xffff, 2), put(text, 0xffff, 2);
  put(text, full32, 4), put(text, full32, 4), put(text, 0, 2);
  return text;
}

}  // namespace tessera::io
