// .npz: a zip archive of .npy files. Stored members are read and written by all ranks, each its own rows.
#include <zlib.h>

#include <algorithm>
#include <array>

#include "api/memory.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "comm/collectives/collectives.hpp"
#include "graph/op.hpp"
#include "io/archive/zip.hpp"
#include "io/blocks.hpp"
#include "io/npy_file.hpp"

namespace tessera::io {
namespace {

constexpr const char* mend = "write it again with numpy.savez or io::save_npz";

struct Archive {
  File file;
  ZipDirectory directory;
  std::vector<ZipMember> members;
  explicit Archive(const std::string& path) : file(call_text(), path, File::Mode::read) {
    const std::int64_t size = file.bytes(), at_end = std::min(size, zip_most_at_end);
    std::string tail(at_end, '\0');
    file.read(tail.data(), at_end, size - at_end);
    directory = parsed(file, mend, [&] { return parse_zip_end(tail, size); });
    std::string text(directory.bytes, '\0');
    file.read(text.data(), directory.bytes, directory.offset);
    members = parsed(file, mend, [&] { return parse_zip_directory(text, directory); });
  }
  static std::string array_name(const std::string& member) {
    return member.ends_with(".npy") ? member.substr(0, member.size() - 4) : member;
  }
  const ZipMember& find(const std::string& name) const {
    std::vector<std::string> names;
    for (const ZipMember& member : members) {
      if (array_name(member.name) == name) return member;
      names.push_back(array_name(member.name));
    }
    std::vector<std::string> shown;
    for (const auto& known : names) shown.push_back(quoted(known));
    file.fail("has no array " + quoted(name),
              names.empty() ? "it has none at all" : "it has " + join(shown) + did_you_mean(name, names));
  }
  std::int64_t data_of(const ZipMember& member) const {
    std::string first(zip_local_bytes, '\0');
    file.read(first.data(), zip_local_bytes, member.header);
    return parsed(file, mend, [&] { return parse_zip_local(first, member, directory); });
  }
};

// The whole of a deflated member.
std::string inflated(const Archive& archive, const ZipMember& member) {
  const auto damaged = [&](const std::string& what) {
    archive.file.fail("has a damaged member " + quoted(member.name) + ": " + what, mend);
  };
  constexpr std::int64_t best_ratio = 1032;  // of deflate
  if (member.bytes > 64 + member.stored_bytes * best_ratio) damaged("it claims more bytes than it can hold");
  check_memory(member.bytes, call_text() + " of " + quoted(member.name));
  std::string content(member.bytes, '\0'), piece;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) damaged("zlib cannot start");
  const std::int64_t start = archive.data_of(member);
  std::int64_t taken = 0, filled = 0;
  int state = Z_OK;
  constexpr std::int64_t step = 1 << 20;
  while (state == Z_OK) {
    if (stream.avail_in == 0 && taken < member.stored_bytes) {
      piece.resize(std::min(step, member.stored_bytes - taken));
      archive.file.read(piece.data(), static_cast<std::int64_t>(piece.size()), start + taken);
      taken += static_cast<std::int64_t>(piece.size());
      stream.next_in = reinterpret_cast<Bytef*>(piece.data());
      stream.avail_in = static_cast<uInt>(piece.size());
    }
    const std::int64_t room = std::min(step, member.bytes - filled);
    unsigned char nothing = 0;
    stream.next_out = room > 0 ? reinterpret_cast<Bytef*>(content.data() + filled) : &nothing;
    stream.avail_out = room > 0 ? static_cast<uInt>(room) : 1;
    const auto before = stream.avail_out;
    state = inflate(&stream, Z_NO_FLUSH);
    filled += before - stream.avail_out;
    if (filled > member.bytes) break;
  }
  inflateEnd(&stream);
  if (state != Z_STREAM_END || filled != member.bytes) damaged("its data do not unpack to their size");
  uLong sum = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  if (sum != member.crc) damaged("its checksum is another one");
  return content;
}

// A member, ready to be read as a .npy file.
struct OpenMember {
  std::optional<Archive> archive;
  std::optional<File> unpacked;
  NpyHeader header;
  OpenMember(const std::string& path, const std::string& name) {
    archive.emplace(path);
    const ZipMember& member = archive->find(name);
    if (member.is_deflated) unpacked.emplace(call_text(), path, inflated(*archive, member));
    header = read_npy_header(file(), member.is_deflated ? 0 : archive->data_of(member), member.bytes);
  }
  const File& file() const { return unpacked ? *unpacked : archive->file; }
};

Array load(const std::string& path, const std::string& array, const std::optional<Sharding>& sharding) {
  std::optional<OpenMember> member;
  Reader reader;
  reader.header = [&] {
    member.emplace(path, array);
    return npy_file_info(member->header);
  };
  reader.block = [&](const Box& box, std::byte* out) {
    read_npy_box(member->file(), member->header, box, out);
  };
  return load_blocks(quoted(path) + ", array " + quoted(array), sharding, reader);
}

// What is written: for each array its member and the text between the local header and the values.
struct Plan {
  std::vector<ZipMember> members;
  std::vector<std::string> headers;
  std::vector<std::int64_t> values;  // places of the arrays' values
  std::int64_t end = 0;
  explicit Plan(const std::map<std::string, Array>& arrays) {
    for (const auto& [name, x] : arrays) {
      ZipMember member;
      member.name = name + ".npy";
      member.header = end;
      headers.push_back(npy_header_text(x.shape(), x.dtype()));
      values.push_back(end + zip_local_header_bytes(member.name) +
                       static_cast<std::int64_t>(headers.back().size()));
      member.bytes = member.stored_bytes = static_cast<std::int64_t>(headers.back().size()) + x.nbytes();
      end = values.back() + x.nbytes();
      members.push_back(std::move(member));
    }
  }
  void write(const std::string& temporary) const {
    File file(call_text(), temporary, File::Mode::create);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const std::string text = zip_local_header(members[i]) + headers[i];
      file.write(text.data(), static_cast<std::int64_t>(text.size()), members[i].header);
    }
    file.resize(end);
    file.sync();
  }
};

