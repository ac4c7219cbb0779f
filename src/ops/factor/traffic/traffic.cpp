#include "ops/factor/traffic/traffic.hpp"

#include <algorithm>

#include "comm/watch/traffic.hpp"

namespace tessera::factor {
namespace {

std::int64_t reduced_bytes(std::int64_t bytes, std::int64_t ranks) { return 2 * (ranks - 1) * bytes / ranks; }

// Calls f(start, width) for each panel of the first `steps` columns.
template <class F> void for_panels(std::int64_t steps, std::int64_t block, F&& f) {
  for (std::int64_t start = 0; start < steps; start += block) f(start, std::min(block, steps - start));
}

// The number of a grid row's rows from a given row on.
std::int64_t rows_from(const GridRank& me, std::int64_t row) {
  return me.layout.rows.count(me.row()) - me.layout.rows.count_below(me.row(), row);
}

// Rows of a panel that ranks of the grid column exchange, for this many columns.
void predict_exchange(ReceivedBytes& traffic, const GridRank& me, std::int64_t start, std::int64_t width,
                      std::int64_t columns) {
  const std::int64_t ranks = me.layout.rows.parts;
  const bool owns_top = me.layout.rows.owner(start) == me.row();
  const std::int64_t pivots = width - width / ranks, displaced = owns_top ? 0 : width;
  traffic.broadcast.add((pivots + displaced) * columns * me.itemsize);
}

// The search for pivots in a panel with scattered rows: a candidate and two rows from each of the others.
void predict_pivots(ReceivedBytes& traffic, const GridRank& me, std::int64_t width) {
  constexpr std::int64_t candidate_bytes = 16;
  for (std::int64_t c = 0; c < width; ++c)
    traffic.broadcast.add((me.layout.rows.parts - 1) * (candidate_bytes + 2 * width * me.itemsize));
}

}  // namespace

void predict_lu(ReceivedBytes& traffic, const GridRank& me, std::int64_t extra_columns, bool apply_left) {
  const auto &rows = me.layout.rows, &columns = me.layout.columns;
  const std::int64_t all_columns = columns.count(me.column()) + extra_columns;
  const auto header_bytes = [](std::int64_t width) { return ((width + 2) / 2 * 2 + 2) * 8; };
  for_panels(
      std::min(rows.extent, columns.extent), columns.block, [&](std::int64_t start, std::int64_t width) {
        const bool is_owner = columns.owner(start) == me.column();
        const std::int64_t after = start + width;
        if (columns.parts > 1)
          traffic.broadcast.add(
              is_owner ? 0 : header_bytes(width) + (width + rows_from(me, after)) * width * me.itemsize);
        if (rows.parts == 1) return;
        if (is_owner) predict_pivots(traffic, me, width);
        predict_exchange(traffic, me, start, width, all_columns - columns.count_below(me.column(), after));
        if (apply_left) predict_exchange(traffic, me, start, width, columns.count_below(me.column(), start));
      });
}

void predict_cholesky(ReceivedBytes& traffic, const GridRank& me) {
  const auto &rows = me.layout.rows, &columns = me.layout.columns;
  for_panels(columns.extent, columns.block, [&](std::int64_t start, std::int64_t width) {
    const bool is_owner = columns.owner(start) == me.column();
    const std::int64_t after = start + width;
    if (is_owner && rows.parts > 1)
      traffic.broadcast.add(rows.owner(start) == me.row() ? 0 : (width * width + 1) * me.itemsize);
    if (columns.parts > 1)
      traffic.broadcast.add(is_owner ? 0 : (1 + rows_from(me, after) * width) * me.itemsize);
    if (rows.parts == 1) return;
    std::int64_t others = 0;  // my columns whose matching rows are in another grid row
    for (std::int64_t c = columns.count_below(me.column(), after); c < columns.count(me.column()); ++c)
      others += rows.owner(columns.global(me.column(), c)) != me.row();
    traffic.broadcast.add(others * width * me.itemsize);
  });
}

void predict_qr(ReceivedBytes& traffic, const GridRank& me) {
  const auto& columns = me.layout.columns;
  const std::int64_t rows = me.layout.rows.extent;
  if (columns.parts == 1) return;
  for (int pass = 0; pass < 2; ++pass)  // R, then Q
    for_panels(std::min(rows, columns.extent), columns.block, [&](std::int64_t start, std::int64_t width) {
      const bool is_owner = columns.owner(start) == me.column();
      traffic.broadcast.add(is_owner ? 0 : (rows - start + width) * width * me.itemsize);
    });
}

namespace {

// Panels of the matrix are sent along the rows, solutions down the columns.
void predict_many_sides(ReceivedBytes& traffic, const GridRank& me, std::int64_t sides, bool lower) {
  const auto &rows = me.layout.rows, &columns = me.layout.columns;
  for_panels(rows.extent, rows.block, [&](std::int64_t start, std::int64_t width) {
    const bool holds_block = rows.owner(start) == me.row();
    const std::int64_t count = lower ? rows_from(me, start) : rows.count_below(me.row(), start + width);
    if (columns.parts > 1 && count > 0)
      traffic.broadcast.add(columns.owner(start) == me.column() ? 0 : count * width * me.itemsize);
    if (rows.parts > 1 && sides > 0) traffic.broadcast.add(holds_block ? 0 : width * sides * me.itemsize);
  });
}

// Sums are reduced along the rows.
void predict_few_sides(ReceivedBytes& traffic, const GridRank& me, std::int64_t sides) {
  const auto &rows = me.layout.rows, &columns = me.layout.columns;
  for_panels(rows.extent, rows.block, [&](std::int64_t start, std::int64_t width) {
    const std::int64_t bytes = width * sides * me.itemsize;
    const bool holds_block = rows.owner(start) == me.row();
    if (holds_block && columns.parts > 1) traffic.reduced.add(reduced_bytes(bytes, columns.parts));
    if (columns.owner(start) == me.column() && rows.parts > 1) traffic.broadcast.add(holds_block ? 0 : bytes);
  });
  if (columns.parts > 1)
    traffic.reduced.add(
        reduced_bytes(std::max<std::int64_t>(rows.count(me.row()), 1) * sides * me.itemsize, columns.parts));
}

}  // namespace

void predict_substitution(ReceivedBytes& traffic, const GridRank& me, const BlockCyclic& right, bool few,
                          bool lower) {
  if (!few) return predict_many_sides(traffic, me, right.columns.count(me.column()), lower);
  if (right.columns.extent > 0) predict_few_sides(traffic, me, right.columns.extent);
}

namespace counted {

void broadcast(const comm::Communicator& ranks, void* data, std::int64_t bytes, int root) {
  comm::broadcast(ranks, data, bytes, root);
  comm::count("broadcast", ranks.rank() == root ? 0 : bytes);
}
comm::Pending start_broadcast(const comm::Communicator& ranks, void* data, std::int64_t bytes, int root) {
  comm::count("broadcast", ranks.rank() == root ? 0 : bytes);
  return comm::start_broadcast(ranks, data, bytes, root);
}
void all_reduce(const comm::Communicator& ranks, ReduceKind kind, Dtype dtype, void* data,
                std::int64_t count) {
  if (ranks.size() == 1) return;
  comm::all_reduce(ranks, kind, dtype, data, data, count);
  comm::count("all-reduce", reduced_bytes(count * static_cast<std::int64_t>(itemsize(dtype)), ranks.size()));
}
void all_gather(const comm::Communicator& ranks, const void* in, std::int64_t bytes, void* out) {
  comm::all_gather(ranks, in, bytes, out);
  comm::count("broadcast", (ranks.size() - 1) * bytes);
}
void all_gather_v(const comm::Communicator& ranks, const void* in, std::int64_t bytes, void* out,
                  std::span<const std::int64_t> bytes_of, std::span<const std::int64_t> offset_of) {
  comm::all_gather_v(ranks, in, bytes, out, bytes_of, offset_of);
  std::int64_t all = 0;
  for (const auto one : bytes_of) all += one;
  comm::count("broadcast", all - bytes);
}

}  // namespace counted

}  // namespace tessera::factor
