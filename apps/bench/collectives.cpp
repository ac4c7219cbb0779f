// src/comm compared with the MPI library's own calls on the same buffers, 8 B to 64 MiB. A row's size is that
// of the larger side: a rank's input of a reduce-scatter, its output of an all-gather.
// TESSERA_COLLECTIVES=own|mpi shows the alternatives of `auto`.
#include "comm/collectives/collectives.hpp"

#include <algorithm>
#include <cstring>

#include "bench.hpp"
#include "comm/collectives/point_to_point.hpp"
#include "comm/watch/agreement.hpp"
#include "raw_mpi.hpp"

namespace {

using namespace tessera;

// The goal: never slower than 1.05 x + 2 us.
constexpr double factor = 1.05, allowance_s = 2e-6;

std::string size_name(std::int64_t bytes) {
  if (bytes < 1 << 10) return std::to_string(bytes) + "B";
  return bytes >= 1 << 20 ? std::to_string(bytes >> 20) + "MiB" : std::to_string(bytes >> 10) + "KiB";
}

// One size: buffers of `ranks` equal blocks, and the six collectives on them.
class Size {
 public:
  explicit Size(std::int64_t bytes)
      : name_(size_name(bytes)),
        block_bytes_(std::max<std::int64_t>(bytes / bench::ranks(), 8)),
        block_(static_cast<int>(block_bytes_ / 4)),
        all_(block_ * bench::ranks()),
        calls_(static_cast<int>(std::clamp<std::int64_t>((std::int64_t{16} << 20) / bytes, 1, 500))),
        in_(all_, 1.f),
        out_(in_.size()) {}

  void rows() {
    row(
        "all_reduce",
        [&] { comm::all_reduce(world_, ReduceKind::sum, float32, in_.data(), out_.data(), all_); },
        "MPI_Allreduce", [&] { bench::raw::all_reduce(in_.data(), out_.data(), all_); });
    row(
        "all_gather", [&] { comm::all_gather(world_, in_.data(), block_bytes_, out_.data()); },
        "MPI_Allgather", [&] { bench::raw::all_gather(in_.data(), block_, out_.data()); });
    const std::vector<std::int64_t> counts(bench::ranks(), block_);
    const bool chooses_badly = bench::ranks() == 2 && block_bytes_ >= std::int64_t{512}
                                                                          << 10;  // Open MPI, from 1 MiB on
    row(
        "reduce_scatter",
        [&] { comm::reduce_scatter(world_, ReduceKind::sum, float32, in_.data(), out_.data(), counts); },
        "MPI_Reduce_scatter", [&] { bench::raw::reduce_scatter(in_.data(), out_.data(), block_); },
        chooses_badly ? 1.5 : 0);
    row(
        "all_to_all", [&] { all_to_all(); }, "MPI_Alltoall",
        [&] { bench::raw::all_to_all(in_.data(), block_, out_.data()); });
    const int next = (bench::rank() + 1) % bench::ranks(),
              before = (bench::rank() + bench::ranks() - 1) % bench::ranks();
    const std::int64_t bytes = std::int64_t{4} * all_;
    row(
        "permute",
        [&, next, before, bytes] {
          const comm::Message send{next, reinterpret_cast<std::byte*>(in_.data()), bytes},
              receive{before, reinterpret_cast<std::byte*>(out_.data()), bytes};
          comm::exchange(world_, {&send, 1}, {&receive, 1}, nullptr, "permute");
        },
        "MPI_Sendrecv", [&] { bench::raw::shift(in_.data(), out_.data(), all_); });
    row(
        "broadcast", [&, bytes] { comm::broadcast(world_, in_.data(), bytes, 0); }, "MPI_Bcast",
        [&] { bench::raw::broadcast(in_.data(), all_, 0); });
  }

 private:
  void row(const char* what, const bench::Work& ours, const char* peer, const bench::Work& raw,
           double goal = 0) const {
    const std::string name = std::string(what) + "_" + name_;
    if (!bench::wanted(name)) return;
    const auto repeat = [this](const bench::Work& call) {
      return [this, call] {
        for (int i = 0; i < calls_; ++i) call();
      };
    };
    if (goal > 0)
      bench::compare(name, repeat(ours), {{peer, repeat(raw), goal}});
    else
      bench::compare(
          name, repeat(ours),
          {{std::string(peer) + " + 2 us", repeat(raw), 1 / factor, 0, calls_ * allowance_s / factor}});
  }

  // Sends blocks as the executor does: the own block is copied, the others are messages.
  void all_to_all() {
    const auto at = [this](std::vector<float>& buffer, int r) {
      return reinterpret_cast<std::byte*>(buffer.data() + static_cast<std::ptrdiff_t>(r) * block_);
    };
    std::memcpy(at(out_, bench::rank()), at(in_, bench::rank()), block_bytes_);
    std::vector<comm::Message> sends, receives;
    for (int step = 1; step < bench::ranks(); ++step) {
      const int to = (bench::rank() + step) % bench::ranks(),
                from = (bench::rank() - step + bench::ranks()) % bench::ranks();
      sends.push_back({to, at(in_, to), block_bytes_});
      receives.push_back({from, at(out_, from), block_bytes_});
    }
    comm::exchange(world_, sends, receives, nullptr, "all-to-all");
  }

  std::string name_;
  std::int64_t block_bytes_;
  int block_, all_, calls_;  // floats
  std::vector<float> in_, out_;
  const comm::Communicator& world_ = comm::world();
};

// The cost of the agreement that precedes every evaluation.
void agreement_row() {
  if (!bench::wanted("agreement_x1000")) return;
  constexpr int calls = 1000;
  const std::uint64_t mine[2] = {7, ~std::uint64_t{7}};
  std::uint64_t all[2];
  bench::compare("agreement_x1000",
                 [] {
                   for (int i = 0; i < calls; ++i)
                     comm::agree(comm::world(), 7, [] { return std::string(); });
                 },
                 {{"MPI_Allreduce + 2 us",
                   [&] {
                     for (int i = 0; i < calls; ++i) bench::raw::all_reduce(mine, all, 2);
                   },
                   1 / factor, 0, calls * allowance_s / factor}});
}

void rows() {
  if (bench::ranks() < 2) return;
  agreement_row();
  for (const std::int64_t bytes : {8, 4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}) Size(bytes).rows();
}

const bench::Group group(rows);

}  // namespace
