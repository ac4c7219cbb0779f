// A tour on real data: 1,797 handwritten digits, split over the ranks of the job.
//
//   tessera run -n 8 tessera_demo [folder of the data]
#include <cmath>
#include <cstdio>

#include "report.hpp"

using namespace tessera;
using namespace demo;

namespace {

void the_devices(const Mesh& mesh) {
  heading(1, "The devices");
  say("Every MPI rank is one device. " + std::to_string(device_count()) +
      " ranks run this program; make_mesh({4, 2}, {\"x\", \"y\"}) arranges them as a grid with named axes:");
  show(debug::mesh_picture(mesh));
}

Array the_data(const std::string& folder, const Mesh& mesh) {
  heading(2, "The data: handwritten digits, 8 x 8 pixels each, one per row");
  const auto path = folder + "/digits/images.npy";
  const auto rows = NamedSharding(mesh, P(axes("x", "y"), None));
  const Array images = io::load_npy(path, rows);
  say("io::load_npy(\"digits/images.npy\", NamedSharding(mesh, P(axes(\"x\", \"y\"), None)))  ->  " +
      name(images.dtype()) + text(images.shape()) +
      ". Every rank opened the file and read its part alone; 1797 rows do not divide by 8, and need not:");
  std::vector<std::vector<std::string>> lines;
  for (const auto& [device, index] : rows.devices_indices_map(images.shape()))
    lines.push_back({std::to_string(device.id), to_string(index),
                     bytes_text(rows.memory_bytes(images.shape(), images.dtype(), device))});
  table({"rank", "block", "bytes read"}, lines);
  return images;
}

void the_layouts(const Mesh& mesh) {
  heading(3, "How an 8 x 8 array lies over the mesh under five specs");
  debug::VisualizeOptions options;
  options.use_color = false;
  options.scale = 0.8;
  options.max_width = 34;
  const std::vector<std::pair<std::string, P>> specs = {
      {"P(\"x\", \"y\")", P("x", "y")},
      {"P(\"y\", \"x\")", P("y", "x")},
      {"P(\"x\", None)", P("x", None)},
      {"P(None, \"y\")", P(None, "y")},
      {"P(axes(\"x\", \"y\"), None)", P(axes("x", "y"), None)}};
  std::vector<std::string> pictures;
  for (const auto& [title, spec] : specs)
    pictures.push_back(under(title, debug::visualize_sharding({8, 8}, NamedSharding(mesh, spec), options)));
  show(beside({pictures[0], pictures[2], pictures[3]}));
  show(beside({pictures[1], pictures[4]}));
}

void the_means(const Array& images, const Array& labels) {
  heading(4, "Means: of every pixel, and of each of the ten digits");
  const Array pixels = astype(images, float64);
  debug::CommStats stats;
  const Array mean_digit = mean(pixels, 0);
  eval(mean_digit);
  const auto of_mean = traffic_text(stats);
  stats.restart();
  const Array is_digit = astype(expand_dims(labels, 1) == astype(arange(10), uint8), float64);
  const Array class_means = matmul(is_digit.T(), pixels) / expand_dims(sum(is_digit, 0), 1);
  eval(class_means);
  const auto of_classes = traffic_text(stats);
  stats.restart();
  const Array distance = sum(square(class_means), 1) - 2 * matmul(pixels, class_means.T());
  const Array is_nearest = astype(distance == min(distance, 1, true), float64);
  const double right = item<double>(mean(sum(is_nearest * is_digit, 1)));
  const auto of_guess = traffic_text(stats);
  const viz::TerminalOptions small{.columns = 16, .rows = 8, .vmin = 0, .vmax = 16, .colour = false};
  for (int row = 0; row < 2; ++row) {
    std::vector<std::string> pictures;
    for (int d = 5 * row; d < 5 * row + 5; ++d)
      pictures.push_back(viz::terminal(class_means[d].reshape(8, 8), small));
    show(beside(pictures));
  }
  char percent[16];
  std::snprintf(percent, sizeof percent, "%.1f %%", 100 * right);
  table({"step", "collectives on rank 0"}, {{"mean(pixels, 0)", of_mean},
                                            {"matmul(is_digit.T(), pixels) / counts", of_classes},
                                            {"nearest mean: matmul, min, compare, mean", of_guess}});
  say("Guessing each image's digit by the nearest of the ten means is right for " + std::string(percent) +
      " of them.");
}

Array covariance(const Array& pixels) {
  const Array centred = pixels - mean(pixels, 0);
  return matmul(centred.T(), centred) / static_cast<double>(pixels.shape()[0] - 1);
}

double largest_difference(const Array& a, const Array& b) {
  const auto x = to_vector<double>(a), y = to_vector<double>(b);
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::fabs(x[i] - y[i]));
  return most;
}

