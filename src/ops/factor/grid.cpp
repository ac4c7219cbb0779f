#include "ops/factor/grid.hpp"

#include <algorithm>

namespace tessera::factor {

Grid::Grid(const std::vector<int>& device_ids, GridShape grid_shape) : shape(grid_shape), all(&comm::group(device_ids)) {
  rank = all->rank();
  row = rank / shape.columns;
  column = rank % shape.columns;
  std::vector<int> of_row, of_column;
  for (int c = 0; c < shape.columns; ++c) of_row.push_back(device_ids[static_cast<std::size_t>(row * shape.columns + c)]);
  for (int r = 0; r < shape.rows; ++r) of_column.push_back(device_ids[static_cast<std::size_t>(r * shape.columns + column)]);
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

// Copies a run x run rectangle; the tile is usually row-major where the other side is column-major, so both are walked in small squares.
template <class T, bool to_tile, class Tile, class Other> void copy_rectangle(Tile* tile, std::int64_t row_step, std::int64_t column_step,
                                                                              bool conjugate, std::int64_t rows, std::int64_t columns,
                                                                              Other* other, std::int64_t ld) {
  const auto move = [&](Tile& in_tile, Other& outside) {
    if constexpr (to_tile)
      in_tile = outside;
    else if constexpr (complex_type<T>)
      outside = conjugate ? std::conj(in_tile) : in_tile;
    else
      outside = in_tile;
  };
  if (row_step == 1) {
    for (std::int64_t j = 0; j < columns; ++j)
      for (std::int64_t i = 0; i < rows; ++i) move(tile[i + j * column_step], other[i + j * ld]);
    return;
  }
  constexpr std::int64_t square = 16;
  for (std::int64_t j0 = 0; j0 < columns; j0 += square)
    for (std::int64_t i0 = 0; i0 < rows; i0 += square)
      for (std::int64_t j = j0; j < std::min(j0 + square, columns); ++j)
        for (std::int64_t i = i0; i < std::min(i0 + square, rows); ++i) move(tile[i * row_step + j * column_step], other[i + j * ld]);
}

// Walks the rectangles of a meeting in the order of the message: f(run of rows, run of columns, place in the message).
template <class F> void walk(const Meeting2d& meeting, F&& f) {
  std::int64_t offset = 0;
  for (const Run& columns : meeting.columns)
    for (const Run& rows : meeting.rows) {
      f(rows, columns, offset);
      offset += rows.size * columns.size;
    }
}

template <class T, bool to_tile, class Tile, class Other>
void tile_and_message(const Tiles& tiles, const Meeting2d& meeting, Tile* tile, Other* message) {
  walk(meeting, [&](const Run& rows, const Run& columns, std::int64_t offset) {
    copy_rectangle<T, to_tile>(tile + rows.in_box * tiles.row_step + columns.in_box * tiles.column_step, tiles.row_step, tiles.column_step,
                               tiles.conjugate, rows.size, columns.size, message + offset, rows.size);
  });
}

template <class T, bool to_tile, class Tile, class Local>
void tile_and_local(const Tiles& tiles, const Meeting2d& meeting, Tile* tile, Local* local, std::int64_t ld) {
  walk(meeting, [&](const Run& rows, const Run& columns, std::int64_t) {
    copy_rectangle<T, to_tile>(tile + rows.in_box * tiles.row_step + columns.in_box * tiles.column_step, tiles.row_step, tiles.column_step,
                               tiles.conjugate, rows.size, columns.size, local + rows.in_part + columns.in_part * ld, ld);
  });
}

template <class T, bool to_local, class Local, class Message>
void local_and_message(const Meeting2d& meeting, Local* local, std::int64_t ld, Message* message) {
  walk(meeting, [&](const Run& rows, const Run& columns, std::int64_t offset) {
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

template <class T> std::int64_t bytes_of(const Pooled<T>& message) { return message.size() * static_cast<std::int64_t>(sizeof(T)); }

}  // namespace

template <class T> void load(const Grid& grid, const Tiles& tiles, const T* tile, const BlockCyclic& layout, T* local, std::int64_t ld) {
  const int ranks = grid.all->size(), me = grid.rank;
  const Rectangle& mine = tiles.held[static_cast<std::size_t>(me)];
  if (serves(tiles, me, me)) tile_and_local<T, false>(tiles, meet(layout, me, mine), tile, local, ld);
  Pooled<T> outgoing, incoming;
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (me + distance) % ranks, from = (me - distance + ranks) % ranks;
    const auto sent = serves(tiles, me, to) ? meet(layout, to, mine) : Meeting2d{};
    const auto received = serves(tiles, from, me) ? meet(layout, me, tiles.held[static_cast<std::size_t>(from)]) : Meeting2d{};
    outgoing.resize(sent.elements());
    incoming.resize(received.elements());
    auto arrival = incoming.empty() ? comm::Pending() : comm::start_receive(*grid.all, incoming.data(), bytes_of(incoming), from);
    tile_and_message<T, false>(tiles, sent, tile, outgoing.data());
    auto departure = outgoing.empty() ? comm::Pending() : comm::start_send(*grid.all, outgoing.data(), bytes_of(outgoing), to);
    arrival.wait();
    local_and_message<T, true>(received, local, ld, static_cast<const T*>(incoming.data()));
    departure.wait();
  }
}

template <class T> void store(const Grid& grid, const Tiles& tiles, T* tile, const BlockCyclic& layout, const T* local, std::int64_t ld) {
  const int ranks = grid.all->size(), me = grid.rank;
  const Rectangle& mine = tiles.held[static_cast<std::size_t>(me)];
  tile_and_local<T, true>(tiles, meet(layout, me, mine), tile, local, ld);
  Pooled<T> outgoing, incoming;
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (me + distance) % ranks, from = (me - distance + ranks) % ranks;
    const auto sent = meet(layout, me, tiles.held[static_cast<std::size_t>(to)]);
    const auto received = meet(layout, from, mine);
    outgoing.resize(sent.elements());
    incoming.resize(received.elements());
    auto arrival = incoming.empty() ? comm::Pending() : comm::start_receive(*grid.all, incoming.data(), bytes_of(incoming), from);
    local_and_message<T, false>(sent, local, ld, outgoing.data());
    auto departure = outgoing.empty() ? comm::Pending() : comm::start_send(*grid.all, outgoing.data(), bytes_of(outgoing), to);
    arrival.wait();
    tile_and_message<T, true>(tiles, received, tile, static_cast<const T*>(incoming.data()));
    departure.wait();
  }
}

#define TESSERA_INSTANTIATE(T)                                                                      \
  template void load<T>(const Grid&, const Tiles&, const T*, const BlockCyclic&, T*, std::int64_t); \
  template void store<T>(const Grid&, const Tiles&, T*, const BlockCyclic&, const T*, std::int64_t);
TESSERA_INSTANTIATE(float) TESSERA_INSTANTIATE(double) TESSERA_INSTANTIATE(kernels::c32) TESSERA_INSTANTIATE(kernels::c64)
#undef TESSERA_INSTANTIATE

}  // namespace tessera::factor
