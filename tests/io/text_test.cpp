// Numbers as text: reading and writing CSV, writing Matrix Market.
#include "io/folder.hpp"
#include "io/text/csv_text.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Csv : public InFolder {
 protected:
  // A separate file for each text: other ranks may still read the previous one.
  std::string put_text(const std::string& text) { return put("t" + std::to_string(files_++) + ".csv", text); }
  int files_ = 0;
};
class SavedMatrixMarket : public InFolder {};

std::string text_of_file(const std::string& path) {
  comm::barrier(comm::world());
  std::ifstream file(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(file)), {});
}
Sharding all_columns() { return NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x")); }

TEST_F(Csv, a_table_with_a_header_is_read) {
  const auto file =
      put("t.csv", "\xef\xbb\xbftime, \"x, in \"\"m\"\"\",y\r\n0,1.5,-2\r\n\r\n1,+2e-3,\n2,nan,inf");
  EXPECT_THAT(io::csv_header(file), ElementsAre("time", "x, in \"m\"", "y"));
  EXPECT_EQ(io::csv_info(file).shape, (Shape{3, 3}));
  for (const auto& layout : {all_rows(), all_columns()}) {
    const Array x = io::load_csv(file, layout);
    EXPECT_EQ(x.sharding(), layout);
    const auto v = to_vector<double>(x);
    EXPECT_THAT(std::vector<double>(v.begin(), v.begin() + 5), ElementsAre(0, 1.5, -2, 1, 0.002));
    EXPECT_TRUE(std::isnan(v[5]) && std::isnan(v[7]) && std::isinf(v[8]));
  }
}

TEST_F(Csv, a_table_without_a_header_and_with_another_delimiter) {
  const auto file = put("t.csv", "1;2\n3;4\n");
  const Array x = io::load_csv(file, all_rows(), {.delimiter = ';', .dtype = int32});
  EXPECT_EQ(x.dtype(), int32);
  EXPECT_THAT(to_vector<int>(x), ElementsAre(1, 2, 3, 4));
  EXPECT_TRUE(io::csv_header(file, {.delimiter = ';'}).empty());
}

TEST_F(Csv, numpys_savetxt_with_a_header) {
  const auto file = put("t.csv", "# a b\n1.000000000000000000e+00 2.500000000000000000e+00\n");
  EXPECT_THAT(io::csv_header(file, {.delimiter = ' '}), ElementsAre("a", "b"));
  EXPECT_THAT(to_vector<double>(io::load_csv(file, {.delimiter = ' '})), ElementsAre(1, 2.5));
}

TEST_F(Csv, lines_of_comments_stand_before_the_table) {
  const auto file = put("t.csv", "# measured, by hand, in May\n\n# x,y\n1,2\n3,4\n5,6\n");
  EXPECT_THAT(io::csv_header(file), ElementsAre("x", "y"));
  EXPECT_THAT(to_vector<double>(io::load_csv(file, all_rows())), ElementsAre(1, 2, 3, 4, 5, 6));
  const auto unnamed = put("u.csv", "# one\n#\n1,2\n3\n");
  EXPECT_TRUE(io::csv_header(unnamed).empty());
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_csv(unnamed); }),
              HasSubstr("has in line 4: 1 field, where the first line has 2"));
  const auto named = put("n.csv", "# m,s\nlength,time\n1,2\n");
  EXPECT_THAT(io::csv_header(named), ElementsAre("length", "time"));
  EXPECT_EQ(io::csv_info(put("e.csv", "# a,b,c\n")).shape, (Shape{0, 3}));
}

