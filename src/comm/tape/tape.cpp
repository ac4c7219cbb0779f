#include "comm/tape/tape.hpp"

#include <tessera/error.hpp>

#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <utility>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "comm/tape/mpi_calls.hpp"
#include "comm/watch/waiting.hpp"

// For a debugger's breakpoint: a replay calls this where its recording ends, or where the program differs
// from it.
extern "C" __attribute__((noinline, visibility("default"))) void tessera_replay_ends() { asm volatile(""); }

namespace tessera::comm {
namespace {

constexpr std::int64_t most_kept_of_root = 65536;  // bytes of a broadcast that the sending rank records

double tape_clock_s() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

template <class... Numbers> std::uint64_t id_of(std::uint64_t key, Numbers... numbers) {
  ((key = mix(key, static_cast<std::uint64_t>(static_cast<std::int64_t>(numbers)))), ...);
  return key;
}

[[noreturn]] void end_replay(LogLevel level, const std::string& text, int status) {
  log(level, text);
  std::fflush(nullptr);
  tessera_replay_ends();
  _exit(status);
}

std::function<void()>& own_end() {
  static std::function<void()> end;
  return end;
}

}  // namespace

void at_end_of_tape(std::function<void()> end) { own_end() = std::move(end); }

RankTape::RankTape(std::unique_ptr<TapeWriter> writer, std::unique_ptr<TapeReader> reader)
    : writer_(std::move(writer)), reader_(std::move(reader)) {}

RankTape::Channel& RankTape::channel(MPI_Comm comm) {
  const auto found = channels_.find(number_of(comm));
  if (found == channels_.end()) throw InternalError("a communicator is not on this rank's recording");
  return found->second;
}

void RankTape::add_world(MPI_Comm world, int rank, int size) {
  channels_[number_of(world)] = {0x7e55e7a, rank, size, 0, 0, {}, {}};
}

RankTape::Call RankTape::call_of_child(MPI_Comm parent, const std::vector<int>& ranks, int tag) {
  Channel& from = channel(parent);
  Call call;
  call.purpose = current_purpose();
  call.entry.kind = TapeKind::communicator;
  call.entry.number = from.children++;
  call.entry.ranks = from.size;
  call.entry.id = id_of(from.key, TapeKind::communicator, call.entry.number);
  call.entry.detail = static_cast<std::int64_t>(mix(mix_range(7, ranks), static_cast<std::uint64_t>(tag)));
  return call;
}

namespace {
struct ChildFacts {
  std::int32_t rank = 0, size = 1;
};
}  // namespace

void RankTape::add_child(const Call& call, MPI_Comm made, int rank, int size) {
  channels_[number_of(made)] = {call.entry.id, rank, size, 0, 0, {}, {}};
  Call kept = call;
  const ChildFacts facts{rank, size};
  kept.entry.payload_bytes = sizeof facts;
  write(kept, &facts);
}

MPI_Comm RankTape::replay_child(const Call& call) {
  ChildFacts facts;
  Call asked = call;
  asked.result = &facts;
  asked.entry.payload_bytes = sizeof facts;
  answer(asked);
  const auto made = handle_of<MPI_Comm>(next_handle_ += 16);
  channels_[number_of(made)] = {call.entry.id, facts.rank, facts.size, 0, 0, {}, {}};
  return made;
}

RankTape::Call RankTape::message(TapeKind kind, MPI_Comm comm, int peer, int tag, std::int64_t bytes) {
  Channel& all = channel(comm);
  Call call;
  call.purpose = current_purpose();
  auto& entry = call.entry;
  const bool is_sent = kind == TapeKind::send;
  entry.kind = kind, entry.peer = peer, entry.tag = tag, entry.ranks = all.size;
  entry.number = (is_sent ? all.sent : all.received)[{peer, tag}]++;
  entry.id = id_of(all.key, kind, peer, tag, entry.number);
  (is_sent ? entry.sent_bytes : entry.result_bytes) = bytes;
  entry.payload_bytes = static_cast<std::uint64_t>(entry.result_bytes);
  return call;
}

RankTape::Call RankTape::collective(TapeKind kind, MPI_Comm comm, int root, std::int64_t detail,
                                    std::int64_t sent_bytes, std::int64_t result_bytes) {
  Channel& all = channel(comm);
  Call call;
  call.purpose = current_purpose();
  auto& entry = call.entry;
  entry.kind = kind, entry.peer = root, entry.detail = detail, entry.ranks = all.size;
  entry.number = all.collectives++;
  entry.id = id_of(all.key, TapeKind::barrier, entry.number);
  entry.sent_bytes = sent_bytes, entry.result_bytes = result_bytes;
  const bool is_root = kind == TapeKind::broadcast && root == all.rank;
  entry.payload_bytes =
      static_cast<std::uint64_t>(is_root && result_bytes > most_kept_of_root ? 0 : result_bytes);
  return call;
}

// Data sent while the job starts (clocks, process numbers, names of files) may differ between two runs.
void RankTape::sends(Call& call, const void* data) {
  call.is_strict = !call.purpose.empty();
  if (!call.is_strict || call.entry.sent_bytes == 0) return;
  call.entry.sent_hash = hash_bytes(data, static_cast<std::size_t>(call.entry.sent_bytes));
}

void RankTape::write(const Call& call, const void* payload) {
  if (writer_ == nullptr) return;
  const std::string failure = writer_->write(call.entry, call.purpose, payload);
  if (failure.empty()) return;
  log(LogLevel::warn, "the recording of this rank ends here: " + failure +
                          ". The program goes on; a replay stops at the " +
                          text_of(call.entry, call.purpose));
  writer_.reset();
}

void RankTape::keep(const Call& call) { write(call, call.result); }

void RankTape::answer(const Call& call) {
  TapeReader::Found found;
  const auto& mine = call.entry;
  if (!reader_->take(mine.id, found)) end_without(call);
  idle_since_s_ = 0;
  const auto& theirs = found.entry;
  const bool is_alike = mine.kind == theirs.kind && mine.peer == theirs.peer &&
                        mine.sent_bytes == theirs.sent_bytes && mine.result_bytes == theirs.result_bytes &&
                        mine.detail == theirs.detail;
  if (!is_alike) end_differing(call, text_of(theirs, found.purpose));
  if (call.is_strict && mine.sent_hash != theirs.sent_hash)
    end_differing(call, "the same call with other values in what this rank brings");
  if (call.result != nullptr && theirs.payload_bytes > 0)
    std::memcpy(call.result, found.payload, static_cast<std::size_t>(theirs.payload_bytes));
}

std::string RankTape::text(const char* name, std::string value) {
  Call call;
  call.entry.id = hash_bytes(name, std::strlen(name), 5);
  if (!replays()) {
    call.entry.payload_bytes = value.size();
    write(call, value.data());
    return value;
  }
  TapeReader::Found found;
  if (!reader_->take(call.entry.id, found)) return value;
  return {reinterpret_cast<const char*>(found.payload), static_cast<std::size_t>(found.entry.payload_bytes)};
}

MPI_Request RankTape::replayed_request(Call call) {
  const auto request = handle_of<MPI_Request>(next_handle_ += 16);
  open(request, std::move(call));
  return request;
}

const RankTape::Call* RankTape::call_of(MPI_Request request) const {
  const auto found = open_.find(number_of(request));
  return found == open_.end() ? nullptr : &found->second;
}

void RankTape::close_number(std::uint64_t number) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  if (found->second.entry.kind != TapeKind::send) keep(found->second);
  open_.erase(found);
}

