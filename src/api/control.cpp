// while_loop inside a trace: an op that owns two compiled programs, the condition and the body.
#include <tessera/control.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <cstring>

#include "api/pipeline.hpp"
#include "ops/build.hpp"

namespace tessera {
namespace {

// A traced function of the carried values; what else it reads from outside are its captures.
struct LoopPart {
  Program program;
  std::vector<int> source;  // per program input: carried value; count + k: capture k
  std::vector<Array> captures;
  mutable std::unique_ptr<Executable> bound;
  Executable& executable() const {
    if (!bound) bound = std::make_unique<Executable>(program, process_index());
    return *bound;
  }
};

struct WhileParams {
  std::shared_ptr<const LoopPart> condition, body;
  std::vector<Sharding> carried;
  std::vector<Type> types;
  std::vector<Sharding> captured;  // layouts of the captures, the condition's first
  std::string text;
  template <class V> void fields(V&& visit) const { visit("program", text); }
};

std::vector<Buffer> inputs_of(const LoopPart& part, const std::vector<Buffer>& carried, std::span<const Buffer> captures) {
  std::vector<Buffer> inputs;
  for (const int s : part.source)
    inputs.push_back(s < static_cast<int>(carried.size()) ? carried[static_cast<std::size_t>(s)]
                                                          : captures[static_cast<std::size_t>(s) - carried.size()]);
  return inputs;
}

void run_while(const KernelArgs& args) {
  const auto& p = args.params.as<WhileParams>();
  std::vector<Buffer> carried, captures;
  for (std::size_t i = 0; i < args.in.size(); ++i) {
    auto view = Buffer::wrap(args.in[i].data, static_cast<std::size_t>(args.in[i].bytes()), nullptr);
    (i < p.types.size() ? carried : captures).push_back(std::move(view));
  }
  const auto split = p.condition->captures.size();
  const std::span<const Buffer> all(captures);
  while (true) {
    const auto verdict = p.condition->executable().run(inputs_of(*p.condition, carried, all.first(split)));
    if (verdict[0].data() == nullptr || *verdict[0].data() == std::byte{0}) break;
    carried = p.body->executable().run(inputs_of(*p.body, carried, all.subspan(split)));
  }
  for (std::size_t i = 0; i < args.out.size(); ++i)
    std::memcpy(args.out[i].data, carried[i].data(), static_cast<std::size_t>(args.out[i].bytes()));
}

const OpDef while_op{
    .name = "while",
    .infer = [](std::span<const Type>, const Params& p) { return p.as<WhileParams>().types; },
    .kernel = run_while,
    .no_vjp = "its number of iterations is known only when it runs; use fori_loop or scan",
    .no_batch = "its elements would stop at different iterations; use fori_loop with where",
    .place = [](const PlaceArgs& args) -> Placement {
      const auto& p = args.params.as<WhileParams>();
      Placement placement;
      placement.inputs = p.carried;
      placement.inputs.insert(placement.inputs.end(), p.captured.begin(), p.captured.end());
      placement.outputs = p.carried;
      return placement;
    },
    .commit = [](const Params& p) -> std::optional<Mesh> { return p.as<WhileParams>().carried[0].mesh(); },
    .is_value_dependent = true,
};
const Registered registered_while(while_op);

std::shared_ptr<LoopPart> trace_part(const detail::LeafFunction& f, const std::vector<Array>& placeholders,
                                     const std::vector<std::optional<Sharding>>& root_layouts, std::uint64_t before,
                                     std::vector<Array>& results) {
  results = f(placeholders);
  auto part = std::make_shared<LoopPart>();
  const Graph graph = collect(results, false, before);
  part->program = compile(graph, {}, root_layouts);
  for (const auto& leaf : graph.leaves) {
    int source = -1;
    for (std::size_t i = 0; i < placeholders.size(); ++i)
      if (placeholders[i].node() == leaf.node()) source = static_cast<int>(i);
    if (source < 0) {
      source = static_cast<int>(placeholders.size() + part->captures.size());
      part->captures.push_back(leaf);
    }
    part->source.push_back(source);
  }
  return part;
}

}  // namespace

namespace detail {

bool is_unknown(const Array& x) { return x.node()->has_placeholder; }
bool any_unknown(const std::vector<Array>& leaves) { return std::any_of(leaves.begin(), leaves.end(), is_unknown); }

void check_predicate(const Array& predicate, const char* call) {
  check_usable(predicate, call);
  if (predicate.ndim() != 0)
    throw ShapeError(std::string(call) + ": the predicate must be a scalar, not " + describe(predicate) + "; reduce it with all or any");
}

std::vector<Array> select_leaves(const Array& predicate, const std::vector<Array>& a, const std::vector<Array>& b) {
  if (a.size() != b.size())
    throw ArgumentError("cond: the branches return " + std::to_string(a.size()) + " and " + std::to_string(b.size()) +
                        " arrays; they must return the same structure");
  std::vector<Array> results;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i].shape() == b[i].shape()) || !(a[i].dtype() == b[i].dtype()))
      throw ArgumentError("cond: result " + std::to_string(i) + " of the branches differs: " + describe(a[i]) + " and " + describe(b[i]) +
                          "; they must have the same shape and dtype");
    results.push_back(where(predicate, a[i], b[i]));
  }
  return results;
}

