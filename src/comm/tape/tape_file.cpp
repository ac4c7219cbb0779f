#include "comm/tape/tape_file.hpp"

#include <tessera/error.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.hpp"

namespace tessera::comm {
namespace {

constexpr std::string_view tape_magic = "tessera recording 1\n";

[[noreturn]] void refuse_tape(const std::string& path, const std::string& why) {
  throw IoError("the recording " + path + " " + why);
}

// The head as one text: the number of its bytes, then names and values, each ended by a NUL.
std::string packed(const TapeHead& head) {
  std::string text;
  for (const auto& [name, value] : head) text.append(name).append(1, '\0').append(value).append(1, '\0');
  const auto bytes = static_cast<std::uint64_t>(text.size());
  std::string all(tape_magic);
  all.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
  return all + text;
}

// A file in memory.
struct Mapped {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
};
Mapped map_tape(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) refuse_tape(path, std::string("cannot be opened: ") + std::strerror(errno));
  struct stat facts {};
  void* mapped = MAP_FAILED;
  if (fstat(file, &facts) == 0 && facts.st_size > 0)
    mapped = mmap(nullptr, static_cast<std::size_t>(facts.st_size), PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) refuse_tape(path, "is empty or cannot be read");
  return {static_cast<const std::byte*>(mapped), static_cast<std::size_t>(facts.st_size)};
}

// The end of the head; 0 if this is no recording.
std::size_t end_of_head(const Mapped& file) {
  const std::size_t start = tape_magic.size() + sizeof(std::uint64_t);
  if (file.bytes < start || std::memcmp(file.data, tape_magic.data(), tape_magic.size()) != 0) return 0;
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, file.data + tape_magic.size(), sizeof bytes);
  return bytes > file.bytes - start ? 0 : start + static_cast<std::size_t>(bytes);
}

const char* word_of(TapeKind kind) {
  switch (kind) {
    case TapeKind::send: return "message";
    case TapeKind::receive: return "message";
    case TapeKind::all_reduce: return "all-reduce";
    case TapeKind::all_gather: return "all-gather";
    case TapeKind::all_gather_v: return "all-gather of uneven parts";
    case TapeKind::reduce_scatter: return "reduce-scatter";
    case TapeKind::broadcast: return "broadcast";
    case TapeKind::barrier: return "barrier";
    case TapeKind::communicator: return "making of a group";
    default: return "fact about the job";
  }
}

}  // namespace

std::string tape_path(const std::string& folder, int rank) {
  return folder + "/rank-" + std::to_string(rank) + ".tape";
}

TapeHead read_tape_head(const std::string& path) {
  const Mapped file = map_tape(path);
  const std::size_t end = end_of_head(file);
  const auto* text = reinterpret_cast<const char*>(file.data) + tape_magic.size() + sizeof(std::uint64_t);
  const std::string all = end == 0 ? "" : std::string(text, reinterpret_cast<const char*>(file.data) + end);
  munmap(const_cast<std::byte*>(file.data), file.bytes);
  if (end == 0) refuse_tape(path, "is not one of this version of tessera, or its beginning is missing");
  TapeHead head;
  for (std::size_t at = 0; at < all.size();) {
    const std::string name(all.c_str() + at);
    at += name.size() + 1;
    const std::string value(at < all.size() ? all.c_str() + at : "");
    at += value.size() + 1;
    head.emplace_back(name, value);
  }
  return head;
}

std::string value_of(const TapeHead& head, std::string_view name) {
  for (const auto& [key, value] : head)
    if (key == name) return value;
  return "";
}

TapeWriter::TapeWriter(std::string path, const TapeHead& head, std::int64_t most_bytes)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)),
      most_bytes_(most_bytes) {
  const std::string text = packed(head);
  if (file_ < 0 || !write_all(text.data(), text.size()))
    refuse_tape(path_, std::string("cannot be written: ") + std::strerror(errno));
}

TapeWriter::~TapeWriter() {
  if (file_ >= 0) close(file_);
}

