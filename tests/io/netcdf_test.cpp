// netCDF-4: reads files of xarray and netCDF4-python, and reads back what it writes.
#include <tessera/io/netcdf.hpp>
#include <tessera/io/stream.hpp>

#include <cmath>

#include "io/folder.hpp"
#include "support/data.hpp"

namespace tessera::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::NanSensitiveDoubleEq;
using testing::Pointwise;

class NetcdfFile : public InFolder {
 protected:
  static std::string data(const std::string& name) { return (tests_folder() / "io/data" / name).string(); }
  static std::string bytes_of(const std::string& file) {
    std::ifstream stored(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(stored), {}};
  }
  static double made(std::int64_t i) { return static_cast<double>(7 * i % 100 - 50); }
  static std::vector<double> numbers(const Array& x) { return to_vector<double>(astype(x, float64)); }
};

TEST_F(NetcdfFile, variables_of_netcdf4_python_have_their_dims_attributes_and_groups) {
  const auto file = data("netcdf4.nc");
  const auto variables = io::netcdf_variables(file);
  EXPECT_THAT(variables.at("packed").dims, ElementsAre("time", "x"));
  EXPECT_THAT(variables.at("x").dims, ElementsAre("x"));
  EXPECT_THAT(variables.at("inner/field").dims, ElementsAre("z", "x"));
  EXPECT_THAT(variables.at("number").dims, testing::IsEmpty());
  EXPECT_FALSE(variables.contains("names"));  // texts
  EXPECT_FALSE(variables.contains("time"));   // a dimension without a variable
  const auto dims = io::netcdf_dims(file);
  EXPECT_EQ(dims.at("time").size, 3);
  EXPECT_TRUE(dims.at("time").is_unlimited);
  EXPECT_FALSE(dims.at("z").is_unlimited);
  EXPECT_EQ(std::get<std::string>(io::netcdf_attributes(file).at("title")), "packed, masked, grouped");
  EXPECT_EQ(std::get<double>(io::netcdf_attributes(file, "packed").at("scale_factor")), 0.5);
  EXPECT_EQ(io::netcdf_attributes(file, "x").size(), 1U);
}

TEST_F(NetcdfFile, coordinates_of_several_dims_have_their_dims) {
  const auto variables = io::netcdf_variables(data("coordinates.nc"));
  EXPECT_THAT(variables.at("x").dims, ElementsAre("x", "y"));
  EXPECT_THAT(variables.at("z").dims, ElementsAre("t", "y", "x"));
  EXPECT_THAT(variables.at("square").dims, ElementsAre("y", "y"));
}

// HDF5 1.10 walks free space of size 0 in a global heap for ever.
TEST_F(NetcdfFile, dims_keep_their_names_beside_a_damaged_heap) {
  std::string bytes = bytes_of(data("netcdf4.nc"));
  const auto heap = bytes.find("GCOL");
  ASSERT_NE(heap, std::string::npos);
  const auto file = put("damaged.nc", bytes.replace(heap + 16, 64, 64, '\0'));
  EXPECT_THAT(io::netcdf_variables(file).at("packed").dims, ElementsAre("time", "x"));
  EXPECT_EQ(numbers(io::load_netcdf(file, "inner/field", all_rows()))[19], made(19));
}

// Scales of one length leave a dim without a name.
TEST_F(NetcdfFile, dims_have_the_only_scale_of_their_length_where_uses_are_not_listed) {
  io::Netcdf out(path("x.nc"), {.mode = io::Hdf5Open::replace});
  out.append("t2m", ones({2, 4, 6}), {"time", "lat", "lon"});
  out.write("u", ones({4, 7}), {"lat", "one"}), out.write("v", ones({7}), {"another"});
  out.close();
  auto bytes = bytes_of(path("x.nc"));
  const std::string uses = "REFERENCE_LIST";
  for (auto at = bytes.find(uses); at != std::string::npos; at = bytes.find(uses, at + 1)) bytes[at] = 'r';
  const auto variables = io::netcdf_variables(put("y.nc", bytes));
  EXPECT_THAT(variables.at("t2m").dims, ElementsAre("time", "lat", "lon"));
  EXPECT_THAT(variables.at("u").dims, ElementsAre("lat", "phony_dim_0"));
}