// The checksum of an array's values, which lie in rows: each rank sums its own, and the sums are put
// together in the order of the rows.
std::uint32_t sum_of_values(const Array& x, std::uint32_t of_header) {
  const OwnBlock own = own_block(x);
  const bool counts = own.writes && !is_empty(own.box);
  const std::int64_t bytes =
      counts ? box_elements(own.box) * static_cast<std::int64_t>(itemsize(x.dtype())) : 0;
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(own.data), static_cast<z_size_t>(bytes));
  using Part = std::array<std::int64_t, 3>;  // first row, bytes, sum
  const Part mine{counts && !own.box.empty() ? own.box[0].start : 0, bytes, static_cast<std::int64_t>(sum)};
  std::vector<Part> parts(comm::world().size());
  comm::all_gather(comm::world(), mine.data(), sizeof mine, parts.data());
  std::erase_if(parts, [](const Part& part) { return part[1] == 0; });
  std::sort(parts.begin(), parts.end());
  uLong total = of_header;
  for (const auto& [row, length, part] : parts)
    total = crc32_combine(total, static_cast<uLong>(part), static_cast<z_off_t>(length));
  return static_cast<std::uint32_t>(total);
}

void finish(const Team& team, const std::string& temporary, const std::vector<Array>& placed, Plan& plan) {
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const auto& text = plan.headers[i];
    plan.members[i].crc = sum_of_values(
        placed[i],
        static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(text.data()), text.size())));
  }
  team.once([&] {
    File file(call_text(), temporary, File::Mode::write);
    for (const ZipMember& member : plan.members)
      file.write(&member.crc, sizeof member.crc, member.header + zip_crc_offset());
    const std::string directory = zip_directory(plan.members, plan.end);
    file.write(directory.data(), static_cast<std::int64_t>(directory.size()), plan.end);
    file.sync();
  });
}

}  // namespace

void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
              std::source_location where) {
  const Call call("save_npz", where);
  std::vector<Array> values;
  std::string details = ", arrays";
  for (const auto& [name, x] : arrays) {
    constexpr std::size_t longest = 60000;
    if (name.empty() || name.size() > longest || name.find('\0') != std::string::npos)
      throw ArgumentError(call_text() + ": " + quoted(name.substr(0, 40)) +
                          " cannot be the name of an array in a file; use one of 1 to 60000 characters");
    values.push_back(x);
    details += " " + quoted(name);
  }
  for (const Array& x : values) check_usable(x);
  Plan plan(arrays);
  save_many(path, details, values,
            {[&](const std::string& temporary, const std::string&) {
               plan.write(temporary);
               return plan.values;
             },
             [&](const Team& team, const std::string& temporary, const std::vector<Array>& placed) {
               finish(team, temporary, placed, plan);
             },
             true});
}

Array load_npz(const std::string& path, const std::string& array, const Sharding& sharding,
               std::source_location where) {
  const Call call("load_npz", where);
  return load(path, array, sharding);
}
Array load_npz(const std::string& path, const std::string& array, std::source_location where) {
  const Call call("load_npz", where);
  return load(path, array, std::nullopt);
}

std::map<std::string, FileInfo> npz_info(const std::string& path, std::source_location where) {
  const Call call("npz_info", where);
  const Archive archive(path);
  std::map<std::string, FileInfo> found;
  for (const ZipMember& member : archive.members) {
    const std::string name = Archive::array_name(member.name);
    FileInfo info = npy_file_info(OpenMember(path, name).header);
    info.detail += member.is_deflated ? ", deflated" : ", stored";
    found.emplace(name, std::move(info));
  }
  return found;
}

}  // namespace tessera::io
