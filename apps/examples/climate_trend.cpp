// Mean and trend at each cell of a netCDF data set that is four times as large as what a rank may use.
//
//   tessera run -n 2 example_climate_trend
//
// The data set is made here, a year at a time: 40 years of months on a grid, warming by up to 0.3 K in ten years
// towards the north. Both maps come from one pass over the file.
#include <tessera/io/netcdf.hpp>
#include <tessera/io/stream.hpp>

#include <filesystem>

#include "example.hpp"

using namespace tessera;

namespace {

constexpr int years = 40, latitudes = 90, longitudes = 180;

Array latitude() { return linspace(-88.0, 88.0, latitudes); }
// Kelvin a month, at each latitude.
Array warming() { return 0.3 / 120 * (latitude() + 90) / 180; }

void write_data_set(const std::string& path) {
  io::Netcdf out(path, {.mode = io::Hdf5Open::replace});
  out.write("lat", latitude(), {"lat"});
  for (int year = 0; year < years; ++year) {
    const Array month = astype(arange(12), float64) + 12 * year;
    const Array t = 288 - 0.004 * square(latitude()) + expand_dims(month, 1) * warming();  // (month, lat)
    const Array grid = broadcast_to(expand_dims(t, 2), {12, latitudes, longitudes});
    out.append("t2m", astype(grid, float32), {"time", "lat", "lon"});
  }
  out.attribute("t2m", "units", std::string("K"));
  out.close();
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [] {
    const std::string path = (std::filesystem::temp_directory_path() / "tessera_climate_trend.nc").string();
    write_data_set(path);
    const auto t2m = io::open(path, {.name = "t2m"});
    const std::int64_t limit = t2m.nbytes() / 4;

    const Array month = astype(arange(t2m.shape()[0]), float64), from_middle = month - mean(month);
    const Array weight = reshape(from_middle / sum(square(from_middle)), {-1, 1, 1});
    const std::vector<Array> maps = {mean(astype(t2m, float64), 0), sum(t2m * weight, 0)};
    debug::print("{}\n{}", to_string(t2m), to_string(io::explain_compute(maps, {.memory_limit = limit})));

    const auto found = io::compute(maps, {.memory_limit = limit});
    example::picture("mean temperature by latitude", mean(found[0], 1));
    example::picture("trend, K in ten years, by latitude", mean(found[1], 1) * 120);
    const Array middle = 288 - 0.004 * square(latitude()) + (12 * years - 1) / 2.0 * warming();
    example::expect_close("mean", mean(found[0], 1), middle, 1e-4);
    example::expect_close("trend", mean(found[1], 1), warming(), 1e-7);
    if (is_main_process()) std::filesystem::remove(path);
  });
}