TEST_F(NetcdfFile, packed_numbers_are_unpacked_and_missing_ones_are_nan) {
  const auto file = data("netcdf4.nc");
  const Array x = io::load_netcdf(file, "packed", all_rows());
  EXPECT_EQ(x.dtype(), float64);
  std::vector<double> wanted;
  for (int i = 0; i < 15; ++i)
    wanted.push_back(made(i) == -50 ? NAN : std::round((made(i) - 10) / 0.5) * 0.5 + 10);
  EXPECT_THAT(numbers(x), Pointwise(NanSensitiveDoubleEq(), wanted));
  const Array stored = io::load_netcdf(file, "packed", all_rows(), {.unpack = false});
  EXPECT_EQ(stored.dtype(), int16);
  EXPECT_EQ(numbers(stored)[0], -99);
  EXPECT_TRUE(std::isnan(numbers(io::load_netcdf(file, "small"))[1]));
  EXPECT_EQ(numbers(io::load_netcdf(file, "inner/field", all_rows()))[19], made(19));
  EXPECT_EQ(numbers(io::load_netcdf(file, "number"))[0], 2.5);
}

TEST_F(NetcdfFile, files_of_xarray_are_read) {
  const auto file = data("xarray.nc");
  EXPECT_THAT(io::netcdf_variables(file).at("t2m").dims, ElementsAre("time", "lat", "lon"));
  EXPECT_EQ(std::get<std::string>(io::netcdf_attributes(file, "t2m").at("long_name")),
            "Temperatur in 2 m Höhe");
  const Array x = io::load_netcdf(file, "t2m", all_rows());
  EXPECT_EQ(x.dtype(), float32);
  EXPECT_EQ(numbers(x)[59], made(59));
  const auto packed = numbers(io::load_netcdf(file, "packed", all_rows()));
  EXPECT_TRUE(std::isnan(packed[0]));
  EXPECT_NEAR(packed[1], made(1) / 10, 1e-12);
}

TEST_F(NetcdfFile, what_is_written_comes_back_with_dims_and_packing) {
  const auto file = path("x.nc");
  const auto slab = [](int first, int n) {
    return device_put(reshape(arange(n * 6) + first * 6, {n, 2, 3}), all_rows());
  };
  io::Netcdf out(file);
  out.write("lat", astype(arange(2), float64), {"lat"});
  for (const int first : {0, 3}) out.append("t", astype(slab(first, 3), float32), {"time", "lat", "lon"});
  const Array quarters = astype(arange(6), float64) * 0.25;
  const Array odd = where(arange(6) % 2 == 0, full_like(quarters, NAN), quarters);
  out.write("p", device_put(odd, all_rows()), {"cell"},
            {.packed = int16, .scale_factor = 0.25, .add_offset = 1, .fill = -1000});
  out.write("zipped", device_put(reshape(arange(6), {2, 3}), all_rows()), {"lat", "lon"}, {.compression = 4});
  out.attribute("t", "units", std::string("K"));
  out.attribute("", "title", std::string("run"));
  out.close();
  comm::barrier(comm::world());
  EXPECT_THAT(io::netcdf_variables(file).at("t").dims, ElementsAre("time", "lat", "lon"));
  EXPECT_TRUE(io::netcdf_dims(file).at("time").is_unlimited);
  EXPECT_EQ(io::netcdf_variables(file).size(), 4U);
  EXPECT_EQ(numbers(io::load_netcdf(file, "t", all_rows()))[35], 35);
  const auto p = numbers(io::load_netcdf(file, "p", all_rows()));
  EXPECT_TRUE(std::isnan(p[0]));
  EXPECT_EQ(p[3], 0.75);
  EXPECT_EQ(numbers(io::load_netcdf(file, "p", {.unpack = false}))[0], -1000);
  EXPECT_EQ(std::get<std::string>(io::netcdf_attributes(file).at("title")), "run");
}

