// A .npz file: which arrays it has, where they lie, and the bytes of those that are packed.
#pragma once
#include <string>
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
  const ZipMember& find(const std::string& array) const;  // IoError that lists what there is
  std::int64_t data_of(const ZipMember&) const;           // where in the file its bytes begin
  // The whole of a deflated member: member.bytes of them, which the caller has room for.
  std::string inflated(const ZipMember&) const;

 private:
  File file_;
  ZipDirectory directory_;
  std::vector<ZipMember> members_;
};

}  // namespace tessera::io
