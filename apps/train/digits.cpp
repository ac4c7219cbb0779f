// The UCI digits: 8 x 8 pixels each, 1,437 to learn from and 360 to be tried on.
#include "programs.hpp"

#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/tessera.hpp>

#include <cstdio>

#include "report.hpp"

namespace train {
namespace {

using namespace tessera;

constexpr std::int64_t test_count = 360;

struct Split {
  Array train_x, train_y, test_x, test_y;
};

// Rows spread over all ranks; who is in the test set is drawn once, the same for every mesh.
Split load(const std::string& folder, const Mesh& mesh) {
  const Sharding rows = NamedSharding(mesh, P(axes("data", "model")));
  const Array images = astype(io::load_npy(folder + "/digits/images.npy", rows), float32) / 16,
              labels = io::load_npy(folder + "/digits/labels.npy", rows);
  const Array order = random::permutation(random::key(2024), images.shape()[0]);
  const Array test = order(slice(0, test_count)), rest = order(slice(test_count));
  return {take(images, rest, 0), take(labels, rest, 0), take(images, test, 0), take(labels, test, 0)};
}

Array cross_entropy(const nn::Mlp& network, const Array& x, const Array& labels) {
  return mean(nn::softmax_cross_entropy_with_integer_labels(nn::apply(network, x), labels));
}
Array accuracy(const nn::Mlp& network, const Array& x, const Array& labels) {
  return nn::accuracy(nn::apply(network, x), labels);
}

template <class Optimizer>
double train_with(const Optimizer& optimizer, const DigitsOptions& options, const Mesh& mesh) {
  const Split data = load(options.data, mesh);
  std::vector<std::int64_t> sizes{64};
  sizes.insert(sizes.end(), options.hidden.begin(), options.hidden.end());
  sizes.push_back(10);
  nn::Mlp network = nn::split_in_pairs(nn::mlp(random::key(options.seed), sizes), mesh, "model");
  auto state = optimizer.start(network);
  const auto step = jit(optim::train_step(optimizer, cross_entropy), {.donate_argnums = {0, 1}});
  const auto score = jit(accuracy);

  Progress progress("train", options.epochs);
  Curve losses{"training loss", "#1f77b4", {}}, on_train{"accuracy on training digits", "#2ca02c", {}},
      on_test{"on test digits", "#d62728", {}};
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const auto batches =
        nn::shuffled_batches(random::fold_in(random::key(options.seed + 1), epoch),
                             std::pair{data.train_x, data.train_y}, options.batch, mesh, P("data"));
    Array total = 0.f, loss;
    for (const auto& [x, y] : batches) {
      std::tie(network, state, loss) = step(network, state, x, y);
      total = total + loss;
    }
    losses.values.push_back(item<double>(total / static_cast<float>(batches.size())));
    on_train.values.push_back(item<double>(score(network, data.train_x, data.train_y)));
    on_test.values.push_back(item<double>(score(network, data.test_x, data.test_y)));
    char text[96];
    std::snprintf(text, sizeof text, "loss %.4f   accuracy %.1f %% (training), %.1f %% (test)",
                  losses.values.back(), 100 * on_train.values.back(), 100 * on_test.values.back());
    progress.advance(1, text);
  }
  if (!options.plot.empty()) {
    write_file(options.plot,
               training_plot("Handwritten digits on " + std::to_string(device_count()) + " ranks", losses,
                             {on_train, on_test}));
    if (is_main_process()) std::printf("wrote %s\n", options.plot.c_str());
  }
  return on_test.values.back();
}

}  // namespace

int train_digits(const DigitsOptions& options) {
  const Mesh mesh = training_mesh(options.mesh);
  if (options.batch < 1 || options.batch > 1797 - test_count)
    throw ArgumentError("train digits: --batch " + std::to_string(options.batch) + " must lie in 1.." +
                        std::to_string(1797 - test_count));
  const double reached =
      options.optimizer == "adam"
          ? train_with(optim::Adam{.rate = options.rate > 0 ? options.rate : 3e-3}, options, mesh)
      : options.optimizer == "momentum"
          ? train_with(optim::Sgd{.rate = options.rate > 0 ? options.rate : 0.05, .momentum = 0.9}, options,
                       mesh)
          : train_with(optim::Sgd{.rate = options.rate > 0 ? options.rate : 0.2}, options, mesh);
  if (is_main_process())
    std::printf("accuracy on %lld digits never seen: %.2f %%\n", static_cast<long long>(test_count),
                100 * reached);
  return reached >= options.demand ? 0 : 1;
}

}  // namespace train