std::vector<Array> record_while(const LeafFunction& condition, const LeafFunction& body, const std::vector<Array>& init,
                                std::source_location site_of_call) {
  WhileParams params;
  RegionPtr region;
  std::optional<Mesh> mesh;
  for (const auto& x : init) {
    check_usable(x, "while_loop");
    if (output_of(x).sharding && !mesh) mesh = output_of(x).sharding->mesh();
    if (x.node()->region) region = x.node()->region;
  }
  std::vector<Array> placeholders;
  std::vector<std::optional<Sharding>> root_layouts;
  for (const auto& x : init) {
    const auto& own = output_of(x).sharding;
    params.carried.push_back(own ? *own : mesh ? Sharding::replicated(*mesh) : replicated_everywhere());
    Type type = type_of(x);
    type.weak = false;
    params.types.push_back(type);
    placeholders.push_back(make_placeholder(type, params.carried.back(), region, output_of(x).varying, site_of_call));
    root_layouts.emplace_back(params.carried.back());
  }
  const auto before = placeholders.front().node()->serial - 1;
  std::vector<Array> verdict, results;
  const auto condition_part = trace_part(condition, placeholders, {Sharding::replicated(params.carried[0].mesh())}, before, verdict);
  check_predicate(verdict[0], "while_loop");
  if (!is_bool(verdict[0].dtype())) throw DtypeError("while_loop: the condition returns " + describe(verdict[0]) + "; it must be bool");
  const auto body_part = trace_part(body, placeholders, root_layouts, before, results);
  for (std::size_t i = 0; i < init.size(); ++i)
    if (results.size() != init.size() || !(results[i].shape() == init[i].shape()) || !(results[i].dtype() == init[i].dtype()))
      throw ArgumentError("while_loop: the body must return what it is given: carried value " + std::to_string(i) + " is " +
                          describe(init[i]) + ", the body returns " + (i < results.size() ? describe(results[i]) : std::string("nothing")) +
                          "; convert with astype or reshape");
  params.text = "\n  condition:\n" + program_text(condition_part->program) + "  body:\n" + program_text(body_part->program);
  std::vector<Array> inputs = init;
  for (const auto* part : {condition_part.get(), body_part.get()})
    for (std::size_t k = 0, v = 0; v < part->source.size(); ++v)
      if (part->source[v] >= static_cast<int>(init.size())) {
        inputs.push_back(part->captures[k++]);
        params.captured.push_back(part->program.values[static_cast<std::size_t>(part->program.inputs[v])].layout);
      }
  params.condition = condition_part;
  params.body = body_part;
  return record_all(while_op, make_params(std::move(params)), std::move(inputs), site_of_call);
}

std::vector<Array> stack_leaves(const std::vector<std::vector<Array>>& rows) {
  std::vector<Array> stacked;
  for (std::size_t leaf = 0; leaf < rows[0].size(); ++leaf) {
    std::vector<Array> column;
    for (const auto& row : rows) column.push_back(row[leaf]);
    stacked.push_back(stack(std::move(column), 0));
  }
  return stacked;
}

std::int64_t leading_size(const std::vector<Array>& leaves) {
  if (leaves.empty()) throw ArgumentError("scan: xs holds no arrays");
  for (const auto& x : leaves) {
    check_usable(x, "scan");
    if (x.ndim() == 0) throw ShapeError("scan: " + describe(x) + " is a scalar; every array of xs needs a leading dimension to step along");
    if (x.shape()[0] != leaves[0].shape()[0])
      throw ShapeError("scan: the leading sizes of xs differ: " + describe(leaves[0]) + " and " + describe(x));
  }
  return leaves[0].shape()[0];
}

Array leading_entry(const Array& x, std::int64_t i) { return x(i); }

}  // namespace detail
}  // namespace tessera
