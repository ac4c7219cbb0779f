// .npz: a zip archive of .npy files. Stored members are read and written by all ranks, each rank its own
// rows.
#include "api/memory.hpp"
#include "base/call.hpp"
#include "base/text.hpp"
#include "graph/op.hpp"
#include "io/archive/npz_archive.hpp"
#include "io/archive/stored_npy.hpp"
#include "io/blocks.hpp"
#include "io/npy_file.hpp"

namespace tessera::io {
namespace {

// An open member, read like a .npy file.
struct OpenMember {
  std::optional<NpzArchive> archive;
  std::optional<File> unpacked;
  ZipMember facts;
  std::int64_t start = 0;  // of the member in file()
  NpyHeader header;
  OpenMember(const std::string& path, const std::string& name) {
    archive.emplace(File(call_text(), path, File::Mode::read));
    facts = archive->find(name);
    if (facts.is_deflated) {
      check_memory(facts.bytes, call_text() + " of " + in_quotes(facts.name));
      unpacked.emplace(call_text(), path, archive->inflated(facts));
    } else {
      start = archive->data_of(facts);
    }
    header = read_npy_header(file(), start, facts.bytes);
  }
  const File& file() const { return unpacked ? *unpacked : archive->file(); }
};

Array load(const std::string& path, const std::string& array, const std::optional<Sharding>& sharding) {
  std::optional<OpenMember> member;
  const std::string what = in_quotes(path) + ", array " + in_quotes(array);
  const Opened opened = open_blocks(what, sharding, [&] {
    member.emplace(path, array);
    return npy_file_info(member->header);
  });
  if (opened.team.from_first(member && member->unpacked ? 1 : 0) == 1)  // the sum was checked on unpacking
    return read_blocks(opened, what, [&](const Box& box, std::byte* out) {
      read_npy_box(member->file(), member->header, box, out);
    });
  const bool is_fortran = opened.team.from_first(member && member->header.fortran_order ? 1 : 0) == 1;
  const auto source = [&] { return StoredNpy{member->file(), member->facts, member->start, member->header}; };
  return load_stored(opened, what, is_fortran, source);
}

// The layout of a file: for each array its member and the text between the local header and the values;
// then the members that are texts.
struct Plan {
  std::vector<ZipMember> members;
  std::vector<std::string> headers;
  std::vector<std::int64_t> values;  // offsets of the arrays' values
  std::int64_t end = 0;
  Plan(const std::map<std::string, Array>& arrays, const std::map<std::string, std::string>& texts) {
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
    for (const auto& [name, text] : texts) {
      ZipMember member;
      member.name = name + ".npy";
      member.header = end;
      headers.push_back(npy_header_of_text(text.size()) + text);
      member.bytes = member.stored_bytes = std::ssize(headers.back());
      end += zip_local_header_bytes(member.name) + member.bytes;
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

// The checksum of an array's values, combined from each rank's rows.
std::uint32_t sum_of_values(const Array& x, std::uint32_t of_header) {
  const OwnBlock own = own_block(x);
  const bool counts = own.writes && !is_empty(own.box);
  const std::int64_t bytes =
      counts ? box_elements(own.box) * static_cast<std::int64_t>(itemsize(x.dtype())) : 0;
  const SummedPart mine{counts && !own.box.empty() ? own.box[0].start : 0, bytes, crc_of(own.data, bytes)};
  return *combined_sum(all_parts(mine), of_header);  // nullopt cannot occur: one replica of each part writes
}

void finish(const Team& team, const std::string& temporary, const std::vector<Array>& placed, Plan& plan) {
  for (std::size_t i = 0; i < plan.members.size(); ++i) {
    const auto& text = plan.headers[i];
    const auto sum = crc_of(text.data(), std::ssize(text));
    plan.members[i].crc = i < placed.size() ? sum_of_values(placed[i], sum) : sum;
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

void save_npz_with_texts(const std::string& path, const std::map<std::string, Array>& arrays,
                         const std::map<std::string, std::string>& texts) {
  std::vector<Array> values;
  std::string details = ", arrays";
  for (const auto& [name, x] : arrays) {
    constexpr std::size_t longest = 60000;
    if (name.empty() || name.size() > longest || name.find('\0') != std::string::npos)
      throw ArgumentError(call_text() + ": " + in_quotes(name.substr(0, 40)) +
                          " cannot be the name of an array in a file; use one of 1 to 60000 characters");
    values.push_back(x);
    details += " " + in_quotes(name);
  }
  for (const Array& x : values) check_usable(x);
  Plan plan(arrays, texts);
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

void save_npz(const std::string& path, const std::map<std::string, Array>& arrays,
              std::source_location where) {
  const Call call("save_npz", where);
  save_npz_with_texts(path, arrays, {});
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

std::map<std::string, Array> load_npz(const std::string& path, std::source_location where) {
  const Call call("load_npz", where);
  std::string names;
  std::map<std::string, Array> arrays;
  const Team team(call_text() + " of all arrays in " + in_quotes(path));
  team.together([&] {
    for (const auto& [name, info] : npz_info(path, where)) {
      arrays.emplace(name, Array());
      names += in_quotes(name) + " ";
    }
  });
  team.same(call_text(), path, names);
  for (auto& [name, x] : arrays) x = load(path, name, std::nullopt);
  return arrays;
}

std::map<std::string, FileInfo> npz_info(const std::string& path, std::source_location where) {
  const Call call("npz_info", where);
  const NpzArchive archive(File(call_text(), path, File::Mode::read));
  std::map<std::string, FileInfo> found;
  for (const ZipMember& member : archive.members()) {
    const std::string name = NpzArchive::array_name(member.name);
    FileInfo info = npy_file_info(OpenMember(path, name).header);
    info.detail += member.is_deflated ? ", deflated" : ", stored";
    found.emplace(name, std::move(info));
  }
  return found;
}

}  // namespace tessera::io
