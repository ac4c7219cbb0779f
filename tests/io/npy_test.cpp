#include <sys/resource.h>

#include <csignal>

#include "io/folder.hpp"
#include "io/npy_header.hpp"

namespace tessera::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Npy : public InFolder {};

std::string npy(const std::string& dict, const std::string& data, char major = 1) {
  std::string header = dict + "\n";
  std::string text("\x93NUMPY", 6);
  text += major;
  text += '\0';
  for (int i = 0; i < (major == 1 ? 2 : 4); ++i) text += static_cast<char>(header.size() >> (8 * i) & 255);
  return text + header + data;
}
std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * 4};
}

TEST_F(Npy, comes_back_under_any_sharding_from_any_sharding) {
  std::mt19937 random(7);
  const std::vector<Shape> shapes = {{}, {1}, {11}, {5, 7}, {1, 13}, {0, 4}, {4, 3, 5}, {40, 3, 2, 2}};
  const std::vector<Dtype> dtypes = {float32, float64,   int8,       uint16,   int64,
                                     bool_,   complex64, complex128, bfloat16, float16};
  for (int n = 0; n < 40; ++n) {
    const auto& shape = shapes[random() % shapes.size()];
    const auto dtype = dtypes[random() % dtypes.size()];
    const auto from = random_sharding(random, random_mesh(random), shape.ndim()),
               to = random_sharding(random, random_mesh(random), shape.ndim());
    const Array x = astype(reshape(arange(static_cast<int>(shape.elements())), shape) % 7, dtype);
    io::save_npy(path("x.npy"), device_put(x, from));
    const Array y = io::load_npy(path("x.npy"), to);
    ASSERT_EQ(y.shape(), shape);
    ASSERT_EQ(y.dtype(), dtype);
    ASSERT_EQ(y.sharding(), to);
    ASSERT_EQ(to_vector<std::complex<double>>(y), to_vector<std::complex<double>>(x))
        << to_string(shape) << name(dtype);
  }
  EXPECT_THAT(entries(), ElementsAre("x.npy"));
}

