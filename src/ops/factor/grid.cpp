#include "ops/factor/grid.hpp"

#include <algorithm>

#include "comm/collectives/collectives.hpp"
#include "comm/host/large_message.hpp"
#include "comm/watch/traffic.hpp"
#include "kernels/move/transpose_tile.hpp"

namespace tessera::factor {

Grid::Grid(const std::vector<int>& device_ids, GridShape grid_shape, kernels::SumOrder sums)
    : shape(grid_shape), order(sums), all(&comm::group(device_ids)) {
  rank = all->rank();
  row = rank / shape.columns;
  column = rank % shape.columns;
  std::vector<int> of_row, of_column;
  for (int c = 0; c < shape.columns; ++c) of_row.push_back(device_ids[row * shape.columns + c]);
  for (int r = 0; r < shape.rows; ++r) of_column.push_back(device_ids[r * shape.columns + column]);
  along_row = &comm::group(of_row);
  along_column = &comm::group(of_column);
}

Tiles Tiles::transposed() const {
  Tiles result = *this;
  for (auto& box : result.held) std::swap(box.rows, box.columns);
  std::swap(result.row_step, result.column_step);
  return result;
}

namespace {

// Copies the rectangle of two runs; the tile is usually row-major and the other side column-major.
template <class T, bool to_tile, class Tile, class Other>
void copy_rectangle(Tile* tile, const Tiles& tiles, std::int64_t rows, std::int64_t columns, Other* other,
                    std::int64_t ld) {
  const std::int64_t row_step = tiles.row_step, column_step = tiles.column_step;
  const bool conjugate = complex_type<T> && tiles.conjugate && !to_tile;
  if (column_step == 1 && !conjugate) {
    if constexpr (to_tile)
      return kernels::transpose_plane(reinterpret_cast<std::byte*>(tile), row_step,
                                      reinterpret_cast<const std::byte*>(other), ld, rows, columns,
                                      sizeof(T));
    else
      return kernels::transpose_plane(reinterpret_cast<std::byte*>(other), ld,
                                      reinterpret_cast<const std::byte*>(tile), row_step, columns, rows,
                                      sizeof(T));
  }
  for (std::int64_t j = 0; j < columns; ++j)
    for (std::int64_t i = 0; i < rows; ++i)
      if constexpr (to_tile)
        tile[i * row_step + j * column_step] = other[i + j * ld];
      else if constexpr (complex_type<T>)
        other[i + j * ld] = conjugate ? std::conj(tile[i * row_step + j * column_step])
                                      : tile[i * row_step + j * column_step];
      else
        other[i + j * ld] = tile[i * row_step + j * column_step];
}

// The elements that move between a rank's tile and a grid rank.
struct Moved {
  Overlap2d overlap;
  Part part = Part::all;
  std::int64_t first_row = 0, first_column = 0;  // of the tile
  std::int64_t elements() const;
};
Moved moved(const BlockCyclic& layout, int grid_rank, const Rectangle& box, Part part) {
  return {overlap(layout, grid_rank, box), part, box.rows.start, box.columns.start};
}

// Visits the rectangles in message order: f(run of rows, run of columns, offset in the message). In a
// triangle each rectangle keeps only the rows that intersect it.
template <class F> void walk(const Moved& moved, F&& f) {
  std::int64_t offset = 0;
  for (const CyclicRun& columns : moved.overlap.columns) {
    const std::int64_t first = moved.first_column + columns.in_box, last = first + columns.size - 1;
    for (CyclicRun rows : moved.overlap.rows) {
      const std::int64_t start = moved.first_row + rows.in_box;
      if (moved.part == Part::lower && start < first) {
        const std::int64_t above = std::min(first - start, rows.size);
        rows = {rows.in_box + above, rows.in_part + above, rows.size - above};
      }
      if (moved.part == Part::upper) rows.size = std::min(rows.size, last + 1 - start);
      if (rows.size <= 0) continue;
      f(rows, columns, offset);
      offset += rows.size * columns.size;
    }
  }
}

std::int64_t Moved::elements() const {
  std::int64_t total = 0;
  walk(*this, [&](const CyclicRun& rows, const CyclicRun& columns, std::int64_t) {
    total += rows.size * columns.size;
  });
  return total;
}

template <class T, bool to_tile, class Tile, class Other>
void tile_and_message(const Tiles& tiles, const Moved& moved, Tile* tile, Other* message) {
  walk(moved, [&](const CyclicRun& rows, const CyclicRun& columns, std::int64_t offset) {
    copy_rectangle<T, to_tile>(tile + rows.in_box * tiles.row_step + columns.in_box * tiles.column_step,
                               tiles, rows.size, columns.size, message + offset, rows.size);
  });
}

template <class T, bool to_tile, class Tile, class Local>
void tile_and_local(const Tiles& tiles, const Moved& moved, Tile* tile, Local* local, std::int64_t ld) {
  walk(moved, [&](const CyclicRun& rows, const CyclicRun& columns, std::int64_t) {
    copy_rectangle<T, to_tile>(tile + rows.in_box * tiles.row_step + columns.in_box * tiles.column_step,
                               tiles, rows.size, columns.size, local + rows.in_part + columns.in_part * ld,
                               ld);
  });
}

template <class T, bool to_local, class Local, class Message>
void local_and_message(const Moved& moved, Local* local, std::int64_t ld, Message* message) {
  walk(moved, [&](const CyclicRun& rows, const CyclicRun& columns, std::int64_t offset) {
    for (std::int64_t j = 0; j < columns.size; ++j) {
      Local* column = local + rows.in_part + (columns.in_part + j) * ld;
      Message* packed = message + offset + j * rows.size;
      if constexpr (to_local)
        std::copy(packed, packed + rows.size, column);
      else
        std::copy(column, column + rows.size, packed);
    }
  });
}

bool serves(const Tiles& tiles, int server, int receiver) {
  const auto chosen = servers(tiles.held, receiver);
  return std::find(chosen.begin(), chosen.end(), server) != chosen.end();
}

template <class T> void clear_outside(const Tiles& tiles, const Rectangle& box, T* tile, Part part) {
  if (part == Part::all) return;
  for (std::int64_t row = box.rows.start; row < box.rows.stop; ++row) {
    const std::int64_t from = part == Part::lower ? std::max(row + 1, box.columns.start) : box.columns.start,
                       to = part == Part::lower ? box.columns.stop : std::min(row, box.columns.stop);
    T* const values = tile + (row - box.rows.start) * tiles.row_step - box.columns.start * tiles.column_step;
    for (std::int64_t column = from; column < to; ++column) values[column * tiles.column_step] = T(0);
  }
}

// Calls visit(values, count) for this rank's part, row by row.
template <class T, class F>
void each_row(const Tiles& tiles, const Rectangle& box, T* tile, Part part, F&& visit) {
  for (std::int64_t row = box.rows.start; row < box.rows.stop; ++row) {
    const std::int64_t from = part == Part::upper ? std::max(row, box.columns.start) : box.columns.start,
                       to = part == Part::lower ? std::min(row + 1, box.columns.stop) : box.columns.stop;
    if (from < to)
      visit(tile + (row - box.rows.start) * tiles.row_step + (from - box.columns.start), to - from);
  }
}

}  // namespace

// Elements of a whole matrix that a rank lacks. The tiles of all ranks cover the matrix.
std::int64_t loaded_from_others(const Tiles& tiles, const BlockCyclic& layout, int me, Part part) {
  if (part == Part::all)
    return layout.rows.count(layout.row_of(me)) * layout.columns.count(layout.column_of(me)) -
           moved(layout, me, tiles.held[me], part).elements();
  std::int64_t elements = 0;
  for (const int from : servers(tiles.held, me))
    if (from != me) elements += moved(layout, me, tiles.held[from], part).elements();
  return elements;
}
std::int64_t stored_from_others(const Tiles& tiles, const BlockCyclic& layout, int me, Part part) {
  const auto& box = tiles.held[me];
  if (part == Part::all)
    return box.is_empty() ? 0
                          : box.rows.size() * box.columns.size() - moved(layout, me, box, part).elements();
  std::int64_t elements = 0;
  for (int from = 0; from < layout.ranks(); ++from)
    if (from != me) elements += moved(layout, from, tiles.held[me], part).elements();
  return elements;
}

template <class T>
kernels::Magnitude magnitude_of_part(const Grid& grid, const Tiles& tiles, const T* tile, Part part) {
  kernels::Magnitude found;
  each_row(tiles, tiles.held[grid.rank], tile, part,
           [&](const T* values, std::int64_t count) { found.add(values, count); });
  return found;
}

void combine(const Grid& grid, std::span<kernels::Magnitude> found) {
  if (grid.all->size() == 1) return;
  std::vector<double> largest, sums;
  for (const auto& one : found) {
    largest.push_back(one.largest);
    sums.insert(sums.end(), {one.sum, static_cast<double>(one.parts)});
  }
  const auto count = static_cast<std::int64_t>(found.size());
  comm::all_reduce(*grid.all, ReduceKind::max, float64, largest.data(), largest.data(), count);
  comm::all_reduce(*grid.all, ReduceKind::sum, float64, sums.data(), sums.data(), 2 * count);
  for (std::size_t i = 0; i < found.size(); ++i)
    found[i] = {largest[i], sums[2 * i], static_cast<std::int64_t>(sums[2 * i + 1])};
}

template <class T> void fill_nan(const Grid& grid, const Tiles& tiles, T* tile, Part part) {
  const Rectangle& mine = tiles.held[grid.rank];
  each_row(tiles, mine, tile, part, [](T* values, std::int64_t count) { kernels::fill_nan(values, count); });
  clear_outside(tiles, mine, tile, part);
}

namespace {

// Exchanges a message with every other rank. sent(rank) and received(rank) are the elements of each,
// pack(elements, message) and unpack(elements, message) copy them.
template <class T, class Sent, class Received, class Pack, class Unpack>
void exchange(const Grid& grid, Sent&& sent, Received&& received, Pack&& pack, Unpack&& unpack) {
  const int ranks = grid.all->size(), me = grid.rank;
  const auto bytes_of = [](const Moved& moved) {
    return moved.elements() * static_cast<std::int64_t>(sizeof(T));
  };
  std::int64_t received_bytes = 0;
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (me + distance) % ranks, from = (me - distance + ranks) % ranks;
    const Moved to_send = sent(to), to_receive = received(from);
    received_bytes += bytes_of(to_receive);
    comm::IncomingMessage incoming(*grid.all, from, bytes_of(to_receive));
    comm::OutgoingMessage outgoing(*grid.all, to, bytes_of(to_send));
    pack(to_send, reinterpret_cast<T*>(outgoing.data()));
    outgoing.send();
    const auto* message = reinterpret_cast<const T*>(incoming.wait());
    const bool is_there = message != nullptr;
    if (is_there) unpack(to_receive, message);
    incoming.answer();
    outgoing.take_answer();
    if (!is_there && to_receive.elements() > 0)
      unpack(to_receive, reinterpret_cast<const T*>(incoming.sent()));
  }
  if (ranks > 1) comm::count("all-to-all", received_bytes);
}
}  // namespace