void RankTape::polled_in_vain(const Call& call) {
  constexpr double patience_s = 2;
  const double now_s = tape_clock_s();
  if (idle_since_s_ == 0) idle_since_s_ = now_s;
  if (now_s - idle_since_s_ > patience_s) end_without(call);
}

std::unordered_set<std::uint64_t> RankTape::awaited() const {
  std::unordered_set<std::uint64_t> ids;
  for (const auto& [request, call] : open_) ids.insert(call.entry.id);
  return ids;
}

void RankTape::end_without(const Call& call) {
  TapeReader::Found left;
  const std::string where = text_of(call.entry, call.purpose);
  if (reader_->was_limited())
    end_replay(
        LogLevel::warn,
        "the recording of this rank was stopped by TESSERA_RECORD_LIMIT; the replay ends before the " + where,
        status_done);
  if (reader_->first_left(left, awaited())) end_differing(call, text_of(left.entry, left.purpose));
  if (own_end()) own_end()();
  end_replay(LogLevel::warn, "the recording ends here: the rank's job ended while it waited in the " + where,
             status_done);
}

void RankTape::end_differing(const Call& call, const std::string& recorded) const {
  end_replay(LogLevel::error,
             "this program differs from the recorded one. It does: " + text_of(call.entry, call.purpose) +
                 "; recorded is: " + recorded +
                 ". Replay what was recorded: the same program, arguments and input files",
             status_disagreement);
}

void RankTape::check_all_taken() const {
  TapeReader::Found left;
  if (!reader_->first_left(left, {})) return;
  end_replay(LogLevel::error,
             "this program differs from the recorded one. It ends here; recorded is: " +
                 text_of(left.entry, left.purpose),
             status_disagreement);
}

}  // namespace tessera::comm