// Another variable may have made the shared dim longer: netCDF gives the fill value there.
TEST_F(NetcdfFile, a_variable_is_as_long_as_its_unlimited_dim) {
  const auto file = path("short.nc");
  io::Netcdf out(file);
  for (int time = 0; time < 3; ++time) out.append("long", full({1, 2}, float(time)), {"time", "x"});
  out.append("short", full({1, 2}, 7.f), {"time", "x"});
  out.append("packed", full({1, 2}, 7.), {"time", "x"}, {.packed = int16, .fill = -1});
  out.close();
  comm::barrier(comm::world());
  EXPECT_EQ(io::netcdf_variables(file).at("short").info.shape, (Shape{3, 2}));
  constexpr double unwritten = 9.969209968386869e36;
  for (const auto& read : {io::load_netcdf(file, "short"), io::load_netcdf(file, "short", all_rows())})
    EXPECT_THAT(numbers(read), ElementsAre(7, 7, unwritten, unwritten, unwritten, unwritten));
  EXPECT_EQ(io::load_netcdf(file, "short", all_rows()).sharding(), all_rows());
  EXPECT_THAT(numbers(io::load_netcdf(file, "packed", {.slices = {slice(0, 2), slice(1, 2)}})),
              Pointwise(NanSensitiveDoubleEq(), std::vector<double>{7, NAN}));
  EXPECT_THAT(numbers(io::load_netcdf(file, "long", all_rows())), ElementsAre(0, 0, 1, 1, 2, 2));
  const auto opened = io::open(file, {.name = "short"});
  EXPECT_EQ(opened.shape(), (Shape{3, 2}));
  EXPECT_THAT(numbers(opened.load(all_rows())),
              ElementsAre(7, 7, unwritten, unwritten, unwritten, unwritten));
  EXPECT_THAT(numbers(opened.part({slice(0, 2), slice(1, 2)}).load()), ElementsAre(7, unwritten));
  EXPECT_THAT(numbers(io::compute(sum(where(opened > 8.f, 0.f, opened)), {.slab = 1})), ElementsAre(14));
  const Array packed = io::compute(max(io::open(file, {.name = "packed"}), 1), {.slab = 2});
  EXPECT_THAT(numbers(packed), Pointwise(NanSensitiveDoubleEq(), std::vector<double>{7, NAN, NAN}));
}

// netCDF-3 had no unsigned integers: the attribute says that the bits are such, packed or not.
TEST_F(NetcdfFile, signed_integers_may_be_declared_unsigned) {
  const auto file = path("unsigned.nc");
  io::Netcdf out(file);
  const Array bytes = astype(arange(5) * 60 - 120, int8);  // -120, -60, 0, 60, 120
  for (const char* name : {"plain", "packed", "missing"}) {
    out.write(name, device_put(bytes, all_rows()), {"x"});
    out.attribute(name, "_Unsigned", std::string("true"));
  }
  out.attribute("packed", "scale_factor", 0.5);
  out.attribute("missing", "missing_value", std::int64_t{-60});
  out.close();
  comm::barrier(comm::world());
  const Array plain = io::load_netcdf(file, "plain", all_rows());
  EXPECT_EQ(plain.dtype(), uint8);
  EXPECT_THAT(numbers(plain), ElementsAre(136, 196, 0, 60, 120));
  EXPECT_THAT(numbers(io::open(file, {.name = "plain"}).load()), ElementsAre(136, 196, 0, 60, 120));
  EXPECT_THAT(numbers(io::load_netcdf(file, "packed", all_rows())), ElementsAre(68, 98, 0, 30, 60));
  EXPECT_THAT(numbers(io::load_netcdf(file, "missing", all_rows())),
              Pointwise(NanSensitiveDoubleEq(), std::vector<double>{136, NAN, 0, 60, 120}));
  EXPECT_EQ(io::load_netcdf(file, "plain", {.unpack = false}).dtype(), int8);
}

