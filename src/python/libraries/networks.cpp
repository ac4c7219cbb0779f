// nn's layers and optim's rules: the counterparts of the headers' templates, on the leaves of Python trees.
#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/viz.hpp>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"

namespace tessera::python {
namespace {

using Leaves = std::vector<Array>;
using LayerValues = std::pair<Value, Value>;

// The initializer with a name of nn's, or a function of key, shape and dtype.
nn::Initializer initializer_of(const std::optional<py::function>& given, const nn::Initializer& usual) {
  if (!given) return usual;
  return [draw = *given](const random::Key& key, const Shape& shape, Dtype dtype) {
    return draw(key, tuple_of(shape), dtype).cast<Array>();
  };
}
nn::Mlp network_of(const std::vector<LayerValues>& layers) {
  nn::Mlp network;
  for (const auto& [weight, bias] : layers) network.push_back({weight.array, bias.array});
  return network;
}
py::list layers_of(const nn::Mlp& network) {
  py::list layers;
  for (const auto& layer : network) layers.append(py::make_tuple(layer.weight, layer.bias));
  return layers;
}

void bind_layers(py::module_ m) {
  m.def("dense",
        [](KeyValue key, std::int64_t inputs, std::int64_t outputs, std::optional<py::function> initializer,
           DtypeValue dtype) -> py::tuple {
          const auto layer = nn::dense(key.value, inputs, outputs,
                                       initializer_of(initializer, nn::lecun_normal), dtype.value, here());
          return py::make_tuple(layer.weight, layer.bias);
        });
  m.def("mlp", [](KeyValue key, const std::vector<std::int64_t>& sizes,
                  std::optional<py::function> initializer, DtypeValue dtype) {
    return layers_of(
        nn::mlp(key.value, sizes, initializer_of(initializer, nn::he_normal), dtype.value, here()));
  });
  m.def("split_in_pairs",
        [](const std::vector<LayerValues>& layers, const Mesh& mesh, const std::string& axis) {
          return layers_of(nn::split_in_pairs(network_of(layers), mesh, axis, here()));
        });
  m.def("scattered_batches", [](Value x, Value order, const Mesh& mesh, const PartitionSpec& batch_spec) {
    return nn::detail::scattered_batches(x.array, order.array, mesh, batch_spec);
  });
  m.def("common_examples", [](const std::vector<Value>& leaves) {
    return nn::detail::common_examples(arrays_of(leaves), here());
  });
  m.def("apply_dense", [](Value weight, Value bias, Value x) {
    return nn::Dense{weight.array, bias.array}(x);
  });
  m.def("apply_layer_norm", [](Value scale, Value shift, Value x) {
    return nn::LayerNorm{scale.array, shift.array}(x);
  });
  m.def("apply_embedding", [](Value table, Value numbers) { return nn::Embedding{table.array}(numbers); });
}

// A rate that depends on the step.
struct Schedule {
  optim::Schedule at;
};
optim::Rate rate_of(const py::object& given) {
  if (py::isinstance<Schedule>(given)) return given.cast<Schedule>().at;
  if (!PyCallable_Check(given.ptr())) return given.cast<double>();
  return optim::Schedule([schedule = given](const Array& steps) {
    Value rate;
    const py::object returned = schedule(steps);
    if (!read_value(returned, rate))
      throw py::type_error("a schedule must return a number or a scalar array");
    return rate.array;
  });
}

void bind_schedules(py::module_& m) {
  py::class_<Schedule>(m, "Schedule", "A rate as a function of the number of steps already made.")
      .def("__call__", [](const Schedule& schedule, Value steps) { return schedule.at(steps.array); });
  m.def(
      "constant", [](double value) { return Schedule{optim::constant(value)}; }, py::arg("value"),
      "value, always.");
  m.def(
      "linear",
      [](double init, double end, int steps) { return Schedule{optim::linear(init, end, steps, here())}; },
      py::arg("init"), py::arg("end"), py::arg("steps"),
      "From init to end in equal steps, end from then on.");
  m.def(
      "cosine_decay",
      [](double init, int steps, double alpha) {
        return Schedule{optim::cosine_decay(init, steps, alpha, here())};
      },
      py::arg("init"), py::arg("steps"), py::arg("alpha") = 0.0,
      "From init along half a cosine to alpha init, which is kept.");
  m.def(
      "exponential_decay",
      [](double init, int steps, double decay, bool staircase) {
        return Schedule{optim::exponential_decay(init, steps, decay, staircase, here())};
      },
      py::arg("init"), py::arg("steps"), py::arg("decay"), py::arg("staircase") = false,
      "init decay^(t / steps); in jumps at multiples of `steps` if staircase.");
  m.def(
      "warmup_cosine_decay",
      [](double init, double peak, int warmup_steps, int steps, double end) {
        return Schedule{optim::warmup_cosine_decay(init, peak, warmup_steps, steps, end, here())};
      },
      py::arg("init"), py::arg("peak"), py::arg("warmup_steps"), py::arg("steps"), py::arg("end") = 0.0,
      "From init to peak in equal steps, then along half a cosine to end; `steps` counts both.");
  m.def(
      "join",
      [](const Schedule& first, int boundary, const Schedule& second) {
        return Schedule{optim::join(first.at, boundary, second.at)};
      },
      py::arg("first"), py::arg("boundary"), py::arg("second"),
      "`first` before step `boundary`, then `second`, whose steps count from there.");
}

void bind_rules(py::module_& m) {
  py::class_<optim::Sgd>(m, "Sgd")
      .def(py::init([](const py::object& rate, double momentum, bool nesterov) {
        return optim::Sgd{rate_of(rate), momentum, nesterov};
      }))
      .def("start",
           [](const optim::Sgd& rule, const std::vector<Value>& parameters) {
             const auto state = rule.start(arrays_of(parameters));
             return std::pair{state.velocity, state.steps};
           })
      .def("update", [](const optim::Sgd& rule, const std::vector<Value>& gradients,
                        const std::optional<std::vector<Value>>& velocity, Value steps,
                        const std::vector<Value>& parameters) {
        const optim::Sgd::State<Leaves> state{
            velocity ? std::optional<Leaves>(arrays_of(*velocity)) : std::nullopt, steps.array};
        const auto [next, after] = rule.update(arrays_of(gradients), state, arrays_of(parameters));
        return std::tuple{next, after.velocity, after.steps};
      });
  py::class_<optim::Adam>(m, "Adam")
      .def(py::init([](const py::object& rate, double keep_mean, double keep_square, double epsilon,
                       double weight_decay) {
        return optim::Adam{rate_of(rate), keep_mean, keep_square, epsilon, weight_decay};
      }))
      .def("start",
           [](const optim::Adam& rule, const std::vector<Value>& parameters) {
             const auto state = rule.start(arrays_of(parameters));
             return std::tuple{state.mean, state.square, state.steps};
           })
      .def("update",
           [](const optim::Adam& rule, const std::vector<Value>& gradients, const std::vector<Value>& mean,
              const std::vector<Value>& square, Value steps, const std::vector<Value>& parameters) {
             const optim::Adam::State<Leaves> state{arrays_of(mean), arrays_of(square), steps.array};
             const auto [next, after] = rule.update(arrays_of(gradients), state, arrays_of(parameters));
             return std::tuple{next, after.mean, after.square, after.steps};
           });
  m.def("global_norm",
        [](const std::vector<Value>& leaves) { return optim::global_norm(arrays_of(leaves)); });
  m.def("clip_by_global_norm", [](const std::vector<Value>& gradients, double largest) {
    return optim::clip_by_global_norm(arrays_of(gradients), largest, here());
  });
}

void bind_curves(py::module_ m) {
  m.def("plot_curves", [](const PathValue& path, const std::vector<Value>& ys,
                          const std::vector<std::string>& labels, const std::vector<std::optional<Value>>& xs,
                          const viz::PlotOptions& options) {
    std::vector<viz::Curve> curves;
    for (std::size_t i = 0; i < ys.size(); ++i)
      curves.push_back({ys[i].array, labels[i], xs[i] ? std::optional<Array>(xs[i]->array) : std::nullopt});
    const auto where = here();
    const py::gil_scoped_release unlocked;
    viz::plot(path, curves, options, where);
  });
  py::class_<viz::PlotOptions>(m, "PlotOptions")
      .def(py::init<>())
      .def_readwrite("title", &viz::PlotOptions::title)
      .def_readwrite("x_label", &viz::PlotOptions::x_label)
      .def_readwrite("y_label", &viz::PlotOptions::y_label)
      .def_readwrite("log_x", &viz::PlotOptions::log_x)
      .def_readwrite("log_y", &viz::PlotOptions::log_y)
      .def_readwrite("width", &viz::PlotOptions::width)
      .def_readwrite("height", &viz::PlotOptions::height);
}

}  // namespace

void bind_networks(py::module_& m) {
  bind_layers(m.def_submodule("nn"));
  py::module_ optimizers = m.def_submodule("optim");
  bind_schedules(optimizers);
  bind_rules(optimizers);
  bind_curves(m.def_submodule("viz"));
}

}  // namespace tessera::python
