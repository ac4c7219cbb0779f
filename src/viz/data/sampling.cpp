#include "viz/data/sampling.hpp"

#include <tessera/device.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "api/evaluate.hpp"
#include "base/call.hpp"
#include "comm/collectives/collectives.hpp"
#include "comm/collectives/point_to_point.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/watch/traffic.hpp"
#include "comm/watch/waiting.hpp"
#include "kernels/visit.hpp"
#include "mesh/devices.hpp"
#include "types/box.hpp"

namespace tessera::viz {
namespace {

const Stored& computed(const Array& x) {
  check_usable(x);
  if (is_complex(x.dtype()))
    throw DtypeError(call_text() + ": " + describe(x) +
                     " holds complex numbers, which have no order; draw abs(x), real(x) or imag(x)");
  evaluate({x});
  return *output_of(x).stored;
}

// Calls read(index, value) for every element of this rank's block, with its row-major index in the block.
template <class F> void read_block(const Array& x, const Stored& stored, const Box& box, F read) {
  const auto n = box_elements(box);
  kernels::visit_stored(x.dtype(), [&]<class T>(T) {
    if constexpr (!kernels::is_complex_type<T>) {
      const auto* values = reinterpret_cast<const T*>(stored.buffer.data());
      for (std::int64_t i = 0; i < n; ++i) read(i, static_cast<double>(values[i]));
    }
  });
}

// The index of the part that contains element i, if [0, n) is divided into `parts`.
std::int64_t part_of(std::int64_t i, std::int64_t n, std::int64_t parts) {
  return static_cast<std::int64_t>(static_cast<__int128>(i) * parts / n);
}
Range parts_of(const Range& elements, std::int64_t n, std::int64_t parts) {
  if (elements.size() <= 0) return {0, 0};
  return {part_of(elements.start, n, parts), part_of(elements.stop - 1, n, parts) + 1};
}

// One rank's share: the parts that its block intersects.
struct Share {
  Range rows, columns;
  std::vector<double> values, counts;
  Share(const Range& r, const Range& c, double empty)
      : rows(r),
        columns(c),
        values(static_cast<std::size_t>(r.size() * c.size()), empty),
        counts(values.size(), 0.0) {}
};

class Sampling {
 public:
  Sampling(const Array& x, std::int64_t rows, std::int64_t columns, Combine combine)
      : x_(x), combine_(combine) {
    if (x.ndim() < 1 || x.ndim() > 2)
      throw ShapeError(call_text() + ": an array of one or two dimensions can be drawn, and not " +
                       describe(x));
    extents_ = {x.ndim() == 2 ? x.shape()[0] : 1, x.shape().back()};
    parts_ = {std::min(extents_[0], rows), std::min(extents_[1], columns)};
  }

  DataGrid run() {
    const auto& stored = computed(x_);
    const auto& world = comm::world();
    const std::string call = call_text();
    const comm::Purpose purpose(call);
    DataGrid grid{parts_[0], parts_[1]};
    Share whole({0, parts_[0]}, {0, parts_[1]}, empty());
    for (int rank = 0; rank < world.size(); ++rank) {
      const int device = world.device_ids()[static_cast<std::size_t>(rank)];
      const auto box = box_of(stored.layout, device);
      if (!box || (world.rank() != 0 && world.rank() != rank)) continue;
      Share share(parts_of((*box)[0], extents_[0], parts_[0]), parts_of((*box)[1], extents_[1], parts_[1]),
                  empty());
      if (rank == world.rank()) fill(share, stored, *box);
      transfer(share, rank);
      if (world.rank() == 0) add(share, whole);
    }
    if (world.rank() != 0) return {};
    for (std::size_t i = 0; i < whole.values.size(); ++i)
      if (whole.counts[i] == 0)
        whole.values[i] = std::nan("");
      else if (combine_ == Combine::mean)
        whole.values[i] /= whole.counts[i];
    grid.values = std::move(whole.values);
    return grid;
  }

 private:
  double empty() const {
    const double inf = std::numeric_limits<double>::infinity();
    return combine_ == Combine::least ? inf : combine_ == Combine::most ? -inf : 0;
  }
  double combined(double a, double b) const {
    return combine_ == Combine::least ? std::fmin(a, b) : combine_ == Combine::most ? std::fmax(a, b) : a + b;
  }