// As numpy.loadtxt reads them.
TEST_F(Csv, comments_stand_between_rows_and_behind_them) {
  const auto file = put("t.csv", "x,y # of May\n1,2 # first\n# 7,8\n  # by hand\n3,4\n#\n5,\"6\"#,7\n# end");
  EXPECT_EQ(to_vector<double>(io::load_csv(file, all_rows())), (std::vector<double>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(io::csv_info(file).shape, (Shape{3, 2}));
  const auto unnamed = put("u.csv", "1,2 # a, b\n3,4\n");
  EXPECT_EQ(to_vector<double>(io::load_csv(unnamed)), (std::vector<double>{1, 2, 3, 4}));
  const auto missing = to_vector<double>(io::load_csv(put("m.csv", "#N/A,1\n2,#N/A # none\n")));
  EXPECT_TRUE(std::isnan(missing[0]) && std::isnan(missing[3]));
  EXPECT_EQ(missing[2], 2);
  EXPECT_THAT(io::csv_header(put("n.csv", "item#,price\n1,2\n")), ElementsAre("item#", "price"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_csv(put("b.csv", "1,2\n# c\n3 # ,4\n")); }),
              HasSubstr("has in line 3: 1 field, where the first line has 2"));
}

TEST_F(Csv, comes_back_to_the_same_bits_from_any_layout) {
  const Array x = random::normal(random::key(3), {3000, 3}, float64) * 1e-7;
  for (const auto& layout : {all_rows(), all_columns()}) {
    io::save_csv(path("x.csv"), device_put(x, layout), {.header = {"a", "b,c", "d"}});
    EXPECT_EQ(to_vector<double>(io::load_csv(path("x.csv"), all_columns())), to_vector<double>(x));
    EXPECT_THAT(io::csv_header(path("x.csv")), ElementsAre("a", "b,c", "d"));
  }
  EXPECT_THAT(entries(), ElementsAre("x.csv"));
}

TEST_F(Csv, is_what_a_spreadsheet_reads) {
  io::save_csv(path("x.csv"), device_put(array({{1.f, 2.5f}, {-3.f, 1e10f}, {0.f, 0.1f}}), all_rows()),
               {.header = {"a", "b"}});
  EXPECT_EQ(text_of_file(path("x.csv")), "a,b\n1,2.5\n-3,1e+10\n0,0.1\n");
  io::save_csv(path("v.csv"), arange(3));
  EXPECT_EQ(text_of_file(path("v.csv")), "0\n1\n2\n");
}

TEST_F(Csv, what_is_wrong_is_refused_with_path_line_and_reason) {
  const auto refusal = [&](const std::string& text, io::CsvOptions options = {}) {
    const auto file = put("bad.csv", text);
    return text_of_error<IoError>([&] { io::load_csv(file, options); });
  };
  EXPECT_THAT(refusal("a,b\n1,2\n3\n"),
              HasSubstr("bad.csv' has in line 3: 1 field, where the first line has 2; check the line"));
  EXPECT_THAT(refusal("1,2\n3,x\n"), HasSubstr("line 2: 'x' in column 2, which is no float64"));
  EXPECT_THAT(refusal("1,2\n3,+-4\n"), HasSubstr("'+-4' in column 2, which is no float64"));
  EXPECT_THAT(refusal("1,2\n3,4,5\n"), HasSubstr("3 fields"));
  EXPECT_THAT(refusal("1\n2.5\n", {.dtype = int32}), HasSubstr("'2.5' in column 1, which is no int32"));
  EXPECT_THAT(refusal("1\n300\n", {.dtype = uint8}), HasSubstr("which is no uint8"));
  EXPECT_EQ(io::load_csv(put("empty.csv", "")).shape(), (Shape{0, 0}));
  EXPECT_EQ(io::load_csv(put("only.csv", "a,b\n")).shape(), (Shape{0, 2}));
}

TEST_F(Csv, other_bytes_are_refused_with_their_cure) {
  const auto refusal = [&](const std::string& bytes) {
    const auto file = put("bad.csv", bytes);
    return text_of_error<IoError>([&] { io::load_csv(file); });
  };
  for (const auto& bytes : {std::string("\xff\xfe"
                                        "1\0",
                                        4),
                            std::string("\xfe\xff\0"
                                        "1",
                                        4),
                            std::string("1\0,\0", 4)})
    EXPECT_THAT(refusal(bytes), HasSubstr("UTF-16 or UTF-32, or no text at all; write it as UTF-8"));
  EXPECT_THAT(refusal(std::string("\x1f\x8b\x08", 3)), HasSubstr("is packed by gzip; unpack it with gunzip"));
}

// As NumPy and pandas read them.
TEST_F(Csv, numbers_beyond_the_dtype_are_infinite_or_zero) {
  const auto file = put("far.csv", "1e400,-1e400,1e-400,4e-324\n");
  EXPECT_THAT(to_vector<double>(io::load_csv(file, all_rows())), ElementsAre(INFINITY, -INFINITY, 0, 4e-324));
  EXPECT_THAT(to_vector<float>(io::load_csv(put("far32.csv", "1e39,1e-60\n"), {.dtype = float32})),
              ElementsAre(INFINITY, 0));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_csv(put("far.csv", "1e400x\n1\n")); }),
              HasSubstr("'1e400x' in column 1, which is no float64"));
}

TEST_F(Csv, a_first_row_with_missing_values_is_a_row) {
  for (const std::string first :
       {"NA,2", "nan,2", ",2", "null,N/A", "-inf,2", "\"7\",2", "NA,", "7e999999,2"}) {
    const auto file = put_text(first + "\n3,4\n5,6\n");
    EXPECT_TRUE(io::csv_header(file).empty()) << first;
    EXPECT_EQ(io::csv_info(file).shape, (Shape{3, 2})) << first;
  }
  const auto v = to_vector<double>(io::load_csv(put_text("NA,2\n3,4\n"), all_rows()));
  EXPECT_TRUE(std::isnan(v[0]));
  EXPECT_THAT(std::vector<double>(v.begin() + 1, v.end()), ElementsAre(2, 3, 4));
  EXPECT_THAT(to_vector<bool>(io::load_csv(put_text("true,False\n0,1\n"), {.dtype = bool_})),
              ElementsAre(true, false, false, true));
}

