#include "comm/tape/mpi_calls.hpp"

#include <tessera/error.hpp>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "comm/mpi/yielding_calls.hpp"
#include "comm/tape/tape.hpp"

extern char** environ;

namespace tessera::comm {
namespace {

struct TapeState {
  std::unique_ptr<RankTape> tape;
  bool is_up = false, has_ended = false;  // state of a replayed MPI
};
TapeState& tape_state() {
  static TapeState one;
  return one;
}
bool replayed() { return tape() != nullptr && tape()->replays(); }

// Variables without which the program would compute something else.
bool is_kept(std::string_view variable) {
  const auto name = variable.substr(0, variable.find('='));
  if (name.starts_with("TESSERA_RE")) return name == "TESSERA_REPRODUCIBLE";
  for (const char* start :
       {"TESSERA_", "OMP_", "OPENBLAS_", "MKL_", "PYTHON", "XDG_CACHE_HOME", "LD_LIBRARY_PATH"})
    if (name.starts_with(start)) return true;
  return false;
}

TapeHead head_of_rank(int rank, int size, const std::string& build) {
  TapeHead head = {{"rank", std::to_string(rank)}, {"ranks", std::to_string(size)}, {"build", build}};
  char path[4096] = "";
  if (const auto length = readlink("/proc/self/exe", path, sizeof path - 1); length > 0)
    head.emplace_back("program", std::string(path, static_cast<std::size_t>(length)));
  if (getcwd(path, sizeof path) != nullptr) head.emplace_back("folder", path);
  std::ifstream words("/proc/self/cmdline", std::ios::binary);
  for (std::string word; std::getline(words, word, '\0');) head.emplace_back("word", word);
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (is_kept(*entry)) head.emplace_back("set", *entry);
  return head;
}

// Removes the recordings that an earlier job of more ranks has left.
void remove_older(const std::string& folder, int rank, int size) {
  for (int other = rank + size; unlink(tape_path(folder, other).c_str()) == 0;) other += size;
}

}  // namespace

RankTape* tape() { return tape_state().tape.get(); }

TapeUse tape_use() {
  if (!settings().replay.empty()) return TapeUse::replays;
  return settings().record.empty() ? TapeUse::none : TapeUse::records;
}

void choose_tape() {
  auto& state = tape_state();
  if (state.tape != nullptr || tape_use() != TapeUse::replays) return;
  const auto head = read_tape_head(settings().replay);
  state.tape = std::make_unique<RankTape>(nullptr, std::make_unique<TapeReader>(settings().replay));
  state.tape->add_world(MPI_COMM_WORLD, std::atoi(value_of(head, "rank").c_str()),
                        std::atoi(value_of(head, "ranks").c_str()));
}

void start_recording(const std::string& build) {
  auto& state = tape_state();
  if (state.tape != nullptr || tape_use() != TapeUse::records) return;
  int rank = 0, size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const std::string& folder = settings().record;
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    throw IoError("TESSERA_RECORD: the folder " + folder + " cannot be made: " + std::strerror(errno));
  remove_older(folder, rank, size);
  state.tape = std::make_unique<RankTape>(
      std::make_unique<TapeWriter>(tape_path(folder, rank), head_of_rank(rank, size, build),
                                   settings().record_limit_bytes),
      nullptr);
  state.tape->add_world(MPI_COMM_WORLD, rank, size);
}

}  // namespace tessera::comm