  // The block of a device as rows and columns; nullopt if it has none, or is not the block's replica 0.
  std::optional<Box> box_of(const Sharding& layout, int device) const {
    if (layout.mesh().position(device) < 0) return std::nullopt;
    if (layout.replica_id(x_.shape(), device_table()[static_cast<std::size_t>(device)]) != 0)
      return std::nullopt;
    Box box = layout.local_box(x_.shape(), device);
    if (box.size() == 1) box.insert(box.begin(), Range{0, 1});
    return box_elements(box) > 0 ? std::optional(box) : std::nullopt;
  }

  // NaNs are ignored, unless a part contains nothing else.
  void fill(Share& share, const Stored& stored, const Box& box) const {
    const auto width = box[1].size();
    std::vector<std::int64_t> column_part;
    for (std::int64_t c = box[1].start; c < box[1].stop; ++c)
      column_part.push_back(part_of(c, extents_[1], parts_[1]) - share.columns.start);
    read_block(x_, stored, box, [&](std::int64_t i, double value) {
      if (std::isnan(value)) return;
      const auto row = part_of(box[0].start + i / width, extents_[0], parts_[0]) - share.rows.start;
      const auto at = row * share.columns.size() + column_part[i % width];
      share.values[at] = combined(share.values[at], value);
      share.counts[at] += 1;
    });
  }

  static void transfer(Share& share, int from) {
    const auto& world = comm::world();
    if (from == 0) return;
    for (auto* list : {&share.values, &share.counts}) {
      if (world.rank() == from) comm::send(world, std::span<const double>(*list), 0);
      if (world.rank() == 0) {
        comm::receive(world, std::span<double>(*list), from);
        comm::count("gather", static_cast<std::int64_t>(list->size() * sizeof(double)));
      }
    }
  }

  void add(const Share& share, Share& whole) const {
    for (std::int64_t r = share.rows.start, i = 0; r < share.rows.stop; ++r)
      for (std::int64_t c = share.columns.start; c < share.columns.stop; ++c, ++i) {
        const auto at = r * parts_[1] + c;
        whole.values[at] = combined(whole.values[at], share.values[i]);
        whole.counts[at] += share.counts[i];
      }
  }

  const Array& x_;
  Combine combine_;
  std::array<std::int64_t, 2> extents_{}, parts_{};
};

// This rank's block, if it is the block's replica 0.
std::optional<Box> own_box(const Array& x, const Stored& stored) {
  const int me = own_device_id();
  if (stored.layout.mesh().position(me) < 0) return std::nullopt;
  if (stored.layout.replica_id(x.shape(), device_table()[static_cast<std::size_t>(me)]) != 0)
    return std::nullopt;
  const Box box = stored.layout.local_box(x.shape(), me);
  return box_elements(box) > 0 ? std::optional(box) : std::nullopt;
}

}  // namespace

DataGrid sampled(const Array& x, std::int64_t rows, std::int64_t columns, Combine combine) {
  return Sampling(x, rows, columns, combine).run();
}

std::optional<ValueRange> finite_range(const Array& x) {
  const auto& stored = computed(x);
  double ends[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  if (const auto box = own_box(x, stored))
    read_block(x, stored, *box, [&](std::int64_t, double value) {
      if (!std::isfinite(value)) return;
      ends[0] = std::min(ends[0], value);
      ends[1] = std::min(ends[1], -value);
    });
  double least[2];
  comm::all_reduce(comm::world(), ReduceKind::min, float64, ends, least, 2);
  if (least[0] > -least[1]) return std::nullopt;
  return ValueRange{least[0], -least[1]};
}

std::vector<std::int64_t> counts_in_bins(const Array& x, const ValueRange& range, int bins) {
  const auto& stored = computed(x);
  std::vector<std::int64_t> counts(static_cast<std::size_t>(bins)), all(counts.size());
  if (const auto box = own_box(x, stored))
    read_block(x, stored, *box, [&](std::int64_t, double value) {
      if (!(value >= range.low && value <= range.high)) return;
      const auto bin = static_cast<int>(range.place(value) * bins);
      ++counts[static_cast<std::size_t>(std::min(bin, bins - 1))];
    });
  comm::all_reduce(comm::world(), ReduceKind::sum, int64, counts.data(), all.data(), bins);
  return all;
}

}  // namespace tessera::viz
