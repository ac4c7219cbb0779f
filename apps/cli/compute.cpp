// matmul, fft, solve, reshard on files; explain and advise: the predicted costs.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <nlohmann/json.hpp>

#include <tessera/jit/advise.hpp>

#include "base/settings.hpp"
#include "base/text.hpp"
#include "commands.hpp"

namespace cli {

using namespace tessera;
using json = nlohmann::ordered_json;

namespace {

// A transform through the given layouts, one after the other: each transforms the dims that it leaves whole.
Array transformed_through(const Order& order, Array x, const Mesh& mesh) {
  if (order.inverse && order.real)
    throw UsageError("fft: --inverse --real takes one --spec; the halved dimension is transformed last");
  std::vector<int> left;
  for (int d = 0; order.axes.empty() && d < x.ndim(); ++d) left.push_back(d);
  for (const int d : order.axes) left.push_back(d < 0 ? d + x.ndim() : d);
  bool is_real = order.real;
  for (const auto& text : order.specs) {
    const PartitionSpec spec = parse_spec(text);
    const Sharding layout = of_words([&] { return NamedSharding(mesh, spec); });
    layout.check_fits(x.shape(), "fft");
    x = device_put(x, layout);
    fft::FftOptions options;
    for (const int d : left)
      if (const auto at = static_cast<std::size_t>(d);
          at >= spec.dims().size() || spec.dims()[at].names().empty())
        options.axes.push_back(d);
    if (is_real && !options.axes.empty() && options.axes.back() != left.back())
      throw UsageError("fft: --real halves dimension " + std::to_string(left.back()) +
                       ", which the first --spec splits; leave it whole there");
    std::erase_if(left, [&](int d) { return std::count(options.axes.begin(), options.axes.end(), d) > 0; });
    if (options.axes.empty()) continue;
    x = is_real ? fft::rfftn(x, options) : order.inverse ? fft::ifftn(x, options) : fft::fftn(x, options);
    is_real = false;
  }
  if (!left.empty())
    throw UsageError("fft: dimension " + std::to_string(left[0]) +
                     " is split in every --spec; give a layout that leaves it whole");
  return x;
}

}  // namespace

Array apply(const std::string& command, const Order& order, const std::vector<Array>& x, const Mesh& mesh) {
  if (command == "matmul") return matmul(x[0], x[1]);
  if (command == "reshard")
    return device_put(x[0], of_words([&] {
                        const Sharding target = NamedSharding(
                            mesh, order.specs.size() > 1 ? parse_spec(order.specs[1]) : PartitionSpec());
                        target.check_fits(x[0].shape(), "reshard");
                        return target;
                      }));
  if (command == "fft") {
    fft::FftOptions options;
    options.axes = order.axes;
    if (order.transposed) options.out_sharding = fft::transposed;
    if (order.specs.size() > 1) return transformed_through(order, x[0], mesh);
    if (order.real) return order.inverse ? fft::irfftn(x[0], options) : fft::rfftn(x[0], options);
    return order.inverse ? fft::ifftn(x[0], options) : fft::fftn(x[0], options);
  }
  if (command == "solve") return linalg::solve(x[0], x[1]);
  if (command == "lu") return linalg::lu_factor(x[0]).lu;
  throw UsageError("explain: " + tessera::in_quotes(command) +
                   " is unknown; there are matmul, fft, solve, lu and reshard");
}

namespace {

std::size_t operands_of(const std::string& command) {
  return command == "matmul" || command == "solve" ? 2 : 1;
}

}  // namespace

void check_operands(const std::string& command, const Order& order) {
  const auto expected = operands_of(command);
  if (order.operands.size() != expected)
    throw UsageError(command + ": takes " + format_count(static_cast<std::int64_t>(expected), "operand") +
                     ", got " + std::to_string(order.operands.size()));
  constexpr std::size_t most_stages = 8;
  const auto most = command == "reshard" ? 2 : command == "fft" ? most_stages : expected;
  if (order.specs.size() > most)
    throw UsageError(command + ": takes " + format_count(static_cast<std::int64_t>(most), "--spec") +
                     " at most, got " + std::to_string(order.specs.size()));
}

// The layout of operand n with this shape. Without --spec its first dim is split, if it has one.
Sharding layout_of(const Order& order, std::size_t n, const Shape& shape, const Mesh& mesh) {
  return layout_of(order, n, shape, mesh, tessera::in_quotes(order.operands[n]));
}
Sharding layout_of(const Order& order, std::size_t n, const Shape& shape, const Mesh& mesh,
                   const std::string& name) {
  return of_words([&] {
    const auto spec = spec_of(order, n);
    const bool by_default =
        order.specs.empty() && static_cast<std::size_t>(shape.ndim()) < spec.dims().size();
    const Sharding sharding = NamedSharding(mesh, by_default ? PartitionSpec() : spec);
    sharding.check_fits(shape, name.c_str());
    return sharding;
  });
}

namespace {

// HPL's residual, in the infinity norm; for several right-hand sides the worst.
double hpl_residual(const Array& a, const Array& x, const Array& b) {
  const auto largest = [](const Array& columns) { return max(abs(columns), 0); };
  const Array norm_a = max(sum(abs(a), -1)), residual = largest(matmul(a, x) - b);
  const double eps = real_dtype(x.dtype()) == float32 ? std::numeric_limits<float>::epsilon()
                                                      : std::numeric_limits<double>::epsilon();
  const Array scale = astype(norm_a * largest(x) + largest(b), float64) *
                      (eps * static_cast<double>(std::max<std::int64_t>(a.shape()[0], 1)));
  // 0 / 0 for an empty or a zero right-hand side counts as 0.
  const Array worst = max(where(residual == 0, zeros_like(scale), astype(residual, float64) / scale));
  return item<double>(worst);
}
constexpr double largest_residual = 16;

}  // namespace

Array load_operand(const Order& order, std::size_t n, const Mesh& mesh) {
  const auto info = file_info(order.operands[n]);
  const Sharding layout = layout_of(order, n, info.shape, mesh);
  announce(order, "reading " + order.operands[n] + ": " + name(info.dtype) + to_string(info.shape) + " (" +
                      info.detail + "), " + text_of(layout.spec()) + " over " + text_of(mesh));
  return load(order.operands[n], layout);
}

// Collective: called inside tessera::run.
int compute(const std::string& command, const Order& order) {
  check_operands(command, order);
  const Mesh mesh = job_mesh(order);
  std::vector<Array> x;
  for (std::size_t n = 0; n < order.operands.size(); ++n) x.push_back(load_operand(order, n, mesh));
  announce(order, command);
  debug::CommStats stats;
  const auto start = std::chrono::steady_clock::now();
  const Array result = apply(command, order, x, mesh);
  eval(result);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  announce(order, "writing " + order.output);
  save(order, result);
  const auto moved = stats.calls();
  const auto received = stats.bytes();
  const double residual = order.verify ? hpl_residual(x[0], result, x[1]) : 0;
  const int status = residual < largest_residual ? 0 : 1;
  if (!is_main_process()) return status;
  if (order.json) {
    json answer = {{"command", command},
                   {"output", order.output},
                   {"shape", result.shape().vector()},
                   {"dtype", name(result.dtype())},
                   {"spec", text_of(result.sharding().spec())},
                   {"mesh", mesh_json(mesh)},
                   {"seconds", seconds},
                   {"collectives", moved},
                   {"bytes_received_by_rank_0", received}};
    if (order.verify) answer["hpl_residual"] = residual, answer["verified"] = status == 0;
    std::printf("%s\n", answer.dump(2).c_str());
    return status;
  }
  std::printf("%s: %s%s, %s over %s, %.3g s, %s, %s received by rank 0\n", order.output.c_str(),
              name(result.dtype()).c_str(), to_string(result.shape()).c_str(),
              text_of(result.sharding().spec()).c_str(), text_of(mesh).c_str(), seconds,
              format_count(moved, "collective").c_str(), format_bytes(received).c_str());
  if (order.verify)
    std::printf("HPL's residual %.3g, %s (16 is the limit)\n", residual, status == 0 ? "PASSED" : "FAILED");
  return status;
}

int explain(const Order& given) {
  if (given.ranks > 0 && !given.mesh.empty()) throw UsageError("explain: give -n or --mesh, one of them");
  const Order order = given.ranks > 0 ? on_square_mesh(given) : given;
  const auto [function, x] = planned_program(order, planning_mesh(order));
  const auto compiled = jit(function).lower(x).compile();
  const auto plan = compiled.explanation();
  if (!order.json) {
    std::printf("%s%s\n", without_places(to_string(plan)).c_str(),
                order.as_text ? ("\n" + without_places(compiled.as_text())).c_str() : "");
    return 0;
  }
  json rows = json::array();
  for (const auto& c : plan.collectives)
    rows.push_back({{"kind", c.kind},
                    {"axes", c.axes},
                    {"bytes_per_rank", c.bytes},
                    {"predicted_s", c.seconds},
                    {"for", without_places(c.what)}});
  std::printf("%s\n", json{{"collectives", rows},
                           {"bytes_per_rank", plan.bytes()},
                           {"flops_per_rank", plan.cost.flops},
                           {"peak_bytes_per_rank", plan.memory.peak_bytes},
                           {"predicted_s", plan.predicted_seconds},
                           {"outputs", plan.outputs}}
                          .dump(2)
                          .c_str());
  return 0;
}

int advise(const Order& order) {
  check_operands(order.what, order);
  AdviseOptions options;
  options.memory_limit_bytes =
      order.memory.empty() ? 0 : of_words([&] { return parse_bytes("--memory", order.memory); });
  if (order.mesh.empty())
    options.meshes = of_words([&] { return meshes_of(order.ranks > 0 ? order.ranks : 8); });
  else
    options.meshes = {planning_mesh(order)};
  std::vector<Array> x;
  for (const auto& word : order.operands) {
    const auto info = operand_info(word, order.dtype);
    x.push_back(zeros(info.shape, info.dtype));
  }
  const Mesh& mesh = options.meshes.front();
  const Advice advice = tessera::advise(
      [&](const std::vector<Array>& args) { return apply(order.what, order, args, mesh); }, options, x);
  if (!order.json) {
    std::printf("%s", without_places(to_string(advice)).c_str());
    return 0;
  }
  json rows = json::array();
  for (const auto& layout : advice.best) {
    json specs = json::array();
    for (const auto& sharding : layout.shardings) specs.push_back(text_of(sharding.spec()));
    rows.push_back({{"mesh", mesh_json(layout.shardings.front().mesh())},
                    {"specs", specs},
                    {"predicted_s", layout.predicted_seconds},
                    {"bytes_per_rank", layout.bytes},
                    {"peak_bytes_per_rank", layout.peak_bytes},
                    {"within_memory", layout.is_within_memory_limit},
                    {"reason", without_places(layout.reason)}});
  }
  std::printf(
      "%s\n",
      json{{"best", rows}, {"plans", advice.plans}, {"exhaustive", advice.is_exhaustive}}.dump(2).c_str());
  return 0;
}

}  // namespace cli
