#include "io/folder.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Complex = std::complex<double>;

class MatrixMarket : public InFolder {
 protected:
  Array load(const std::string& text) {
    return io::load_matrix_market(put("m.mtx", text),
                                  NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x")));
  }
};
const std::string banner = "%%MatrixMarket matrix ";

TEST_F(MatrixMarket, array_files_go_down_the_columns) {
  const Array x = load(banner + "array real general\n% a comment\n2 3\n1\n2\n\n3e0\n+4\n-5.5\n6\n");
  EXPECT_EQ(x.dtype(), float64);
  EXPECT_THAT(to_vector<double>(x), ElementsAre(1, 3, -5.5, 2, 4, 6));
}

TEST_F(MatrixMarket, coordinate_entries_that_stand_twice_add_up) {
  const Array x = load(banner + "coordinate integer general\n2 3 3\n1 1 5\n2 3 -1\n1 1 2\r\n");
  EXPECT_EQ(x.dtype(), int64);
  EXPECT_THAT(to_vector<int>(x), ElementsAre(7, 0, 0, 0, 0, -1));
}

TEST_F(MatrixMarket, unsigned_integers_of_scipy_are_uint64) {
  const Array x = load(banner + "array unsigned-integer general\n2 1\n18446744073709551615\n3\n");
  EXPECT_EQ(x.dtype(), uint64);
  EXPECT_THAT(to_vector<std::uint64_t>(x), ElementsAre(18446744073709551615U, 3));
  EXPECT_THAT(
      to_vector<std::uint64_t>(load(banner + "coordinate unsigned-integer symmetric\n2 2 2\n1 1 1\n2 1 3\n")),
      ElementsAre(1, 3, 3, 0));
}

TEST_F(MatrixMarket, symmetric_files_hold_the_lower_triangle) {
  EXPECT_THAT(to_vector<double>(load(banner + "coordinate real symmetric\n2 2 2\n1 1 1\n2 1 3\n")),
              ElementsAre(1, 3, 3, 0));
  EXPECT_THAT(to_vector<double>(load(banner + "array real symmetric\n2 2\n1\n3\n4\n")),
              ElementsAre(1, 3, 3, 4));
  EXPECT_THAT(to_vector<double>(load(banner + "array real skew-symmetric\n2 2\n3\n")),
              ElementsAre(0, -3, 3, 0));
  EXPECT_THAT(to_vector<Complex>(load(banner + "coordinate complex hermitian\n2 2 2\n1 1 1 0\n2 1 3 4\n")),
              ElementsAre(1., Complex(3, -4), Complex(3, 4), 0.));
  EXPECT_THAT(to_vector<double>(load(banner + "coordinate pattern symmetric\n2 2 1\n2 1\n")),
              ElementsAre(0, 1, 1, 0));
}

TEST_F(MatrixMarket, a_malformed_file_is_refused_with_the_line) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 0: the file is empty"},
      {"hello\n", "line 1: does not begin with"},
      {"\x1f\x8b\x08", "is packed by gzip (unpack it with gunzip)"},
      {banner + "coordinate unsigned-integer skew-symmetric\n2 2 1\n2 1 1\n", "does not go with"},
      {banner + "coordinate unsigned-integer general\n2 2 1\n2 1 -1\n", "the value is no number"},
      {"%%MatrixMarket matrix\n", "has 2 words"},
      {banner + "coordinates real general\n",
       "the format 'coordinates' is unknown; there are coordinate, array (did you mean 'coordinate'?)"},
      {banner + "array quaternion general\n", "the field 'quaternion'"},
      {banner + "array real upper\n", "the symmetry 'upper'"},
      {banner + "array pattern general\n", "a pattern has no values"},
      {banner + "array real hermitian\n", "hermitian goes with complex"},
      {banner + "array real general\n", "sizes is missing"},
      {banner + "array real general\n2 x\n", "the number of columns is no number"},
      {banner + "array real general\n-2 2\n", "negative"},
      {banner + "array real symmetric\n2 3\n", "square"},
      {banner + "array real general\n1 2\n1\n", "the file ends before the value at (1, 2)"},
      {banner + "array real general\n1 1\n1\n2\n", "line 4: something follows"},
      {banner + "array real general\n1 1\n1 2\n", "something follows the numbers"},
      {banner + "array real general\n1 1\n1,5\n", "the value is no number"},
      {banner + "array real general\n1 1\n+-3\n", "the value is no number"},
      {banner + "coordinate real general\n2 2 2\n1 1 1\n", "the file ends after 1 of 2 entries"},
      {banner + "coordinate real general\n2 2 1\n3 1 1\n", "(3, 1) lies outside"},
      {banner + "coordinate real general\n2 2 1\n0 1 1\n", "(0, 1) lies outside"},
      {banner + "coordinate real symmetric\n2 2 1\n1 2 1\n", "above the diagonal"},
      {banner + "coordinate complex general\n2 2 1\n1 2 1\n", "the imaginary part is missing"},
      {banner + "coordinate real skew-symmetric\n2 2 1\n1 1 1\n", "diagonal"},
      {banner + "coordinate real general\n1152921504606846976 16 1\n100 1 1.0\n",
       "line 2: the bytes of a matrix of 1152921504606846976 x 16 exceed 2^63"},
      {banner + "coordinate integer general\n1 1 2\n1 1 9223372036854775807\n1 1 1\n",
       "line 4: the entries of one place do not fit int64"},
      {banner + "coordinate integer skew-symmetric\n2 2 1\n2 1 -9223372036854775808\n", "has no negative"},
      {banner + "array real \x1b[2J\n", "the symmetry '\\x1b[2j'"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_THAT(
        text_of_error<IoError>([&] { load(text); }),
        testing::AllOf(HasSubstr(expected), HasSubstr("load_matrix_market at matrix_market_test.cpp:"),
                       HasSubstr("; check the file")))
        << text;
    comm::barrier(comm::world());
  }
}

}  // namespace
}  // namespace tessera::test
