// Boxes in the memory of tiles: corresponding elements of two boxes, in runs as long as possible.
#include "run/strided_box.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace tessera {
namespace {

using testing::ElementsAre;
using Stretch = std::array<std::int64_t, 3>;  // offset in a, offset in b, elements

Tile tile_of(const Index& box) {
  Tile tile;
  tile.box = box;
  return tile;
}
std::vector<Stretch> runs_of(const StridedBox& a, const StridedBox& b) {
  std::vector<Stretch> runs;
  for_each_run(a, b, [&](std::int64_t x, std::int64_t y, std::int64_t n) { runs.push_back({x, y, n}); });
  return runs;
}

TEST(StridedBox, whole_rows_of_a_tile_are_contiguous) {
  const auto rows = destination_box(tile_of({{10, 14}, {0, 5}}), {{11, 13}, {0, 5}});
  EXPECT_EQ(rows.offset, 5);
  EXPECT_EQ(rows.elements, 10);
  EXPECT_TRUE(rows.contiguous);
}

TEST(StridedBox, columns_are_not) {
  const auto columns = destination_box(tile_of({{0, 4}, {0, 5}}), {{0, 4}, {2, 4}});
  EXPECT_EQ(columns.offset, 2);
  EXPECT_FALSE(columns.contiguous);
}

TEST(StridedBox, one_column_of_one_row_is_contiguous_again) {
  EXPECT_TRUE(destination_box(tile_of({{0, 4}, {0, 5}}), {{3, 4}, {2, 3}}).contiguous);
}

TEST(StridedBox, a_piece_reads_its_source_backwards) {
  RemapPiece piece;
  piece.offset = {7};
  piece.step = {-1};  // result[i] = source[7 - i]
  const auto box = source_box(tile_of({{0, 8}}), piece, {{2, 5}});
  EXPECT_EQ(box.offset, 5);
  EXPECT_THAT(box.strides, ElementsAre(-1));
}

TEST(Runs, of_the_same_rows_are_one) {
  const Tile tile = tile_of({{0, 4}, {0, 5}});
  const auto box = destination_box(tile, {{1, 3}, {0, 5}});
  EXPECT_THAT(runs_of(box, box), ElementsAre(Stretch{5, 5, 10}));
}

TEST(Runs, between_tiles_of_different_width_are_rows) {
  const Index box{{1, 3}, {2, 4}};
  EXPECT_THAT(runs_of(destination_box(tile_of({{0, 4}, {0, 5}}), box), destination_box(tile_of(box), box)),
              ElementsAre(Stretch{7, 0, 2}, Stretch{12, 2, 2}));
}

TEST(Runs, of_an_empty_box_are_none) {
  const Index box{{1, 1}, {0, 5}};
  const auto empty = destination_box(tile_of({{0, 4}, {0, 5}}), box);
  EXPECT_TRUE(runs_of(empty, empty).empty());
}

TEST(Runs, of_a_scalar_are_one_element) {
  const auto scalar = destination_box(tile_of({}), {});
  EXPECT_THAT(runs_of(scalar, scalar), ElementsAre(Stretch{0, 0, 1}));
}

TEST(Runs, cover_every_element_once_in_order) {
  const Index box{{1, 4}, {0, 3}, {2, 5}};
  const auto a = destination_box(tile_of({{0, 5}, {0, 3}, {0, 7}}), box),
             b = destination_box(tile_of(box), box);
  std::int64_t next = 0;
  for (const auto& [from, to, n] : runs_of(a, b)) {
    EXPECT_EQ(to, next);
    const auto i = next / 9 + 1, j = next / 3 % 3;
    EXPECT_EQ(from, (i * 3 + j) * 7 + 2);
    next += n;
  }
  EXPECT_EQ(next, 27);
}

}  // namespace
}  // namespace tessera
