// load, parse, and the call of a program.
#include <tessera/error.hpp>
#include <tessera/jit.hpp>
#include <tessera/jit/stablehlo.hpp>

#include <utility>

#include "base/call.hpp"
#include "base/text.hpp"
#include "io/file.hpp"
#include "io/team.hpp"
#include "kernels/move/content_hash.hpp"
#include "stablehlo/evaluate.hpp"
#include "stablehlo/layouts.hpp"

namespace tessera::stablehlo {
namespace {

struct Loaded {
  Module module;
  Evaluator::Makers makers;
  Layouts layouts;
  const Function* main = nullptr;
  std::vector<LoadedValue> arguments, results;
};

void note_makers(const RegionText& region, std::vector<const Operation*>& makers) {
  for (const auto& op : region.operations) {
    for (const int result : op.results) makers[static_cast<std::size_t>(result)] = &op;
    for (const auto& inner : op.regions) note_makers(inner, makers);
  }
}

const Function& main_of(const Module& module) {
  const auto found = module.functions.find("main");
  if (found != module.functions.end()) return found->second;
  if (module.functions.size() == 1) return module.functions.begin()->second;
  refuse_text(module.file, {},
              "the module has no function @main, and " +
                  format_count(static_cast<std::int64_t>(module.functions.size()), "other one"));
}

LoadedValue value_of(const Loaded& loaded, const TensorType& type, const Attribute& attributes,
                     TextPlace place) {
  if (type.is_token) refuse_text(loaded.module.file, place, "a main function with tokens has no counterpart");
  LoadedValue value{"", type.shape, type.dtype,
                    sharding_among(loaded.module, loaded.layouts, attributes, type.shape.ndim())};
  if (const Attribute* name = attributes.find("jax.result_info")) value.name = name->text;
  return value;
}

std::shared_ptr<const Loaded> loaded_from(const std::string& file, const std::string& text,
                                          const LoadOptions& options) {
  const auto loaded = std::make_shared<Loaded>();
  loaded->module = parse_module(file, text);
  loaded->layouts = layouts_of(loaded->module, options.ignore_shardings);
  for (const auto& [name, function] : loaded->module.functions) {
    auto& makers = loaded->makers[&function];
    makers.resize(function.values.size());
    note_makers(function.body, makers);
  }
  const Function& main = main_of(loaded->module);
  loaded->main = &main;
  for (std::size_t i = 0; i < main.body.arguments.size(); ++i)
    loaded->arguments.push_back(value_of(*loaded,
                                         main.values[static_cast<std::size_t>(main.body.arguments[i])],
                                         main.argument_attributes[i], main.place));
  for (std::size_t i = 0; i < main.results.size(); ++i)
    loaded->results.push_back(value_of(*loaded, main.results[i], main.result_attributes[i], main.place));
  return loaded;
}

// The program as a plain function, which jit traces.
struct Body {
  std::shared_ptr<const Loaded> loaded;

  std::vector<Array> operator()(const std::vector<Array>& given) const {
    const auto& [module, makers, layouts, main, arguments, results] = *loaded;
    Evaluator evaluator(module, makers, layouts);
    // A program without arguments is traced with one that it does not read.
    Arrays made = evaluator.call(
        *main, Arrays(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(arguments.size())),
        main->place);
    if (made.size() != results.size())
      evaluator.refuse(main->place, "the main function returns " +
                                        format_count(static_cast<std::int64_t>(made.size()), "result") +
                                        " and promises " + std::to_string(results.size()));
    for (std::size_t i = 0; i < made.size(); ++i) {
      if (made[i].shape() != results[i].shape || made[i].dtype() != results[i].dtype)
        evaluator.refuse(main->place, "result " + std::to_string(i) +
                                          " of the main function is another type than it promises");
      if (results[i].sharding) made[i] = with_sharding_constraint(made[i], *results[i].sharding);
    }
    return made;
  }
};

}  // namespace

struct LoadedProgram::Impl {
  std::shared_ptr<const Loaded> loaded;
  Jitted<Body> jitted;
};

const std::vector<LoadedValue>& LoadedProgram::arguments() const { return impl_->loaded->arguments; }
const std::vector<LoadedValue>& LoadedProgram::results() const { return impl_->loaded->results; }

std::vector<Array> LoadedProgram::operator()(const std::vector<Array>& given) const {
  const auto& file = impl_->loaded->module.file;
  const auto& wanted = arguments();
  if (given.size() != wanted.size())
    throw ArgumentError(file + ": the program takes " +
                        format_count(static_cast<std::int64_t>(wanted.size()), "argument") +
                        ", and is given " + std::to_string(given.size()));
  std::vector<Array> placed = given;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string which = file + ": argument " + std::to_string(i) + " is ";
    if (given[i].shape() != wanted[i].shape)
      throw ShapeError(which + tessera::to_string(given[i].shape()) + ", and the program wants " +
                       tessera::to_string(wanted[i].shape));
    if (given[i].dtype() != wanted[i].dtype)
      throw DtypeError(which + name(given[i].dtype()) + ", and the program wants " + name(wanted[i].dtype) +
                       "; convert it with astype");
    const auto& sharding = wanted[i].sharding;
    if (sharding && !(given[i].is_committed() && given[i].sharding() == *sharding))
      placed[i] = device_put(given[i], *sharding);
  }
  if (placed.empty()) placed.push_back(zeros({}, int32));
  return impl_->jitted(placed);
}

LoadedProgram parse(const std::string& text, const std::string& name, LoadOptions options,
                    std::source_location where) {
  const Call call("stablehlo::parse", where);
  const auto loaded = loaded_from(name, text, options);
  return LoadedProgram(
      std::make_shared<const LoadedProgram::Impl>(LoadedProgram::Impl{loaded, jit(Body{loaded}, {}, where)}));
}

LoadedProgram load(const std::string& path, LoadOptions options, std::source_location where) {
  const Call call("stablehlo::load", where);
  const io::Team team(call_text() + " " + path + (options.ignore_shardings ? " without layouts" : ""));
  std::string text;
  team.together([&] { text = io::read_text("stablehlo::load", path); });
  team.same("stablehlo::load", path,
            std::to_string(text.size()) + " bytes, " +
                std::to_string(kernels::content_hash(text.data(), text.size())));
  const auto cut = path.rfind('/');
  return parse(text, cut == std::string::npos ? path : path.substr(cut + 1), options, where);
}

}  // namespace tessera::stablehlo
