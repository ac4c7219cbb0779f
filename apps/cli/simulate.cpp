// Programs that are planned and never run, for explain and simulate; tessera simulate itself.
#include <cstdio>
#include <nlohmann/json.hpp>

#include <tessera/jit/advise.hpp>
#include <tessera/jit/simulate.hpp>

#include "base/text.hpp"
#include "commands.hpp"

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

// A mesh of two axes that is as square as can be, for -n without --mesh.
Mesh mesh_of_ranks(int ranks) {
  const auto meshes = meshes_of(ranks);
  return meshes.back();
}

void check_planned(const Order& order) {
  if (order.what != "train") return check_operands(order.what, order);
  if (order.operands.size() < 2)
    throw UsageError("train: takes a batch and the weights of each layer: 65536x784 784x512 512x10");
}

}  // namespace

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

int simulate(const Order& order) {
  if (order.mesh.empty() == (order.ranks == 0)) throw UsageError("simulate: give -n or --mesh, one of them");
  const Mesh mesh = order.mesh.empty() ? mesh_of_ranks(order.ranks) : planning_mesh(order);
  const auto [function, x] = planned_program(order, mesh);
  SimulateOptions options;
  options.trace_path = order.output;
  const Simulation run = tessera::simulate(function, options, x);
  const auto text = order.json ? simulation_json(run).dump(2) + "\n" : without_places(to_string(run));
  std::printf("%s", text.c_str());
  return 0;
}

}  // namespace cli