TEST_F(Csv, a_first_line_that_may_be_both_is_refused) {
  for (const std::string first : {"x,2", "NA,x", "1.5%,x", "true,x", "country,2019"})
    EXPECT_THAT(
        text_of_error<IoError>([&] { io::load_csv(put_text(first + "\n3,4\n")); }),
        testing::AllOf(HasSubstr("has in its first line the name '"), HasSubstr("' beside the value '")))
        << first;
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_csv(put_text("1.5%,2%\n3,4\n")); }),
              HasSubstr("'1.5%' in column 1, which is no float64"));
  for (const std::string first : {"country,\"2019\"", "#country,2019", "country,"})
    EXPECT_EQ(io::csv_info(put_text(first + "\n3,4\n")).shape, (Shape{1, 2})) << first;
}

TEST_F(Csv, names_that_look_like_numbers_come_back_as_names) {
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{"2019", "2020"}, {"a", ""}, {"", ""}, {"NA", "true"}}) {
    io::save_csv(path("x.csv"), array({{1, 2}, {3, 4}}), {.header = names});
    EXPECT_EQ(io::csv_header(path("x.csv")), names);
    EXPECT_EQ(io::csv_info(path("x.csv")).shape, (Shape{2, 2}));
  }
}

TEST_F(Csv, a_line_without_an_end_is_refused_before_it_fills_the_memory) {
  if (is_main_process()) std::ofstream(path("long.csv")) << "1,2\n";
  comm::barrier(comm::world());
  if (is_main_process()) std::filesystem::resize_file(path("long.csv"), std::uintmax_t{1} << 31);  // sparse
  comm::barrier(comm::world());
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_csv(path("long.csv")); }),
              HasSubstr("has a line of more than 64.0 MiB from byte 4 on"));
}

TEST_F(Csv, what_cannot_be_a_table_is_refused) {
  EXPECT_THAT(text_of_error<ShapeError>([&] {
                io::save_csv(path("x.csv"), zeros({2, 2, 2}));
              }),
              HasSubstr("a CSV file is a table, the array has the shape (2, 2, 2)"));
  EXPECT_THAT(text_of_error<ShapeError>([&] {
                io::save_csv(path("x.csv"), zeros({2, 2}), {.header = {"a"}});
              }),
              HasSubstr("the header has 1 name for 2 columns"));
  EXPECT_THAT(text_of_error<DtypeError>([&] { io::save_csv(path("x.csv"), zeros({2}, complex64)); }),
              HasSubstr("has no complex numbers"));
  EXPECT_THAT(text_of_error<ArgumentError>([&] { io::load_csv(path("x.csv"), {.delimiter = '.'}); }),
              HasSubstr("'.' cannot stand between numbers"));
}

TEST_F(SavedMatrixMarket, is_written_down_the_columns) {
  io::save_matrix_market(path("m.mtx"), device_put(array({{1.5, 2.0, 3.0}, {4.0, 5.0, 6.0}}), all_rows()));
  EXPECT_EQ(text_of_file(path("m.mtx")),
            "%%MatrixMarket matrix array real general\n2 3\n1.5\n4\n2\n5\n3\n6\n");
  io::save_matrix_market(path("c.mtx"), device_put(array({{0, 7, 0}, {0, 0, -2}}), all_rows()),
                         {.coordinate = true});
  EXPECT_EQ(text_of_file(path("c.mtx")),
            "%%MatrixMarket matrix coordinate integer general\n2 3 2\n1 2 7\n2 3 -2\n");
}

TEST_F(SavedMatrixMarket, comes_back_to_the_same_bits) {
  const Array x = random::normal(random::key(3), {61, 37}, float64);
  for (const bool coordinate : {false, true}) {
    io::save_matrix_market(path("m.mtx"), device_put(x, all_rows()), {.coordinate = coordinate});
    EXPECT_EQ(to_vector<double>(io::load_matrix_market(path("m.mtx"), all_columns())), to_vector<double>(x));
  }
  const Array z = astype(x, complex128) * std::complex<double>(0, 1);
  io::save_matrix_market(path("z.mtx"), device_put(z, all_columns()), {.coordinate = true});
  EXPECT_EQ(to_vector<std::complex<double>>(io::load_matrix_market(path("z.mtx"), all_rows())),
            to_vector<std::complex<double>>(z));
}

TEST_F(SavedMatrixMarket, says_what_the_format_does_not_have) {
  EXPECT_THAT(text_of_error<ShapeError>([&] { io::save_matrix_market(path("m.mtx"), zeros({2})); }),
              HasSubstr("a Matrix Market file is a matrix, the array has the shape (2,)"));
  EXPECT_THAT(text_of_error<DtypeError>([&] {
                io::save_matrix_market(path("m.mtx"), zeros({2, 2}, uint64));
              }),
              HasSubstr("the format has no uint64"));
}

}  // namespace
}  // namespace tessera::test
