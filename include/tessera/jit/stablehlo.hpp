/// @file
/// Programs in StableHLO text, as JAX exports them: run by tessera alone, without Python.
///
///     with open("step.stablehlo", "w") as file:              # Python, anywhere
///         file.write(jax.jit(step).lower(*arguments).as_text())
///
///     const auto step = stablehlo::load("step.stablehlo");   // C++, on every rank
///     const std::vector<Array> results = step(arguments);
///
/// Ops become tessera's own: products, transforms, factorizations, sorts and loops of split arrays stay what
/// they are. Layouts in the text (sdy.sharding, mhlo.sharding) are honoured: its device k is rank k.
#pragma once
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include <tessera/array.hpp>

namespace tessera::stablehlo {

/// An argument or a result of a program.
struct LoadedValue {
  std::string name;                       ///< as the text calls it: "result[0]"; empty: it does not
  Shape shape;                            ///< extents
  Dtype dtype;                            ///< element type
  std::optional<Sharding> sharding = {};  ///< the layout that the text demands
};

/// Options of load and parse.
struct LoadOptions {
  /// Layouts in the text are left out: arguments stay where they are, the planner chooses for the rest. So a
  /// program that was written for other devices runs on any number of ranks. Functions of one device
  /// (shard_map) need theirs.
  bool ignore_shardings = false;
};

/// A program: a function of arrays that is jitted. Works in jit, grad, vmap and explain as any function of a
/// vector of arrays. A value, cheap to copy.
class LoadedProgram {
 public:
  /// The results for these arguments. Collective over the ranks of the arguments. Arguments that have a
  /// layout in the text are moved there. ArgumentError for another number of arguments, ShapeError and
  /// DtypeError for arguments of other types, and ArgumentError with line and column of the file for an op
  /// without a counterpart.
  std::vector<Array> operator()(const std::vector<Array>& arguments) const;
  const std::vector<LoadedValue>& arguments() const;  ///< of the main function
  const std::vector<LoadedValue>& results() const;    ///< of the main function

  struct Impl;
  /// For the library.
  explicit LoadedProgram(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<const Impl> impl_;
};

/// The program in a file. Collective over all ranks: each reads the file. IoError for a file that cannot be
/// read or that differs between ranks, ArgumentError with line and column for a text that is broken or has
/// types without a counterpart, ShardingError for layouts that need more devices than the job has.
LoadedProgram load(const std::string& path, LoadOptions options = {},
                   std::source_location where = std::source_location::current());
/// The program in a text, which must be the same on every rank; `name` stands for its file in errors. Not
/// collective. Errors as load.
LoadedProgram parse(const std::string& text, const std::string& name = "text", LoadOptions options = {},
                    std::source_location where = std::source_location::current());

}  // namespace tessera::stablehlo
