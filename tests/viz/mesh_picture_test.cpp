#include "pictures.hpp"

namespace tessera::debug {
namespace {

using ::testing::HasSubstr;

class MeshPictureTest : public PictureTest {};

TEST_F(MeshPictureTest, the_last_axis_goes_across) {
  EXPECT_EQ(mesh_picture(Mesh(NdDevices{{6, 4}, {2, 0}}, {"x", "y"})),
            "Mesh('x': 2, 'y': 2): 4 devices\n"
            "x\\y   0   1\n"
            "    ┌───┬───┐\n"
            "  0 │ 6 │ 4 │\n"
            "  1 │ 2 │ 0 │\n"
            "    └───┴───┘\n");
}

TEST_F(MeshPictureTest, one_axis_is_one_row) {
  EXPECT_EQ(mesh_picture(abstract_mesh({3}, {"data"})),
            "Mesh('data': 3): 3 abstract devices\n"
            "data   0   1   2\n"
            "     ┌───┬───┬───┐\n"
            "     │ 0 │ 1 │ 2 │\n"
            "     └───┴───┴───┘\n");
}

TEST_F(MeshPictureTest, further_axes_make_panels) {
  std::string text = mesh_picture(abstract_mesh({2, 3, 1, 2}, {"a", "b", "c", "d"}));
  EXPECT_THAT(
      text,
      HasSubstr(
          "a = 1, b = 1\nc\\d   0    1\n    ┌────┬────┐\n  0 │ 8  │ 9  │\n    └────┴────┘\na = 1, b = 2\n"));
}

TEST_F(MeshPictureTest, long_axes_continue_below_and_no_line_is_too_long) {
  std::string text = mesh_picture(abstract_mesh({2, 64}, {"x", "y"}));
  for (const std::string& line : lines_of(text)) EXPECT_LE(viz::display_width(line), 80);
  for (int id = 0; id < 128; ++id) EXPECT_THAT(text, HasSubstr(" " + std::to_string(id) + " "));
}

TEST_F(MeshPictureTest, thousands_of_devices_are_cut_and_counted) {
  std::string text = mesh_picture(abstract_mesh({100, 1000}, {"x", "y"}));
  EXPECT_THAT(text, HasSubstr("│ 99999 │\n"));
  EXPECT_THAT(text, HasSubstr("105 of 100000 devices shown"));
  EXPECT_LT(lines_of(text).size(), 30u);
}

TEST_F(MeshPictureTest, several_hosts_are_listed) {
  set_devices({{0, 0, "north"}, {1, 1, "north"}, {2, 2, "south"}, {3, 3, "south"}});
  EXPECT_THAT(mesh_picture(make_mesh({2, 2}, {"x", "y"})),
              HasSubstr("Hosts: north has CPU 0,1; south has CPU 2,3\n"));
}

}  // namespace
}  // namespace tessera::debug