// valid_range stands before valid_min and valid_max; all count stored numbers, as netCDF4-python has it.
TEST_F(NetcdfFile, numbers_outside_the_valid_range_are_missing) {
  const auto file = path("valid.nc");
  io::Netcdf out(file);
  const Array stored = astype(arange(5) * 10 - 20, int16);  // -20, -10, 0, 10, 20
  for (const char* name : {"range", "least", "most", "packed", "real"}) {
    const Array x = name == std::string("real") ? astype(stored, float32) : stored;
    out.write(name, device_put(x, all_rows()), {"x"});
  }
  out.attribute("range", "valid_range", std::vector<std::int64_t>{-10, 10});
  out.attribute("range", "valid_min", std::int64_t{5});
  out.attribute("least", "valid_min", std::int64_t{-10});
  out.attribute("most", "valid_max", std::int64_t{0});
  out.attribute("packed", "valid_max", std::int64_t{10});
  out.attribute("packed", "scale_factor", 0.5);
  out.attribute("packed", "missing_value", std::int64_t{0});
  out.attribute("real", "valid_range", std::vector<double>{-15, 15});
  out.close();
  comm::barrier(comm::world());
  const std::map<std::string, std::vector<double>> wanted = {{"range", {NAN, -10, 0, 10, NAN}},
                                                             {"least", {NAN, -10, 0, 10, 20}},
                                                             {"most", {-20, -10, 0, NAN, NAN}},
                                                             {"packed", {-10, -5, NAN, 5, NAN}},
                                                             {"real", {NAN, -10, 0, 10, NAN}}};
  for (const auto& [name, values] : wanted) {
    EXPECT_THAT(numbers(io::load_netcdf(file, name, all_rows())), Pointwise(NanSensitiveDoubleEq(), values))
        << name;
    EXPECT_THAT(numbers(io::compute(io::open(file, {.name = name}) + 0, {.slab = 2})),
                Pointwise(NanSensitiveDoubleEq(), values))
        << name;
    EXPECT_THAT(numbers(io::load_netcdf(file, name, {.unpack = false})), ElementsAre(-20, -10, 0, 10, 20));
  }
  EXPECT_EQ(io::load_netcdf(file, "real").dtype(), float32);
}

TEST_F(NetcdfFile, mistakes_are_told) {
  io::Netcdf out(path("x.nc"));
  out.write("a", arange(6), {"x"});
  EXPECT_THAT(text_of_error<ShapeError>([&] { out.write("b", arange(5), {"x"}); }),
              AllOf(HasSubstr("'x'"), HasSubstr("has 6 elements already")));
  EXPECT_THAT(text_of_error<DtypeError>([&] { out.write("b", astype(arange(6), complex64), {"x"}); }),
              HasSubstr("which netCDF does not have"));
  EXPECT_THAT(text_of_error<ShapeError>([&] {
                out.write("b", arange(6), {"x", "y"});
              }),
              HasSubstr("2 dimensions"));
  out.close();
  put("old.nc", std::string("CDF\1\0\0\0\0", 8));
  const auto is_told = AllOf(HasSubstr("netCDF-3"), HasSubstr("nccopy -k nc4"));
  EXPECT_THAT(text_of_error<IoError>([&] { io::netcdf_variables(path("old.nc")); }), is_told);
  EXPECT_THAT(text_of_error<IoError>([&] { io::load_netcdf(path("old.nc"), "x"); }), is_told);
  EXPECT_THAT(text_of_error<IoError>([&] { io::open(path("old.nc"), {.name = "x"}); }), is_told);
}

}  // namespace
}  // namespace tessera::test