void the_covariance(const Array& images, const Mesh& mesh) {
  heading(5, "The covariance of the 64 pixels under three layouts, against one rank");
  say("centred = pixels - mean(pixels, 0);  matmul(centred.T(), centred) / (n - 1).  The program is the same "
      "each time; only the sharding "
      "of its input differs.");
  const Array alone = device_put(astype(images, float64), devices()[0]);
  const Array reference = covariance(alone);
  eval(reference);
  const double alone_s = time_of([&] { eval(covariance(alone)); });
  std::vector<std::vector<std::string>> rows = {
      {"one rank", "", text(reference.shape()) + " on rank 0", "nothing", seconds_text(alone_s), ""}};
  const std::vector<std::pair<std::string, P>> layouts = {{"P(('x', 'y'), None)", P(axes("x", "y"), None)},
                                                          {"P('x', 'y')", P("x", "y")},
                                                          {"P(None, ('x', 'y'))", P(None, axes("x", "y"))}};
  for (const auto& [title, spec] : layouts) {
    const Array pixels = device_put(astype(images, float64), mesh, spec);
    eval(pixels);
    debug::CommStats stats;
    const Array result = covariance(pixels);
    eval(result);
    const auto traffic = traffic_text(stats);
    char difference[24];
    std::snprintf(difference, sizeof difference, "%.0e", largest_difference(result, reference));
    rows.push_back({title, text(pixels.sharding().shard_shape(pixels.shape())),
                    text(result.sharding().spec()), traffic,
                    seconds_text(time_of([&] { eval(covariance(pixels)); })), difference});
  }
  table({"pixels", "block", "result", "collectives on rank 0", "time", "differs by"}, rows);
}

void the_products(const Mesh& mesh) {
  heading(6, "Matrix products follow the shardings of their operands");
  constexpr std::int64_t n = 768;
  const Array i = expand_dims(arange(n), 1), j = expand_dims(arange(n), 0);
  const Array a = sin(astype(i * 3 + j, float32)), b = cos(astype(i + j * 7, float32));
  const Array alone_a = device_put(a, devices()[0]), alone_b = device_put(b, devices()[0]);
  eval(alone_a, alone_b);
  const double alone_s = time_of([&] { eval(matmul(alone_a, alone_b)); });
  std::vector<std::vector<std::string>> rows = {{"one rank", "", "", "nothing", seconds_text(alone_s)}};
  const std::vector<std::pair<P, P>> pairs = {{P("x", None), P(None, "y")},
                                              {P("x", "y"), P("x", "y")},
                                              {P(None, "x"), P("x", None)},
                                              {P(axes("x", "y"), None), P()}};
  for (const auto& [spec_a, spec_b] : pairs) {
    const Array x = device_put(a, mesh, spec_a), y = device_put(b, mesh, spec_b);
    eval(x, y);
    debug::CommStats stats;
    const Array c = matmul(x, y);
    eval(c);
    const auto traffic = traffic_text(stats);
    rows.push_back({text(spec_a), text(spec_b), text(c.sharding().spec()), traffic,
                    seconds_text(time_of([&] { eval(matmul(x, y)); }))});
  }
  table({"A  " + std::to_string(n) + "²", "B", "A B", "collectives on rank 0", "time"}, rows);
}

void the_plan(const Mesh& mesh) {
  heading(7, "What would run is known before it runs");
  const Array a = device_put(zeros({4096, 4096}), mesh, P("x", "y")),
              b = device_put(zeros({4096, 1024}), mesh, P("x", "y"));
  say("explain([](Array a, Array b) { return softmax(matmul(a, b)); }, a, b) — nothing is computed, not even "
      "a and b:");
  show(to_string(explain([](const Array& a, const Array& b) { return softmax(matmul(a, b)); }, a, b)));
}

}  // namespace

int main(int argc, char** argv) {
  return tessera::run(argc, argv, [&] {
    if (device_count() != 8)
      throw ArgumentError("tessera_demo: runs on 8 ranks, this job has " + std::to_string(device_count()) +
                          "; start it with scripts/demo, or tessera run -n 8");
    const std::string folder = argc > 1 ? argv[1] : DEMO_DATA;
    const Mesh mesh = make_mesh({4, 2}, {"x", "y"});
    the_devices(mesh);
    const Array images = the_data(folder, mesh);
    const Array labels = io::load_npy(folder + "/digits/labels.npy", NamedSharding(mesh, P(axes("x", "y"))));
    the_layouts(mesh);
    the_means(images, labels);
    the_covariance(images, mesh);
    the_products(mesh);
    the_plan(mesh);
    heading(8, "Where to go on");
    say("README.md has the twenty lines that begin a program of your own. (Eight ranks on a small machine "
        "share its cores: the times above "
        "show what runs, not how fast it can.)");
  });
}
