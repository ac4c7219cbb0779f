// Programs that are planned and never run, for explain and simulate; tessera simulate itself.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include <tessera/jit/advise.hpp>
#include <tessera/jit/simulate.hpp>

#include "base/text.hpp"
#include "commands.hpp"
#include "simulate/simulation.hpp"

namespace cli {

using namespace tessera;
using json = nlohmann::ordered_json;

namespace {

// One step of stochastic gradient descent of a network: a batch, and the weights of its layers.
std::vector<Array> training_step(const std::vector<Array>& x) {
  const auto loss = [&](const std::vector<Array>& weights) {
    Array y = x[0];
    for (std::size_t n = 0; n < weights.size(); ++n)
      y = n + 1 < weights.size() ? maximum(matmul(y, weights[n]), 0) : matmul(y, weights[n]);
    return mean(square(y));
  };
  std::vector<Array> weights(x.begin() + 1, x.end());
  const auto gradients = grad(loss)(weights);
  constexpr double rate = 1e-3;
  for (std::size_t n = 0; n < weights.size(); ++n) weights[n] = weights[n] - gradients[n] * rate;
  return weights;
}

// Conjugate gradients for the Laplacian of a three-dimensional grid, as many steps as cg_steps.
constexpr int cg_steps = 100;
std::vector<Array> conjugate_gradients(const std::vector<Array>& x) {
  const auto laplacian = [](const Array& v) {
    Array sum_of_neighbours = v * 6;
    for (int dim = 0; dim < v.ndim(); ++dim)
      sum_of_neighbours = sum_of_neighbours - roll(v, 1, dim) - roll(v, -1, dim);
    return sum_of_neighbours;
  };
  const auto dot = [](const Array& a, const Array& b) { return sum(a * b); };
  using State = std::tuple<Array, Array, Array, Array>;  // solution, residual, direction, |residual|^2
  const State start{zeros_like(x[0]), x[0], x[0], dot(x[0], x[0])};
  const auto end = fori_loop(
      0, cg_steps,
      [&](const Array&, const State& state) -> State {
        const auto& [solution, residual, direction, norm] = state;
        const Array image = laplacian(direction), step = norm / dot(direction, image);
        const Array left = residual - step * image, left_norm = dot(left, left);
        return {solution + step * direction, left, left + left_norm / norm * direction, left_norm};
      },
      start);
  return {std::get<0>(end)};
}

json simulation_json(const Simulation& run) {
  json calls = json::array(), links = json::array();
  for (const auto& c : run.calls)
    calls.push_back({{"kind", c.kind},
                     {"for", without_places(c.what)},
                     {"mean_s", c.seconds},
                     {"longest_s", c.most_seconds},
                     {"bytes", c.bytes},
                     {"messages", c.messages}});
  for (const auto& link : run.links)
    links.push_back({{"link", link.name}, {"busy", link.busy}, {"bytes", link.bytes}});
  return {{"seconds", run.seconds},
          {"computing_s", run.computing_s},
          {"waiting_s", run.waiting_s},
          {"ranks", run.ranks},
          {"hosts", run.hosts},
          {"messages", run.messages},
          {"calls", calls},
          {"links", links},
          {"notes", run.notes}};
}

void check_planned(const Order& order) {
  if (order.what != "train") return check_operands(order.what, order);
  if (order.operands.size() < 2)
    throw UsageError("train: takes a batch and the weights of each layer: 65536x784 784x512 512x10");
}

}  // namespace

Order on_square_mesh(const Order& given) {
  Order order = given;
  const Mesh mesh = of_words([&] { return meshes_of(given.ranks).back(); });
  for (const auto& [axis, size] : mesh.shape())
    order.mesh += (order.mesh.empty() ? "" : ",") + axis + "=" + std::to_string(size);
  if (!order.specs.empty() || order.what == "hpl") return order;
  const auto names = mesh.axis_names();
  const auto joined = [&](const char* between) {
    return names.size() == 1 ? names[0] : names[0] + between + names[1];
  };
  for (std::size_t n = 0; n < order.operands.size(); ++n) {
    if (order.what == "train") {
      order.specs = {joined("+")};  // the batch; weights are replicated
      break;
    }
    const auto ndim = operand_info(order.operands[n], order.dtype).shape.ndim();
    order.specs.push_back(ndim == 0 ? "" : joined(ndim == 1 ? "+" : ","));
    if (order.what == "fft" || order.what == "reshard") break;  // further specs are other layouts
  }
  return order;
}

PlannedProgram planned_program(const Order& order, const Mesh& mesh) {
  check_planned(order);
  PlannedProgram program;
  for (std::size_t n = 0; n < order.operands.size(); ++n) {
    const auto info = operand_info(order.operands[n], order.dtype);
    const bool is_weight = order.what == "train" && n > 0 && order.specs.size() <= 1;
    program.arguments.push_back(
        device_put(zeros(info.shape, info.dtype),
                   is_weight ? Sharding::replicated(mesh) : layout_of(order, n, info.shape, mesh)));
  }
  if (order.what == "train")
    program.function = training_step;
  else if (order.what == "cg")
    program.function = conjugate_gradients;
  else
    program.function = [order, mesh](const std::vector<Array>& x) {
      return std::vector<Array>{apply(order.what, order, x, mesh)};
    };
  return program;
}

namespace {

// "float32[64,64] P('x', 'y'), float32[64] P(None,) over Mesh('x': 4, 'y': 2)"
std::string operands_text(const std::vector<Array>& x, const Mesh& mesh) {
  std::ostringstream text;
  constexpr std::size_t most = 4;
  for (std::size_t n = 0; n < std::min(x.size(), most); ++n)
    text << (n > 0 ? ", " : "") << name(x[n].dtype()) << to_string(x[n].shape()) << " "
         << x[n].sharding().spec();
  if (x.size() > most) text << " and " << x.size() - most << " more";
  text << " over " << mesh;
  return text.str();
}

// The operations that HPL counts, in thousands of millions.
double hpl_gflops(const Order& order) {
  const auto n = static_cast<double>(parse_shape(order.operands[0])[0]);
  return (2.0 / 3 * n + 1.5) * n * n / 1e9;
}

Simulation simulated(const Order& order, const Mesh& mesh, const SimulateOptions& options,
                     std::string& operands) {
  if (order.what != "hpl") {
    const auto [function, x] = planned_program(order, mesh);
    operands = operands_text(x, mesh);
    return tessera::simulate(function, options, x);
  }
  const Shape shape = parse_shape(order.operands[0]);
  const bool is_square = shape.ndim() == 1 || (shape.ndim() == 2 && shape[0] == shape[1]);
  if (order.operands.size() != 1 || !is_square || shape[0] < 1)
    throw UsageError("hpl: takes the number of unknowns: tessera simulate hpl 20000 -n 48");
  const auto sizes = mesh.axis_sizes();
  if (sizes.size() > 2)
    throw UsageError("hpl: --mesh " + shown(order.mesh) + " has more than two axes, P and Q");
  int rows = sizes.size() == 1 ? 1 : sizes[0], columns = sizes.back();
  if (order.ranks > 0 && rows > columns) std::swap(rows, columns);  // HPL asks for P <= Q
  operands = std::to_string(shape[0]) + " unknowns, float64, P x Q = " + std::to_string(rows) + " x " +
             std::to_string(columns);
  return simulation_of_hpl(shape[0], rows, columns, options);
}

}  // namespace

int simulate(const Order& given) {
  if (given.mesh.empty() == (given.ranks == 0)) throw UsageError("simulate: give -n or --mesh, one of them");
  const Order order = given.mesh.empty() ? on_square_mesh(given) : given;
  const Mesh mesh = planning_mesh(order);
  SimulateOptions options;
  options.trace_path = order.output;
  std::string operands;
  const Simulation run = simulated(order, mesh, options, operands);
  const double gflops = order.what == "hpl" ? hpl_gflops(order) : 0;
  if (order.json) {
    auto answer = simulation_json(run);
    answer["operands"] = operands;
    if (gflops > 0) answer["gflops_per_s"] = gflops / run.seconds;
    std::printf("%s\n", answer.dump(2).c_str());
  } else {
    std::printf("%s of %s\n", order.what.c_str(), operands.c_str());
    if (gflops > 0) std::printf("%.4g Gflop/s\n", gflops / run.seconds);
    std::printf("%s", without_places(to_string(run)).c_str());
  }
  return 0;
}

}  // namespace cli
