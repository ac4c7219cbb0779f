// A .npz file: the list of its arrays, their offsets, and the unpacked bytes of deflated members.
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "io/archive/zip.hpp"
#include "io/file.hpp"

namespace tessera::io {

class NpzArchive {
 public:
  explicit NpzArchive(File);
  static std::string array_name(const std::string& member);  // without .npy
  const File& file() const { return file_; }
  const std::vector<ZipMember>& members() const { return members_; }
  const ZipMember& find(const std::string& array) const;  // IoError that lists the members
  std::int64_t data_of(const ZipMember&) const;           // the file offset of its bytes
  // The unpacked bytes of a deflated member; the caller has checked that member.bytes fit in memory.
  std::string inflated(const ZipMember&) const;
  // The same bytes in pieces, in order; whether they are right is known after the last one.
  void inflate(const ZipMember&, const std::function<void(std::string_view)>& take) const;

 private:
  File file_;
  ZipDirectory directory_;
  std::vector<ZipMember> members_;
};

// save_npz with further members that hold a text without dims, as NumPy stores bytes ('|S3').
void save_npz_with_texts(const std::string& path, const std::map<std::string, Array>& arrays,
                         const std::map<std::string, std::string>& texts);

}  // namespace tessera::io
