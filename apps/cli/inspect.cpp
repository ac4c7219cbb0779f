// info FILE, stats, plot, svd, eigh: the contents of a file, and properties of its numbers.
#include <cstdio>
#include <filesystem>

#include "base/text.hpp"
#include "commands.hpp"
#include "io/file.hpp"
#include "io/manifest.hpp"
#include "picture.hpp"

namespace cli {

using namespace tessera;
using json = nlohmann::ordered_json;

std::vector<NamedInfo> checkpoint_leaves(const std::string& folder, int step) {
  char name_of_step[32];
  std::snprintf(name_of_step, sizeof name_of_step, "/step_%08d", step);
  const std::string place = folder + name_of_step, path = place + "/manifest.json";
  const auto manifest = io::checkpoint::parse_manifest(io::read_text("info", path));
  std::vector<NamedInfo> leaves;
  for (std::size_t i = 0; i < manifest.leaves.size(); ++i) {
    const auto& leaf = manifest.leaves[i];
    leaves.emplace_back(
        "leaf " + std::to_string(i),
        io::FileInfo{leaf.shape, leaf.dtype,
                     format_count(static_cast<std::int64_t>(leaf.blocks.size()), "block") + " of " +
                         format_count(static_cast<std::int64_t>(manifest.files.size()), "rank")});
  }
  return leaves;
}

namespace {

std::int64_t bytes_of(const io::FileInfo& info) {
  return info.shape.elements() * static_cast<std::int64_t>(itemsize(info.dtype));
}

json contents_json(const std::string& path, const FileContents& contents) {
  json arrays = json::array(), facts = json::object();
  for (const auto& [name_of_array, info] : contents.arrays)
    arrays.push_back({{"name", name_of_array},
                      {"shape", info.shape.vector()},
                      {"dtype", name(info.dtype)},
                      {"bytes", bytes_of(info)},
                      {"detail", info.detail}});
  for (const auto& [key, value] : contents.facts) facts[key] = value;
  return {{"path", path},
          {"kind", contents.kind},
          {"arrays", arrays},
          {"others", contents.others},
          {"facts", facts}};
}

}  // namespace

int show_file(const Order& order) {
  const std::string& path = order.operands[0];
  const FileContents contents = contents_of(path);
  if (order.json) {
    std::printf("%s\n", contents_json(path, contents).dump(2).c_str());
    return 0;
  }
  std::printf("%s: %s, %s\n", path.c_str(), contents.kind.c_str(),
              format_count(static_cast<std::int64_t>(contents.arrays.size()), "array").c_str());
  for (const auto& [key, value] : contents.facts) std::printf("  %s: %s\n", key.c_str(), value.c_str());
  for (const auto& [name_of_array, info] : contents.arrays)
    std::printf("  %s%s%s%s  %s  %s\n", name_of_array.c_str(), name_of_array.empty() ? "" : "  ",
                name(info.dtype).c_str(), to_string(info.shape).c_str(), format_bytes(bytes_of(info)).c_str(),
                info.detail.c_str());
  for (const auto& other : contents.others)
    std::printf("  %s  (no numbers that tessera reads)\n", other.c_str());
  return 0;
}

// ---- collective, inside tessera::run ----

int show_stats(const Order& order) {
  const Mesh mesh = job_mesh(order);
  const Array loaded = load_operand(order, 0, mesh);
  if (is_complex(loaded.dtype()))
    throw UsageError("stats: " + tessera::in_quotes(order.operands[0]) +
                     " is complex, and complex numbers have no order");
  const Array x = astype(loaded, float64);
  const Array is_number = isfinite(x), numbers = where(is_number, x, zeros_like(x));
  const Array count = sum(astype(is_number, int64)), average = sum(numbers) / astype(count, float64);
  const Array spread = where(is_number, square(x - average), zeros_like(x));
  const auto finite = item<std::int64_t>(count);
  // Integers keep all digits, of which a double has 53 bits.
  const auto extreme = [&](const auto& of, double otherwise) -> json {
    if (finite == 0) return std::numeric_limits<double>::quiet_NaN();
    if (loaded.dtype() == uint64) return item<std::uint64_t>(of(loaded));
    if (is_integer(loaded.dtype())) return item<std::int64_t>(of(loaded));
    return item<double>(of(where(is_number, x, full_like(x, otherwise))));
  };
  constexpr double inf = std::numeric_limits<double>::infinity();
  json facts = {{"path", order.operands[0]}, {"shape", x.shape().vector()}, {"dtype", name(loaded.dtype())}};
  facts["min"] = extreme([](const Array& of) { return min(of); }, inf);
  facts["max"] = extreme([](const Array& of) { return max(of); }, -inf);
  facts["mean"] = finite == 0 ? std::numeric_limits<double>::quiet_NaN() : item<double>(average);
  facts["std"] = finite == 0 ? std::numeric_limits<double>::quiet_NaN()
                             : std::sqrt(item<double>(sum(spread)) / static_cast<double>(finite));
  facts["zeros"] = item<std::int64_t>(sum(astype(x == 0, int64)));
  facts["nan"] = item<std::int64_t>(sum(astype(isnan(x), int64)));
  facts["infinite"] = x.size() - finite - facts["nan"].get<std::int64_t>();
  if (!is_main_process()) return 0;
  if (order.json) {
    std::printf("%s\n", facts.dump(2).c_str());
    return 0;
  }
  std::printf("%s: %s%s\n", order.operands[0].c_str(), name(loaded.dtype()).c_str(),
              to_string(x.shape()).c_str());
  for (const auto& [label, value] : facts.items())
    if (value.is_number_float())
      std::printf("  %-9s %.17g\n", label.c_str(), value.get<double>());
    else if (value.is_number())
      std::printf("  %-9s %s\n", label.c_str(), value.dump().c_str());
  return 0;
}

int show_plot(const Order& order) {
  const Array x = load_operand(order, 0, job_mesh(order));
  if (x.ndim() < 1 || x.ndim() > 2 || x.size() == 0)
    throw UsageError("plot: " + tessera::in_quotes(order.operands[0]) + " has the shape " +
                     to_string(x.shape()) +
                     "; a curve has one dimension, an image two, and neither is empty");
  const Array shown = is_complex(x.dtype()) ? abs(x) : x;
  const std::string title = order.operands[0] + ": " + name(x.dtype()) + to_string(x.shape());
  if (order.output.empty())
    apps::picture(title, shown);
  else
    of_words([&] {
      if (x.ndim() == 1)
        viz::plot(order.output, shown, {.title = title});
      else
        viz::image(order.output, shown, {.title = title});
    });
  return 0;
}

namespace {
// Eigenvalues of the symmetric part of a matrix say nothing about the matrix itself. Refuses more than rounding.
void check_symmetric(const Array& a, const std::string& file) {
  if (a.ndim() != 2 || a.shape()[0] != a.shape()[1] || a.size() == 0) return;  // eigh's own error
  const double apart = item<double>(max(abs(a - conj(a.T())))), largest = item<double>(max(abs(a)));
  if (!(apart > 1e-4 * largest)) return;
  throw ArgumentError("eigh: " + tessera::in_quotes(file) +
                      " is not symmetric (Hermitian): elements differ by up to " + text_of(apart) +
                      " from those of the transpose, where the largest is " + text_of(largest) +
                      "; svd takes any matrix");
}
}  // namespace

int decompose(const std::string& command, const Order& order) {
  const Mesh mesh = job_mesh(order);
  const Array a = load_operand(order, 0, mesh);
  if (command == "eigh") check_symmetric(a, order.operands[0]);
  announce(order, command);
  const bool all = order.output.ends_with(".npz");
  std::map<std::string, Array> parts;
  if (command == "svd" && all) {
    const auto [u, s, vh] = linalg::svd(a, {.full_matrices = false});
    parts = {{"u", u}, {"s", s}, {"vh", vh}};
  } else if (command == "svd") {
    parts = {{"s", linalg::svdvals(a)}};
  } else if (all) {
    const auto [w, v] = linalg::eigh(a);
    parts = {{"w", w}, {"v", v}};
  } else {
    parts = {{"w", linalg::eigvalsh(a)}};
  }
  const Array& values = parts.at(command == "svd" ? "s" : "w");
  const auto numbers = to_vector<double>(values);
  announce(order, order.output.empty() ? "done" : "writing " + order.output);
  if (all)
    io::save_npz(order.output, parts, {});
  else if (!order.output.empty())
    save(order, values);
  if (!is_main_process()) return 0;
  if (order.json) {
    std::printf(
        "%s\n",
        json{{"command", command}, {"output", order.output}, {"mesh", mesh_json(mesh)}, {"values", numbers}}
            .dump(2)
            .c_str());
    return 0;
  }
  constexpr std::size_t most = 10;
  std::printf("%s of %s: %s\n", command == "svd" ? "singular values" : "eigenvalues",
              order.operands[0].c_str(),
              format_count(static_cast<std::int64_t>(numbers.size()), "value").c_str());
  for (std::size_t i = 0; i < std::min(most, numbers.size()); ++i) std::printf("  %.15g\n", numbers[i]);
  if (numbers.size() > most) std::printf("  ... %zu more\n", numbers.size() - most);
  return 0;
}

}  // namespace cli