bool TapeWriter::write_all(const void* data, std::size_t bytes) const {
  const auto* at = static_cast<const char*>(data);
  while (bytes > 0) {
    const auto done = ::write(file_, at, bytes);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    at += done, bytes -= static_cast<std::size_t>(done);
  }
  return true;
}

std::string TapeWriter::write(TapeEntry entry, std::string_view purpose, const void* payload) {
  entry.purpose_bytes = static_cast<std::int32_t>(purpose.size());
  const auto bytes = static_cast<std::int64_t>(sizeof entry + purpose.size() + entry.payload_bytes);
  if (written_ + bytes > most_bytes_) {
    TapeEntry end;
    end.kind = TapeKind::limit;
    write_all(&end, sizeof end);
    return "the limit of " + format_bytes(most_bytes_) + " a rank (TESSERA_RECORD_LIMIT) is reached";
  }
  std::string head(reinterpret_cast<const char*>(&entry), sizeof entry);
  head += purpose;
  if (!write_all(head.data(), head.size()) ||
      !write_all(payload, static_cast<std::size_t>(entry.payload_bytes)))
    return path_ + " cannot be written: " + std::strerror(errno);
  written_ += bytes;
  return "";
}

TapeReader::TapeReader(const std::string& path) {
  const Mapped file = map_tape(path);
  data_ = file.data, bytes_ = file.bytes;
  std::size_t place = end_of_head(file);
  if (place == 0) refuse_tape(path, "is not one of this version of tessera, or its beginning is missing");
  TapeEntry entry;
  while (place + sizeof entry <= bytes_) {
    std::memcpy(&entry, data_ + place, sizeof entry);
    const std::size_t rest = bytes_ - place - sizeof entry;
    if (entry.purpose_bytes < 0 || static_cast<std::size_t>(entry.purpose_bytes) > rest ||
        entry.payload_bytes > rest - static_cast<std::size_t>(entry.purpose_bytes))
      break;  // the rank was killed while it wrote this one
    if (entry.kind == TapeKind::limit)
      was_limited_ = true;
    else
      places_.emplace(entry.id, place);
    place += sizeof entry + static_cast<std::size_t>(entry.purpose_bytes) +
             static_cast<std::size_t>(entry.payload_bytes);
  }
}

TapeReader::~TapeReader() { munmap(const_cast<std::byte*>(data_), bytes_); }

TapeReader::Found TapeReader::at(std::size_t place) const {
  Found found;
  std::memcpy(&found.entry, data_ + place, sizeof found.entry);
  const std::byte* purpose = data_ + place + sizeof found.entry;
  found.purpose.assign(reinterpret_cast<const char*>(purpose),
                       static_cast<std::size_t>(found.entry.purpose_bytes));
  found.payload = purpose + found.entry.purpose_bytes;
  return found;
}

bool TapeReader::take(std::uint64_t id, Found& found) {
  const auto known = places_.find(id);
  if (known == places_.end()) return false;
  found = at(known->second);
  places_.erase(known);
  return true;
}

bool TapeReader::first_left(Found& found, const std::unordered_set<std::uint64_t>& awaited) const {
  std::size_t first = bytes_;
  for (const auto& [id, place] : places_)
    if (!awaited.contains(id)) first = std::min(first, place);
  if (first < bytes_) found = at(first);
  return first < bytes_;
}

std::string text_of(const TapeEntry& entry, std::string_view purpose) {
  std::string text = std::string(word_of(entry.kind)) + " number " + std::to_string(entry.number + 1);
  if (entry.kind == TapeKind::send) text += " to rank " + std::to_string(entry.peer);
  if (entry.kind == TapeKind::receive) text += " from rank " + std::to_string(entry.peer);
  if (entry.kind == TapeKind::broadcast) text += " from rank " + std::to_string(entry.peer);
  const auto bytes = std::max(entry.result_bytes, entry.sent_bytes);
  if (bytes > 0) text += " of " + format_count(bytes, "byte");
  text += " among " + format_count(entry.ranks, "rank");
  return purpose.empty() ? text : text + ", for " + std::string(purpose);
}

}  // namespace tessera::comm
