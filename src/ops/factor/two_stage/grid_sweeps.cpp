// Applies the reflectors of the band's reduction to vectors: groups of sweeps from the last to the first,
// each as one block of reflectors per step. Blocks of different steps share rows only if the earlier step is
// of the later group. So several groups are applied step by step, and their rows stay in the cache:
//
//   rows | group 1    group 2       order: 2a 1a 2b 1b
//        |   1a
//        |   1a         2a
//        |   1b         2a
//        |   1b         2b
//        |              2b
#include <algorithm>

#include "kernels/spectral/sweep_product.hpp"
#include "ops/factor/two_stage/two_stage.hpp"

namespace tessera::factor {
namespace {

template <class T> constexpr std::int64_t most_sweeps = sizeof(T) == 4 ? 48
                                                                       : 24;  // of a block: a strip of rows
constexpr std::int64_t blocks_at_once = 8;

// Sweeps that are broadcast together.
template <class T> struct SweepBatch {
  std::int64_t first = 0, count = 0;
  std::vector<T> message;  // vectors, then taus
  comm::Pending arrival;
};

template <class T> class SweepsBack {
 public:
  SweepsBack(const Grid& grid, const ChasedBand<T>& band, GridMatrix<T>& z)
      : grid_(grid), band_(band), sweeps_(band.sweeps), z_(z) {
    group_ = std::clamp<std::int64_t>(2 * sweeps_.width / 3, 1, most_sweeps<T>);
  }
  void run() {
    const std::int64_t per_batch = group_ * blocks_at_once;
    std::int64_t start = (sweeps_.count() - 1) / per_batch * per_batch;
    SweepBatch<T> batch, next;
    if (sweeps_.count() > 0) send(start, per_batch, batch);
    for (; start >= 0 && sweeps_.count() > 0; start -= per_batch) {
      batch.arrival.wait();
      if (start > 0) send(start - per_batch, per_batch, next);
      apply(batch, next);
      std::swap(batch, next);
    }
  }

 private:
  struct Block {
    std::int64_t row;
    kernels::SweepProduct<T> product;
  };
  std::int64_t values_in(const SweepBatch<T>& batch) const {
    return sweeps_.values_before(batch.first + batch.count) - sweeps_.values_before(batch.first);
  }
  void send(std::int64_t first, std::int64_t count, SweepBatch<T>& batch) {
    batch.first = first;
    batch.count = std::min(count, sweeps_.count() - first);
    const std::int64_t values = values_in(batch), taus_first = sweeps_.taus_before(first),
                       taus = sweeps_.taus_before(first + batch.count) - taus_first;
    batch.message.resize(values + taus);
    if (grid_.rank == 0) {
      std::copy_n(band_.values.data() + sweeps_.values_before(first), values, batch.message.data());
      std::copy_n(band_.taus.data() + taus_first, taus, batch.message.data() + values);
    }
    if (grid_.all->size() > 1)
      batch.arrival = counted::start_broadcast(
          *grid_.all, batch.message.data(), static_cast<std::int64_t>(batch.message.size() * sizeof(T)), 0);
  }

  // The blocks in the order in which they are applied.
  std::vector<Block> blocks_of(const SweepBatch<T>& batch) const {
    const T *const values = batch.message.data(), *const taus = values + values_in(batch);
    std::vector<Block> blocks;
    std::vector<T> v, t, vt;
    for (std::int64_t step = 0; step < sweeps_.steps(batch.first); ++step)
      for (std::int64_t start = (batch.count - 1) / group_ * group_; start >= 0; start -= group_) {
        const std::int64_t first = batch.first + start, count = std::min(group_, batch.count - start);
        if (step >= sweeps_.steps(first)) continue;
        const T* of_first = values + sweeps_.values_before(first) - sweeps_.values_before(batch.first);
        const T* taus_of_first = taus + sweeps_.taus_before(first) - sweeps_.taus_before(batch.first);
        const auto [row, rows, columns] = kernels::sweep_block(sweeps_, first, count, step);
        v.resize(rows * columns), t.resize(columns * columns), vt.resize(rows * columns);
        kernels::fill_sweep_block(sweeps_, first, step, {row, rows, columns}, of_first, taus_of_first,
                                  v.data(), t.data());
        kernels::product<T>(rows, columns, columns, T(1), {v.data(), 1, rows}, {t.data(), 1, columns}, false,
                            vt.data(), rows);
        blocks.emplace_back(Block{row, {}}).product.pack(rows, columns, sweeps_.width, v.data(), vt.data());
      }
    return blocks;
  }

  void apply(const SweepBatch<T>& batch, SweepBatch<T>& next) {
    if (z_.columns == 0) return;
    const auto blocks = blocks_of(batch);
    // Columns that stay in a core's cache from block to block.
    constexpr std::int64_t cache_bytes = 1 << 20;
    const std::int64_t chunk = std::clamp<std::int64_t>(
        cache_bytes / (z_.ld * static_cast<std::int64_t>(sizeof(T))) / 8 * 8, 32, 256);
    for (std::int64_t c = 0; c < z_.columns; c += chunk) {
      const std::int64_t count = std::min(chunk, z_.columns - c);
      for (const Block& block : blocks) block.product.apply(count, z_.at(block.row, c), z_.ld);
      next.arrival.test();
    }
  }

  const Grid& grid_;
  const ChasedBand<T>& band_;
  const kernels::BandSweeps sweeps_;
  GridMatrix<T>& z_;
  std::int64_t group_ = 1;
};

}  // namespace

template <class T> void apply_sweeps(const Grid& grid, ChasedBand<T>& band, GridMatrix<T>& z) {
  SweepsBack<T>(grid, band, z).run();
}

#define TESSERA_INSTANTIATE(T) template void apply_sweeps<T>(const Grid&, ChasedBand<T>&, GridMatrix<T>&);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
