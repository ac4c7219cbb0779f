// tessera stablehlo: a program that JAX exported, on files or random arguments.
#include <tessera/jit/stablehlo.hpp>

#include <cstdio>

#include "base/text.hpp"
#include "commands.hpp"

namespace cli {

using namespace tessera;
using json = nlohmann::ordered_json;

namespace {

std::string type_text(const stablehlo::LoadedValue& value) {
  return name(value.dtype) + to_string(value.shape);
}

std::string listed(const std::vector<stablehlo::LoadedValue>& values) {
  std::vector<std::string> types;
  for (const auto& value : values) types.push_back(type_text(value));
  return values.empty() ? "none" : join(types);
}

// The layout of argument n: the text's, else that of --mesh and --spec; none beside arguments with layouts of
// the text.
std::optional<Sharding> layout_of_argument(const Order& order, const stablehlo::LoadedProgram& program,
                                           std::size_t n) {
  const auto& value = program.arguments()[n];
  if (value.sharding) return value.sharding;
  for (const auto& other : program.arguments())
    if (other.sharding && order.mesh.empty() && order.specs.empty()) return std::nullopt;
  return layout_of(order, n, value.shape, job_mesh(order), "argument " + std::to_string(n));
}

// Normal numbers, integers that are 0 or 1.
Array drawn(const stablehlo::LoadedValue& value, std::size_t n) {
  const auto key = random::key(static_cast<std::int64_t>(n));
  if (is_bool(value.dtype) || is_integer(value.dtype))
    return astype(random::bernoulli(key, 0.5, value.shape), value.dtype);
  const Array real = random::normal(key, value.shape, real_dtype(value.dtype) == float64 ? float64 : float32);
  if (!is_complex(value.dtype)) return astype(real, value.dtype);
  return make_complex(real, random::normal(random::fold_in(key, 1), value.shape, real.dtype()));
}

Array argument(const Order& order, const stablehlo::LoadedProgram& program, std::size_t n) {
  const auto& value = program.arguments()[n];
  const auto layout = layout_of_argument(order, program, n);
  if (!order.operands.empty()) {
    const Array x = load(order.operands[n], layout ? *layout : Sharding::replicated(job_mesh(order)));
    return astype(x, is_inexact(x.dtype()) == is_inexact(value.dtype) ? value.dtype : x.dtype());
  }
  const Array x = order.is_explained ? zeros(value.shape, value.dtype) : drawn(value, n);
  return layout ? device_put(x, *layout) : x;
}

std::vector<Array> arguments_of(const Order& order, const stablehlo::LoadedProgram& program) {
  const auto wanted = program.arguments().size();
  const bool needs_files = !order.is_random && !order.is_explained && wanted > 0;
  if (order.operands.size() != wanted && (needs_files || !order.operands.empty()))
    throw UsageError("stablehlo: " + shown(order.what) + " takes " +
                     format_count(static_cast<std::int64_t>(wanted), "argument") + " (" +
                     listed(program.arguments()) + "), got " +
                     format_count(static_cast<std::int64_t>(order.operands.size()), "file") +
                     "; --random draws them");
  std::vector<Array> arguments;
  for (std::size_t n = 0; n < wanted; ++n) arguments.push_back(argument(order, program, n));
  return arguments;
}

void write(const Order& order, const std::vector<Array>& results) {
  if (!order.output.ends_with(".npz")) return save(order, results.at(0));
  std::map<std::string, Array> named;  // as numpy.savez calls them
  for (std::size_t n = 0; n < results.size(); ++n) named["arr_" + std::to_string(n)] = results[n];
  io::save_npz(order.output, named, {});
}

json result_json(const Array& x) {
  return {{"shape", x.shape().vector()},
          {"dtype", name(x.dtype())},
          {"spec", text_of(x.sharding().spec())},
          {"mesh", mesh_json(x.sharding().mesh())}};
}

void report(const Order& order, const std::vector<Array>& results, double seconds) {
  std::vector<std::string> values;
  if (order.output.empty())
    for (const auto& x : results) values.push_back(to_string(x));
  if (!is_main_process()) return;
  json rows = json::array();
  for (std::size_t n = 0; n < results.size(); ++n) {
    const Array& x = results[n];
    rows.push_back(result_json(x));
    if (order.json) continue;
    std::printf("result %zu: %s%s, %s over %s\n", n, name(x.dtype()).c_str(), to_string(x.shape()).c_str(),
                text_of(x.sharding().spec()).c_str(), text_of(x.sharding().mesh()).c_str());
    if (!values.empty()) std::printf("%s\n", values[n].c_str());
  }
  if (order.json)
    std::printf("%s\n",
                json{{"program", order.what}, {"seconds", seconds}, {"results", rows}}.dump(2).c_str());
  else if (!order.output.empty())
    std::printf("%s: written, %.3g s\n", order.output.c_str(), seconds);
}

}  // namespace

// Collective: called inside tessera::run.
int run_stablehlo(const Order& order) {
  const auto program = stablehlo::load(order.what, {.ignore_shardings = order.ignore_shardings}, {});
  if (!order.output.empty() && !order.output.ends_with(".npz") && program.results().size() != 1)
    throw UsageError("stablehlo: " + shown(order.what) + " has " +
                     format_count(static_cast<std::int64_t>(program.results().size()), "result") + " (" +
                     listed(program.results()) + "); write them with -o x.npz");
  const auto arguments = arguments_of(order, program);
  if (order.is_explained) {
    const auto plan = to_string(explain(program, arguments));
    if (is_main_process()) std::printf("%s", plan.c_str());
    return 0;
  }
  announce(order, "running " + order.what);
  const auto start = std::chrono::steady_clock::now();
  const auto results = program(arguments);
  eval(results);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (!order.output.empty()) {
    announce(order, "writing " + order.output);
    write(order, results);
  }
  report(order, results, seconds);
  return 0;
}

}  // namespace cli
