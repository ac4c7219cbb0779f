// The UCI digits: 8 x 8 pixels each, 1,437 for training and 360 for testing.
#include "programs.hpp"

#include <tessera/nn.hpp>
#include <tessera/optim.hpp>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <optional>

#include "report.hpp"

namespace train {
namespace {

using namespace tessera;

constexpr std::int64_t test_count = 360;

struct Split {
  Array train_x, train_y, test_x, test_y;
};

// Rows split over all ranks; the test set is drawn once, the same for every mesh.
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

// The state from which a later run continues: assigned as one value, so that a save never mixes two steps.
template <class OptimizerState> struct Training {
  nn::Mlp network;
  OptimizerState optimizer;
  Array total;   // the loss of this epoch's batches so far
  int done = 0;  // batches so far, over all epochs
};

void check_resume(const DigitsOptions& options) {
  if (options.resume && options.checkpoint.empty())
    throw ArgumentError(
        "train digits: --resume goes on from a checkpoint; name its folder with --checkpoint");
  if (!options.resume && !options.checkpoint.empty() && io::checkpoint::latest_step(options.checkpoint))
    throw ArgumentError("train digits: '" + options.checkpoint +
                        "' holds the steps of an earlier run; add --resume to go on, or name another folder");
}

template <class Optimizer>
double train_with(const Optimizer& optimizer, const DigitsOptions& options, const Mesh& mesh) {
  const Split data = load(options.data, mesh);
  std::vector<std::int64_t> sizes{64};
  sizes.insert(sizes.end(), options.hidden.begin(), options.hidden.end());
  sizes.push_back(10);
  const nn::Mlp start = nn::split_in_pairs(nn::mlp(random::key(options.seed), sizes), mesh, "model");
  Training<decltype(optimizer.start(start))> now{start, optimizer.start(start), Array(0.f)};
  const auto step = jit(optim::train_step(optimizer, cross_entropy), {.donate_argnums = {0, 1}});
  const auto score = jit(accuracy);

  std::optional<io::checkpoint::Manager> saves;
  std::optional<OnPreemption> when_asked_to_stop;
  if (!options.checkpoint.empty()) {
    saves.emplace(options.checkpoint, io::checkpoint::ManagerOptions{.keep = 3});
    if (options.resume) now.done = saves->restore(now).value_or(0);
    if (now.done > 0 && is_main_process()) std::printf("goes on after %d batches\n", now.done);
    when_asked_to_stop.emplace(on_preemption([&] { saves->save_now(now.done, now); }));
  }

  Progress progress("train", options.epochs);
  LossCurve losses{"training loss", "#1f77b4", {}}, on_train{"accuracy on training digits", "#2ca02c", {}},
      on_test{"on test digits", "#d62728", {}};
  const int in_epoch = static_cast<int>(data.train_x.shape()[0]) / options.batch;
  const auto report = [&] {
    losses.values.push_back(item<double>(now.total / static_cast<float>(in_epoch)));
    on_train.values.push_back(item<double>(score(now.network, data.train_x, data.train_y)));
    on_test.values.push_back(item<double>(score(now.network, data.test_x, data.test_y)));
    char text[96];
    std::snprintf(text, sizeof text, "loss %.4f   accuracy %.1f %% (training), %.1f %% (test)",
                  losses.values.back(), 100 * on_train.values.back(), 100 * on_test.values.back());
    progress.advance(now.done / in_epoch - progress.done(), text);
  };
  if (now.done > 0 && now.done % in_epoch == 0) report();  // the previous run may have ended in between
  while (now.done < options.epochs * in_epoch) {
    const auto batches =
        nn::shuffled_batches(random::fold_in(random::key(options.seed + 1), now.done / in_epoch),
                             std::pair{data.train_x, data.train_y}, options.batch, mesh, P("data"));
    if (now.done % in_epoch == 0) now.total = Array(0.f);
    for (int b = now.done % in_epoch; b < in_epoch; ++b) {
      const auto [x, y] = batches[b];
      auto [network, state, loss] = step(now.network, now.optimizer, x, y);
      now = {std::move(network), std::move(state), now.total + loss, now.done + 1};
    }
    report();
    if (saves) saves->save(now.done, now);
  }
  if (saves) saves->save_now(now.done, now);
  if (is_main_process() && !losses.values.empty())
    std::printf("training loss %.6f after %d epochs\n", losses.values.back(), options.epochs);
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
  check_resume(options);
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