template <class T> void load(const Grid& grid, const Tiles& tiles, const T* tile, const BlockCyclic& layout,
                             T* local, std::int64_t ld, Part part) {
  const int me = grid.rank;
  const Rectangle& mine = tiles.held[me];
  if (serves(tiles, me, me)) tile_and_local<T, false>(tiles, moved(layout, me, mine, part), tile, local, ld);
  exchange<T>(
      grid, [&](int to) { return serves(tiles, me, to) ? moved(layout, to, mine, part) : Moved{}; },
      [&](int from) { return serves(tiles, from, me) ? moved(layout, me, tiles.held[from], part) : Moved{}; },
      [&](const Moved& sent, T* message) { tile_and_message<T, false>(tiles, sent, tile, message); },
      [&](const Moved& got, const T* message) { local_and_message<T, true>(got, local, ld, message); });
}

template <class T> void store(const Grid& grid, const Tiles& tiles, T* tile, const BlockCyclic& layout,
                              const T* local, std::int64_t ld, Part part) {
  const int me = grid.rank;
  const Rectangle& mine = tiles.held[me];
  tile_and_local<T, true>(tiles, moved(layout, me, mine, part), tile, local, ld);
  exchange<T>(
      grid, [&](int to) { return moved(layout, me, tiles.held[to], part); },
      [&](int from) { return moved(layout, from, mine, part); },
      [&](const Moved& sent, T* message) { local_and_message<T, false>(sent, local, ld, message); },
      [&](const Moved& got, const T* message) { tile_and_message<T, true>(tiles, got, tile, message); });
  clear_outside(tiles, mine, tile, part);
}

#define TESSERA_INSTANTIATE(T)                                                                            \
  template kernels::Magnitude magnitude_of_part<T>(const Grid&, const Tiles&, const T*, Part);            \
  template void fill_nan<T>(const Grid&, const Tiles&, T*, Part);                                         \
  template void load<T>(const Grid&, const Tiles&, const T*, const BlockCyclic&, T*, std::int64_t, Part); \
  template void store<T>(const Grid&, const Tiles&, T*, const BlockCyclic&, const T*, std::int64_t, Part);
TESSERA_INSTANTIATE(float)
TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
