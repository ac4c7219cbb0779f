// A file that one rank reads or writes at given offsets. Failures are IoErrors with path, facts and mend on
// this rank alone; team.hpp raises them on all ranks.
#pragma once
#include <tessera/error.hpp>
#include <tessera/shape.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "types/box.hpp"
#include "types/buffer.hpp"

namespace tessera::io {

// The system refuses an access (EIO, ESTALE, EACCES, EMFILE ...), which tells nothing about the file's
// contents and may be temporary. A missing file, a wrong length or wrong bytes are plain IoErrors.
struct AccessError : IoError {
  using IoError::IoError;
};
[[noreturn]] void raise_access(int error,
                               const std::string& text);  // AccessError, or IoError if it is missing

// Repeats a system call as long as a signal interrupts it.
template <class Call> auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class File {
 public:
  enum class Mode { read, read_if_there, write, create };
  // `call` opens every message: "load_npy". Only regular files: reading from a pipe or a directory is
  // refused.
  File(std::string call, std::string path, Mode mode);
  // A read-only file whose contents are these bytes in memory.
  File(std::string call, std::string path, std::string content);
  ~File();
  File(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  bool is_there() const { return descriptor_ >= 0; }  // false only after read_if_there
  std::int64_t bytes() const;
  void read(void* out, std::int64_t bytes, std::int64_t offset) const;  // all of it, or IoError
  // The bytes where the system's cache has them, without a copy; nothing if it has not all of them or a copy
  // costs as little. Bytes that the file loses later read as zeros: see has_lost_bytes.
  Buffer mapped(std::int64_t bytes, std::int64_t offset) const;
  void write(const void* in, std::int64_t bytes, std::int64_t offset);
  void resize(std::int64_t bytes);
  void sync();        // to the disk; network file systems report a full disk here
  void begin_sync();  // the system starts to write what it holds back; failures show in sync
  [[noreturn]] void fail(const std::string& facts, const std::string& mend) const;
  const std::string& path() const { return path_; }

 private:
  [[noreturn]] void fail_errno(const char* what) const;
  std::int64_t copy_of_content(void* out, std::int64_t bytes, std::int64_t offset) const;
  std::string call_, path_, content_;
  int descriptor_ = -1;
};

// Whether a buffer of File::mapped was read where the file had been cut short.
bool has_lost_bytes(const Buffer& mapped);

// Parsers of headers throw fact and mend; this adds the call and the path in front. `mend` is used for errors
// without one.
template <class Parse> auto parsed(const File& file, const char* mend, Parse parse) {
  try {
    return parse();
  } catch (const IoError& error) {
    const std::string text = error.what();
    const auto cut = text.rfind("; ");
    file.fail(text.substr(0, cut), cut == std::string::npos ? mend : text.substr(cut + 2));
  }
}

// The names in a folder, in alphabetical order; empty if the folder does not exist. AccessError.
std::vector<std::string> names_in(const std::string& call, const std::string& folder);
std::string read_text(const std::string& call, const std::string& path);
// Syncs the folder of `path`, so that a rename or a new file in it reaches the disk.
void sync_folder_of(const std::string& call, const std::string& path);
void sync_folders(const std::string& call, const std::vector<std::string>& folders);
// Removes a folder with all that is in it, as far as the system allows; of a link the link alone. Files are
// removed side by side: where freed blocks are discarded at once the device is waited for at each of them.
void remove_folder(const std::string& folder);

// A dense row-major array inside a file.
struct DenseInFile {
  Shape shape;
  std::int64_t itemsize = 0, offset = 0;  // of its first byte
};
// Reads or writes the box from or to dense memory. Neighbouring rows of a narrow box are read in one call,
// including the gaps, if that is cheaper than a call per row.
void read_box(const File&, const DenseInFile&, const Box&, std::byte* out);
Buffer mapped_box(const File&, const DenseInFile&, const Box&);  // nothing if it is not one run
void write_box(File&, const DenseInFile&, const Box&, const std::byte* in);
// Whether the box is one run of bytes in the file; an empty box is.
// The memory that reading a box takes besides the box: short runs are read with the gaps between them.
std::int64_t window_bytes_of(const DenseInFile&, const Box&);
bool is_one_run(const DenseInFile&, const Box&);
// The longest run of bytes of the box that is contiguous in the file.
std::int64_t run_bytes(const DenseInFile&, const Box&);

}  // namespace tessera::io
