// train digits, train mlp: training of networks over a mesh.
//
//   tessera run -n 8 train digits --mesh 4x2 --plot loss.svg
//   tessera run -n 2 train mlp --sizes 784,2048,2048,2048,10 --batch 2048
#include <tessera/tessera.hpp>

#include <sstream>

#include "programs.hpp"
#include "usage.hpp"

namespace train {

tessera::Mesh training_mesh(const std::string& sizes) {
  std::vector<int> extents{tessera::device_count(), 1};
  char times = 'x';
  std::istringstream text(sizes);
  if (!sizes.empty() &&
      (!(text >> extents[0] >> times >> extents[1]) || times != 'x' || !(text >> std::ws).eof() ||
       extents[0] < 1 || extents[0] * extents[1] != tessera::device_count()))
    throw tessera::ArgumentError("train: --mesh " + sizes + " must be DATAxMODEL with a product of " +
                                 std::to_string(tessera::device_count()) + ", the number of ranks");
  return tessera::make_mesh(extents, {"data", "model"});
}

}  // namespace train

int main(int argc, char** argv) {
  train::DigitsOptions digits;
  train::MlpOptions mlp;
  CLI::App app("Networks that train over a mesh", "train");
  app.require_subcommand(1);
  auto* digits_command =
      app.add_subcommand("digits", "Classify handwritten digits; exit status 1 below the demanded accuracy");
  digits_command->add_option("--data", digits.data, "folder that holds digits/images.npy")
      ->capture_default_str();
  digits_command->add_option("--mesh", digits.mesh, "DATAxMODEL, e.g. 4x2; all ranks along data by default");
  digits_command->add_option("--optimizer", digits.optimizer)
      ->check(CLI::IsMember({"adam", "momentum", "sgd"}))
      ->capture_default_str();
  digits_command->add_option("--rate", digits.rate, "learning rate; one that suits the optimizer by default")
      ->check(CLI::PositiveNumber);
  digits_command->add_option("--hidden", digits.hidden, "widths of the hidden layers")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  digits_command->add_option("--epochs", digits.epochs)->check(CLI::PositiveNumber)->capture_default_str();
  digits_command->add_option("--batch", digits.batch)->capture_default_str();
  digits_command->add_option("--seed", digits.seed)->capture_default_str();
  digits_command->add_option("--demand", digits.demand, "share of the test digits that must be right")
      ->capture_default_str();
  digits_command->add_option("--plot", digits.plot, "write loss and accuracy there, as SVG");
  digits_command->add_option(
      "--checkpoint", digits.checkpoint,
      "save there after each epoch, and when the job is asked to stop (exit status 85)");
  digits_command->add_flag("--resume", digits.resume,
                           "go on where the run before was saved, if there was one");
  auto* mlp_command =
      app.add_subcommand("mlp", "A network of any size on random data: loss curve and time per step");
  mlp_command->add_option("--mesh", mlp.mesh, "DATAxMODEL");
  mlp_command->add_option("--sizes", mlp.sizes, "of all layers, input first")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  mlp_command->add_option("--batch", mlp.batch)->check(CLI::PositiveNumber)->capture_default_str();
  mlp_command->add_option("--steps", mlp.steps)->capture_default_str();
  mlp_command->add_flag("--json", mlp.json, "one line for machines");
  if (const auto status = apps::status_of_words(app, argc, argv)) return *status;
  int status = 0;
  const int ended = tessera::run(argc, argv, [&] {
    status = digits_command->parsed() ? train::train_digits(digits) : train::train_mlp(mlp);
  });
  return ended != 0 ? ended : status;
}