TEST_F(Npy, is_the_file_that_numpy_writes) {
  io::save_npy(path("x.npy"), device_put(array({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}}), all_rows()));
  comm::barrier(comm::world());
  std::ifstream file(path("x.npy"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::string dict = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  dict.resize(117, ' ');  // numpy.save: 10 + 118 = 128 bytes
  EXPECT_EQ(text, npy(dict, bytes_of({1, 2, 3, 4, 5, 6})));
}

// The bytes are those that numpy.save writes for ml_dtypes.bfloat16 and numpy.float16.
TEST_F(Npy, halves_are_the_files_that_numpy_writes) {
  const auto file_of = [&](Dtype dtype) {
    io::save_npy(path("h.npy"), device_put(astype(array({1.f, -2.5f}), dtype), all_rows()));
    comm::barrier(comm::world());
    std::ifstream file(path("h.npy"), std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    comm::barrier(comm::world());
    return text;
  };
  std::string dict = "{'descr': '<V2', 'fortran_order': False, 'shape': (2,), }";
  dict.resize(117, ' ');
  EXPECT_EQ(file_of(bfloat16), npy(dict, std::string("\x80\x3f\x20\xc0", 4)));
  dict.replace(dict.find("V2"), 2, "f2");
  EXPECT_EQ(file_of(float16), npy(dict, std::string("\x00\x3c\x00\xc1", 4)));
}

TEST_F(Npy, columns_of_few_bytes_are_gathered_into_rows_before_they_are_written) {
  const Array x = reshape(arange(64 * 64), {64, 64});
  io::save_npy(path("x.npy"), device_put(x, NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x"))));
  EXPECT_EQ(to_vector<int>(io::load_npy(path("x.npy"), all_rows())), to_vector<int>(x));
}

TEST_F(Npy, fortran_order_and_the_other_byte_order_are_turned) {
  const std::string dict = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
  const auto f = put("f.npy", npy(dict, bytes_of({1, 4, 2, 5, 3, 6}), 2));
  EXPECT_THAT(to_vector<float>(io::load_npy(f, all_rows())), ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(
      to_vector<float>(io::load_npy(f, NamedSharding(make_mesh({device_count()}, {"x"}), P(None, "x")))),
      (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const auto big = put("big.npy", npy("{'shape': (3,), 'fortran_order': False, 'descr': '>i4'}",
                                      std::string("\0\0\0\1\0\0\1\0\377\377\377\377", 12), 3));
  EXPECT_THAT(to_vector<int>(io::load_npy(big, all_rows())), ElementsAre(1, 256, -1));
  const auto complex = put("c.npy", npy("{'descr': '>c8', 'fortran_order': False, 'shape': ()}",
                                        std::string("\x3f\x80\0\0\x40\0\0\0", 8)));
  EXPECT_EQ(item<std::complex<float>>(
                io::load_npy(complex, NamedSharding(make_mesh({device_count()}, {"x"}), P()))),
            (std::complex<float>(1, 2)));
}

TEST_F(Npy, refuses_what_it_cannot_read_on_every_rank_with_the_reason) {
  const std::string data = bytes_of({1, 2, 3});
  const auto shape = [](const std::string& s) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + s + "}";
  };
  const auto descr = [](const std::string& s) {
    return "{'descr': " + s + ", 'fortran_order': False, 'shape': (3,)}";
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "is empty"},
      {"hello world", "does not begin with"},
      {std::string("PK\3\4 zip", 8), ".npz archive"},
      {"\x1f\x8b packed", "is packed by gzip, so that ranks cannot read parts of it; unpack it with gunzip"},
      {"\x93NUMPY", "ends inside its header"},
      {npy(shape("(3,)"), data, 9), "version 9.0"},
      {npy(shape("(3,)"), data).substr(0, 40), "its header alone claims"},
      {npy(shape("(3,)"), data.substr(0, 11)), "which needs"},
      {npy(shape("(-3,)"), data), "negative extent"},
      {npy(shape("(1000000000000000000000000000000,)"), data), "beyond 2^63"},
      {npy(shape("(4294967296, 4294967296, 4)"), data), "exceed 2^63"},
      {npy(shape("(3.5,)"), data), "damaged header"},
      {npy(shape("[3]"), data), "damaged header"},
      {npy(descr("'|O'"), data), "Python objects"},
      {npy(descr("[('a', '<f4')]"), data), "structured"},
      {npy(descr("'<U3'"), data), "'<U3'"},
      {npy(descr("'<f16'"), data), "'<f16'"},
      {npy("{'descr': '<f4', 'shape': (3,)}", data), "no key 'fortran_order'"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (3,)}", data), "'descr' twice"},
      {npy("{'descr': '<f4', 'order': 1, 'fortran_order': False, 'shape': (3,)}", data),
       "unknown key 'order'"},
      {npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (3,)}", data), "neither True nor False"},
      {npy(shape("(3,)") + " 1", data), "something follows"},
  };
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const auto file = put("bad" + std::to_string(n) + ".npy", cases[n].first);
    const auto text = text_of_error<IoError>([&] { io::load_npy(file, all_rows()); });
    EXPECT_THAT(text, HasSubstr(cases[n].second));
    EXPECT_THAT(text, AllOf(HasSubstr("load_npy at npy_test.cpp:"), HasSubstr("'" + file + "'")));
    EXPECT_THAT(text, HasSubstr("; "));  // the remedy
    EXPECT_THAT(text, Not(HasSubstr("rank ")));
  }
  EXPECT_EQ(item<float>(sum(device_put(ones({4}), all_rows()))), 4);  // the program continues
}

TEST_F(Npy, missing_files_directories_and_pipes_are_named) {
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_npy(path("none.npy"), all_rows()); }),
              HasSubstr("No such file"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_npy(folder_, all_rows()); }),
              HasSubstr("is a directory"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_npy("/dev/null", all_rows()); }),
              HasSubstr("not a regular file"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::save_npy(folder_, device_put(ones({4}), all_rows())); }),
              HasSubstr("is a directory"));
  EXPECT_THAT(
      text_of_error<IoError>([&] { io::save_npy(path("no/such/x.npy"), device_put(ones({4}), all_rows())); }),
      HasSubstr("there is no folder '" + path("no/such/") + "'; make it first"));
  EXPECT_THAT(text_of_error<ShardingError>([&] {
                io::load_npy(
                    put("v.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': ()}", bytes_of({1}))),
                    all_rows());
              }),
              HasSubstr("load_npy"));
}

TEST_F(Npy, a_save_that_fails_on_one_rank_fails_on_all_and_leaves_the_old_file) {
  const auto x = device_put(astype(arange(4000), float32), all_rows());
  io::save_npy(path("x.npy"), x);
  const rlimit none{1000, RLIM_INFINITY};  // limits the bytes of a file: simulates a full disk on this rank
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  if (process_index() == device_count() - 1) setrlimit(RLIMIT_FSIZE, &none);
  const auto text = text_of_error<IoError>([&] { io::save_npy(path("x.npy"), x + 1); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_THAT(text, HasSubstr("File too large"));
  EXPECT_THAT(entries(), ElementsAre("x.npy"));
  EXPECT_EQ(to_vector<float>(io::load_npy(path("x.npy"), all_rows())), to_vector<float>(x));
}

TEST_F(Npy, bools_of_any_byte_are_read_as_0_and_1) {
  std::string values;
  for (int n = 0; n < 37; ++n) values += static_cast<char>(n % 5 == 0 ? n : n % 2);
  const auto file = put("b.npy", npy("{'descr': '|b1', 'fortran_order': False, 'shape': (37,), }", values));
  const Array x = io::load_npy(file, all_rows());
  const auto numbers = to_vector<int>(astype(x, int32));
  for (int n = 0; n < 37; ++n) EXPECT_EQ(numbers[n], n % 5 == 0 ? n != 0 : n % 2) << n;
}

TEST_F(Npy, a_shape_is_what_python_reads_as_a_tuple_of_numbers) {
  for (const std::string& shape : {std::string("(2)"), std::string("(02,)"), std::string("(2,)\0", 5)})
    EXPECT_THAT(
        text_of_error<IoError>([&] {
          io::load_npy(put("s.npy", npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }",
                                        std::string(8, '\0'))));
        }),
        HasSubstr("s.npy' has a damaged header"))
        << shape;
}

}  // namespace
}  // namespace tessera::test