namespace tessera::comm::mpi {
namespace {

std::int64_t bytes_of(MPI_Datatype type, std::int64_t count) {
  const std::pair<MPI_Datatype, int> sizes[] = {{MPI_BYTE, 1},
                                                {MPI_CHAR, 1},
                                                {MPI_UINT8_T, 1},
                                                {MPI_INT8_T, 1},
                                                {MPI_INT16_T, 2},
                                                {MPI_UINT16_T, 2},
                                                {MPI_SHORT, 2},
                                                {MPI_UNSIGNED_SHORT, 2},
                                                {MPI_INT, 4},
                                                {MPI_INT32_T, 4},
                                                {MPI_UINT32_T, 4},
                                                {MPI_FLOAT, 4},
                                                {MPI_INT64_T, 8},
                                                {MPI_UINT64_T, 8},
                                                {MPI_DOUBLE, 8},
                                                {MPI_C_FLOAT_COMPLEX, 8},
                                                {MPI_C_DOUBLE_COMPLEX, 16}};
  for (const auto& [known, size] : sizes)
    if (known == type) return count * size;
  throw InternalError("an MPI datatype has no size on recordings");
}

// The reduction and the dtype's size as one number.
std::int64_t detail_of(MPI_Op op, MPI_Datatype type) {
  const MPI_Op known[] = {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN, MPI_LAND,
                          MPI_LOR, MPI_BAND, MPI_BOR, MPI_BXOR};
  const auto place = std::find(std::begin(known), std::end(known), op) - std::begin(known);
  return static_cast<std::int64_t>(place) * 64 + bytes_of(type, 1);
}

// Records or answers a blocking call; `run` makes it.
template <class Run> int blocking(RankTape::Call call, const void* sent, void* result, Run run) {
  call.result = result;
  tape()->sends(call, sent);
  if (replayed()) {
    tape()->answer(call);
    return MPI_SUCCESS;
  }
  const int code = run();
  if (code == MPI_SUCCESS) tape()->keep(call);
  return code;
}

template <class Run>
int started(RankTape::Call call, const void* sent, void* result, MPI_Request* request, Run run) {
  call.result = result;
  tape()->sends(call, sent);
  if (replayed()) {
    *request = tape()->replayed_request(std::move(call));
    return MPI_SUCCESS;
  }
  const int code = run();
  if (code == MPI_SUCCESS) tape()->open(*request, std::move(call));
  return code;
}

// Makes a call that completes requests, and records the data that the completed ones have received.
template <class Run> int completing(int count, MPI_Request* requests, Run run) {
  std::vector<std::uint64_t> before;
  for (int i = 0; i < count; ++i)
    before.push_back(requests[i] == MPI_REQUEST_NULL ? 0 : number_of(requests[i]));
  const int code = run();
  for (int i = 0; i < count; ++i)
    if (before[static_cast<std::size_t>(i)] != 0 && requests[i] == MPI_REQUEST_NULL)
      tape()->close_number(before[static_cast<std::size_t>(i)]);
  return code;
}

// ---- replayed requests ----

bool is_there(MPI_Request request) {
  const auto* call = tape()->call_of(request);
  return call == nullptr || call->entry.kind == TapeKind::send || tape()->can_answer(*call);
}
void finish_replayed(MPI_Request& request) {
  if (const auto* call = tape()->call_of(request); call != nullptr && call->entry.kind != TapeKind::send)
    tape()->answer(*call);
  tape()->close(request);
  request = MPI_REQUEST_NULL;
}

struct Taken {
  int active = 0, done = 0;
  MPI_Request missing = MPI_REQUEST_NULL;  // the first that has not arrived
};
// Completes requests whose data the recording has, at most `most`; writes their indices to `which`.
Taken take_replayed(int count, MPI_Request* requests, int most, int* which) {
  Taken taken;
  for (int i = 0; i < count; ++i) {
    if (requests[i] == MPI_REQUEST_NULL) continue;
    ++taken.active;
    if (!is_there(requests[i])) {
      if (taken.missing == MPI_REQUEST_NULL) taken.missing = requests[i];
    } else if (taken.done < most) {
      finish_replayed(requests[i]);
      if (which != nullptr) which[taken.done] = i;
      ++taken.done;
    }
  }
  return taken;
}
void require_some(const Taken& taken) {
  if (taken.active > 0 && taken.done == 0) tape()->end_without(*tape()->call_of(taken.missing));
}

template <class Make>
int child(MPI_Comm parent, const std::vector<int>& ranks, int tag, MPI_Comm* made, Make make) {
  if (tape() == nullptr) return make();
  const auto call = tape()->call_of_child(parent, ranks, tag);
  if (replayed()) {
    *made = tape()->replay_child(call);
    return MPI_SUCCESS;
  }
  const int code = make();
  if (code != MPI_SUCCESS || *made == MPI_COMM_NULL) return code;
  int rank = 0, size = 1;
  MPI_Comm_rank(*made, &rank);
  MPI_Comm_size(*made, &size);
  tape()->add_child(call, *made, rank, size);
  return code;
}

}  // namespace

int Init_thread(int* argc, char*** argv, int required, int* provided) {
  if (!replayed()) return MPI_Init_thread(argc, argv, required, provided);
  tape_state().is_up = true;
  *provided = required;
  return MPI_SUCCESS;
}
int Initialized(int* flag) {
  if (!replayed()) return MPI_Initialized(flag);
  *flag = tape_state().is_up ? 1 : 0;
  return MPI_SUCCESS;
}
int Finalized(int* flag) {
  if (!replayed()) return MPI_Finalized(flag);
  *flag = tape_state().has_ended ? 1 : 0;
  return MPI_SUCCESS;
}
int Finalize() {
  if (!replayed()) return MPI_Finalize();
  tape_state().has_ended = true;
  tape()->check_all_taken();
  return MPI_SUCCESS;
}
int Abort(MPI_Comm comm, int status) {
  if (!replayed()) return MPI_Abort(comm, status);
  std::fflush(nullptr);
  _exit(status);
}
int Get_processor_name(char* name, int* length) {
  if (tape() == nullptr || !replayed()) {
    const int code = MPI_Get_processor_name(name, length);
    if (tape() != nullptr) tape()->text("host", name);
    return code;
  }
  const std::string host = tape()->text("host", "");
  *length = static_cast<int>(host.copy(name, MPI_MAX_PROCESSOR_NAME - 1));
  name[*length] = '\0';
  return MPI_SUCCESS;
}
int Error_string(int code, char* text, int* length) {
  if (!replayed()) return MPI_Error_string(code, text, length);
  *length = std::snprintf(text, MPI_MAX_ERROR_STRING, "error %d of a replay", code);
  return MPI_SUCCESS;
}

int Comm_rank(MPI_Comm comm, int* rank) {
  if (!replayed()) return MPI_Comm_rank(comm, rank);
  *rank = tape()->rank_in(comm);
  return MPI_SUCCESS;
}
int Comm_size(MPI_Comm comm, int* size) {
  if (!replayed()) return MPI_Comm_size(comm, size);
  *size = tape()->size_of(comm);
  return MPI_SUCCESS;
}
int Comm_dup(MPI_Comm comm, MPI_Comm* copy) {
  return child(comm, {}, 0, copy, [&] { return MPI_Comm_dup(comm, copy); });
}
int Comm_free(MPI_Comm* comm) {
  if (tape() != nullptr) tape()->forget(*comm);
  if (!replayed()) return MPI_Comm_free(comm);
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}
int Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) {
  return replayed() ? MPI_SUCCESS : MPI_Comm_set_errhandler(comm, handler);
}
int Comm_of_ranks(MPI_Comm comm, int count, const int* ranks, int tag, MPI_Comm* made) {
  return child(comm, std::vector<int>(ranks, ranks + count), tag, made, [&] {
    MPI_Group everybody, members;
    int code = MPI_Comm_group(comm, &everybody);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Group_incl(everybody, count, ranks, &members);
    if (code != MPI_SUCCESS) return code;
    code = MPI_Comm_create_group(comm, members, tag, made);
    MPI_Group_free(&members);
    MPI_Group_free(&everybody);
    return code;
  });
}
int Comm_split_type(MPI_Comm comm, int key, MPI_Comm* part) {
  return child(comm, {}, 1, part,
               [&] { return MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, key, MPI_INFO_NULL, part); });
}
int Op_create(MPI_User_function* function, int commutes, MPI_Op* op) {
  if (!replayed()) return MPI_Op_create(function, commutes, op);
  *op = handle_of<MPI_Op>(0x100);
  return MPI_SUCCESS;
}
int Op_free(MPI_Op* op) {
  if (!replayed()) return MPI_Op_free(op);
  *op = MPI_OP_NULL;
  return MPI_SUCCESS;
}

int Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto run = [&] { return yielding::Allreduce(in, out, count, type, op, comm); };
  if (tape() == nullptr) return run();
  const auto bytes = bytes_of(type, count);
  return blocking(tape()->collective(TapeKind::all_reduce, comm, -1, detail_of(op, type), bytes, bytes),
                  in == MPI_IN_PLACE ? out : in, out, run);
}
int Allgather(const void* in, int count, MPI_Datatype type, void* out, int each, MPI_Datatype out_type,
              MPI_Comm comm) {
  const auto run = [&] { return yielding::Allgather(in, count, type, out, each, out_type, comm); };
  if (tape() == nullptr) return run();
  const auto bytes = bytes_of(out_type, each);
  const void* mine = in == MPI_IN_PLACE ? static_cast<std::byte*>(out) + tape()->rank_in(comm) * bytes : in;
  return blocking(tape()->collective(TapeKind::all_gather, comm, -1, 0, bytes, bytes * tape()->size_of(comm)),
                  mine, out, run);
}
int Allgatherv(const void* in, int count, MPI_Datatype type, void* out, const int* counts, const int* offsets,
               MPI_Datatype out_type, MPI_Comm comm) {
  const auto run = [&] {
    return yielding::Allgatherv(in, count, type, out, counts, offsets, out_type, comm);
  };
  if (tape() == nullptr) return run();
  std::int64_t end = 0;  // end of the last block, in elements
  for (int r = 0; r < tape()->size_of(comm); ++r) end = std::max<std::int64_t>(end, offsets[r] + counts[r]);
  return blocking(
      tape()->collective(TapeKind::all_gather_v, comm, -1, 0, bytes_of(type, count), bytes_of(out_type, end)),
      in, out, run);
}
int Reduce_scatter(const void* in, void* out, const int* counts, MPI_Datatype type, MPI_Op op,
                   MPI_Comm comm) {
  const auto run = [&] { return yielding::Reduce_scatter(in, out, counts, type, op, comm); };
  if (tape() == nullptr) return run();
  const auto all = std::accumulate(counts, counts + tape()->size_of(comm), std::int64_t{0});
  return blocking(tape()->collective(TapeKind::reduce_scatter, comm, -1, detail_of(op, type),
                                     bytes_of(type, all), bytes_of(type, counts[tape()->rank_in(comm)])),
                  in, out, run);
}
int Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const auto run = [&] { return yielding::Bcast(data, count, type, root, comm); };
  if (tape() == nullptr) return run();
  const auto bytes = bytes_of(type, count);
  return blocking(tape()->collective(TapeKind::broadcast, comm, root, 0,
                                     tape()->rank_in(comm) == root ? bytes : 0, bytes),
                  data, data, run);
}
int Barrier(MPI_Comm comm) {
  if (tape() == nullptr) return yielding::Barrier(comm);
  return blocking(tape()->collective(TapeKind::barrier, comm, -1, 0, 0, 0), nullptr, nullptr,
                  [&] { return yielding::Barrier(comm); });
}
int Ibcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm, MPI_Request* request) {
  const auto run = [&] { return MPI_Ibcast(data, count, type, root, comm, request); };
  if (tape() == nullptr) return run();
  const auto bytes = bytes_of(type, count);
  return started(tape()->collective(TapeKind::broadcast, comm, root, 0,
                                    tape()->rank_in(comm) == root ? bytes : 0, bytes),
                 data, data, request, run);
}
int Iallreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
               MPI_Request* request) {
  const auto run = [&] { return MPI_Iallreduce(in, out, count, type, op, comm, request); };
  if (tape() == nullptr) return run();
  const auto bytes = bytes_of(type, count);
  return started(tape()->collective(TapeKind::all_reduce, comm, -1, detail_of(op, type), bytes, bytes),
                 in == MPI_IN_PLACE ? out : in, out, request, run);
}

int Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
          MPI_Request* request) {
  const auto run = [&] { return MPI_Isend(data, count, type, to, tag, comm, request); };
  if (tape() == nullptr) return run();
  auto call = tape()->message(TapeKind::send, comm, to, tag, bytes_of(type, count));
  tape()->sends(call, data);
  if (!replayed()) {
    tape()->keep(call);
    return run();
  }
  tape()->answer(call);
  *request = tape()->replayed_request(std::move(call));
  return MPI_SUCCESS;
}
int Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  const auto run = [&] { return MPI_Irecv(data, count, type, from, tag, comm, request); };
  if (tape() == nullptr) return run();
  return started(tape()->message(TapeKind::receive, comm, from, tag, bytes_of(type, count)), nullptr, data,
                 request, run);
}
int Iprobe(int from, int tag, MPI_Comm comm, int* found, MPI_Status* status) {
  if (!replayed()) return MPI_Iprobe(from, tag, comm, found, status);
  *found = 0;
  return MPI_SUCCESS;
}

int Wait(MPI_Request* request, MPI_Status* status) {
  if (tape() == nullptr) return yielding::Wait(request, status);
  if (!replayed()) return completing(1, request, [&] { return yielding::Wait(request, status); });
  require_some(take_replayed(1, request, 1, nullptr));
  return MPI_SUCCESS;
}
int Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  if (tape() == nullptr) return yielding::Waitall(count, requests, statuses);
  if (!replayed())
    return completing(count, requests, [&] { return yielding::Waitall(count, requests, statuses); });
  const Taken taken = take_replayed(count, requests, count, nullptr);
  if (taken.done < taken.active) tape()->end_without(*tape()->call_of(taken.missing));
  return MPI_SUCCESS;
}
int Waitany(int count, MPI_Request* requests, int* which, MPI_Status* status) {
  if (tape() == nullptr) return yielding::Waitany(count, requests, which, status);
  if (!replayed())
    return completing(count, requests, [&] { return yielding::Waitany(count, requests, which, status); });
  const Taken taken = take_replayed(count, requests, 1, which);
  if (taken.active == 0) *which = MPI_UNDEFINED;
  require_some(taken);
  return MPI_SUCCESS;
}
int Waitsome(int count, MPI_Request* requests, int* done, int* which, MPI_Status* statuses) {
  if (tape() == nullptr) return yielding::Waitsome(count, requests, done, which, statuses);
  if (!replayed())
    return completing(count, requests,
                      [&] { return yielding::Waitsome(count, requests, done, which, statuses); });
  const Taken taken = take_replayed(count, requests, count, which);
  *done = taken.active == 0 ? MPI_UNDEFINED : taken.done;
  require_some(taken);
  return MPI_SUCCESS;
}
int Testall(int count, MPI_Request* requests, int* done, MPI_Status* statuses) {
  if (tape() == nullptr) return MPI_Testall(count, requests, done, statuses);
  if (!replayed())
    return completing(count, requests, [&] { return MPI_Testall(count, requests, done, statuses); });
  *done = std::all_of(requests, requests + count,
                      [](MPI_Request one) { return one == MPI_REQUEST_NULL || is_there(one); })
              ? 1
              : 0;
  const Taken taken = take_replayed(count, requests, *done == 1 ? count : 0, nullptr);
  if (*done == 0) tape()->polled_in_vain(*tape()->call_of(taken.missing));
  return MPI_SUCCESS;
}
int Testsome(int count, MPI_Request* requests, int* done, int* which, MPI_Status* statuses) {
  if (tape() == nullptr) return MPI_Testsome(count, requests, done, which, statuses);
  if (!replayed())
    return completing(count, requests, [&] { return MPI_Testsome(count, requests, done, which, statuses); });
  const Taken taken = take_replayed(count, requests, count, which);
  *done = taken.active == 0 ? MPI_UNDEFINED : taken.done;
  if (taken.active > 0 && taken.done == 0) tape()->polled_in_vain(*tape()->call_of(taken.missing));
  return MPI_SUCCESS;
}
int Cancel(MPI_Request* request) { return replayed() ? MPI_SUCCESS : MPI_Cancel(request); }
int Request_free(MPI_Request* request) {
  if (tape() != nullptr) tape()->close(*request);
  if (!replayed()) return MPI_Request_free(request);
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}

}  // namespace tessera::comm::mpi
