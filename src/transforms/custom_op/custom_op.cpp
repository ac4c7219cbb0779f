// custom_op: the checks when an op is made and called, and its records.
//
// Custom ops with the same name and sharding rule share a record; the params of their nodes hold the
// functions, which differ. Below vmap a node has a record whose rule has one more letter:
//
//   "~i ~j -> i j"   under vmap   "a ~i ~j -> a i j"
#include <tessera/custom_op.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include <tessera/error.hpp>

#include "base/text.hpp"
#include "ops/build.hpp"
#include "transforms/custom_op/definition.hpp"
#include "types/extents.hpp"

namespace tessera {
namespace custom {
namespace {

std::string text_of(const InternalError& error) { return error.what(); }

// ---- the sharding rule ----

RuleText read(const std::string& sentence) {
  try {
    return RuleText(sentence);
  } catch (const InternalError& error) {
    throw ArgumentError(call_text() + ": " + text_of(error) +
                        ". A sentence reads \"i j, j k -> i k | sum j\": the dims of the operands, of the "
                        "results, and what is summed or whole");
  }
}

std::string without(char c, std::string text) {
  std::erase(text, c);
  return text;
}

// The operands (or results) in the text of a rule, in order.
std::vector<std::string> operands_in(const std::string& text) {
  std::vector<std::string> operands(1);
  for (const char c : text)
    if (c == ',')
      operands.emplace_back();
    else
      operands.back() += c;
  return operands;
}

char unused_letter(const std::string& sentence) {
  for (char letter = 'a'; letter <= 'z'; ++letter)
    if (sentence.find(letter) == std::string::npos) return letter;
  throw ArgumentError(call_text() + ": the sharding rule \"" + sentence +
                      "\" has no letter left for another batch dim; loop over the examples instead");
}

std::string with_letter(const std::string& operand, const std::string& letter) {
  const auto brace = operand.find('{');
  return brace == std::string::npos ? letter + " " + operand
                                    : operand.substr(0, brace + 1) + letter + " " + operand.substr(brace + 1);
}

// The rule with one more letter in front of the operands that have the batch dim, and of all results.
std::string batched(const std::string& sentence, const BatchLevel& level) {
  const std::string letter(1, unused_letter(sentence));
  const auto arrow = sentence.find("->");
  const auto bar = std::min(sentence.find('|'), sentence.size());
  auto in = operands_in(sentence.substr(0, arrow)),
       out = operands_in(sentence.substr(arrow + 2, bar - arrow - 2));
  const bool is_repeated = sentence.find('{') != std::string::npos;  // then all operands have it
  for (std::size_t i = 0; i < in.size(); ++i)
    if (is_repeated || level[i]) in[i] = with_letter(in[i], letter);
  for (auto& result : out) result = with_letter(result, letter);
  return join(in, ",") + "->" + join(out, ",") + sentence.substr(bar);
}

// ---- what is checked when an op is made ----

void check_sentence(const CustomOpOptions& options, const RuleText& rule) {
  const auto refuse = [&](const std::string& why) {
    throw ArgumentError(call_text() + ": the op " + in_quotes(options.name) + " has the sharding rule \"" +
                        options.rule + "\": " + why);
  };
  const auto arrow = options.rule.find("->");
  if (rule.operands(false) == 0) refuse("it has no operand; name the dims of one before ->");
  if (options.rule.find('~', arrow) != std::string::npos)
    refuse("a result is marked with ~; margins belong to operands");
  if (options.rule.find('{', arrow) != std::string::npos) refuse("results are repeated; name each of them");
  if (const auto factor = rule.missing_in_an_output(); !factor.empty())
    refuse("a result lacks " + factor +
           ", and would depend on how it is split; give it the dim, or say whole " + factor);
  std::set<std::string> with_halo;
  for (const auto& halo : options.halo) {
    if (!rule.has_about(halo.dim))
      refuse("there is a halo for " + in_quotes(halo.dim) + ", which no operand has as ~" + halo.dim +
             "; mark the dims that are read with a margin");
    if (!with_halo.insert(halo.dim).second)
      refuse("there are two halos for " + in_quotes(halo.dim) + "; keep one");
    if (halo.before < 0 || halo.after < 0)
      refuse("the halo of " + in_quotes(halo.dim) + " is (" + std::to_string(halo.before) + ", " +
             std::to_string(halo.after) + "); margins are 0 or more");
  }
  for (std::size_t at = 0; (at = options.rule.find('~', at)) != std::string::npos;) {
    std::string factor;
    for (++at; at < options.rule.size() && std::isalnum(static_cast<unsigned char>(options.rule[at])); ++at)
      factor += options.rule[at];
    if (options.rule.compare(at, 2, "..") == 0 || (!factor.empty() && std::isupper(factor[0])))
      refuse("~" + factor + " is a group; mark single letters");
    if (!with_halo.contains(factor))
      refuse("~" + factor + " has no halo; say {\"" + factor + "\", before, after}");
    if (!rule.is_passed(factor))
      refuse("~" + factor + " is reduced or whole; a dim with a margin stands in the results");
  }
}

void check_kernel(const CustomOpOptions& options, const RuleText& rule) {
  const auto& signature = options.kernel.signature;
  if (!options.kernel.function)
    throw ArgumentError(call_text() + ": the op " + in_quotes(options.name) + " has no kernel");
  if (!signature.is_known) return;
  const auto check = [&](bool is_output, std::size_t given, const char* what) {
    const auto wanted = rule.operands(is_output);
    const bool fits =
        !is_output && options.rule.find('{') != std::string::npos ? given >= wanted : given == wanted;
    if (!fits)
      throw ArgumentError(call_text() + ": the kernel of " + in_quotes(options.name) + " takes " +
                          format_count(static_cast<std::int64_t>(given), what) + ", the sharding rule \"" +
                          options.rule + "\" has " + std::to_string(wanted));
  };
  check(false, signature.in.size(), "operand");
  check(true, signature.out.size(), "result");
}

std::uint64_t hash_of(const CustomOpOptions& options) {
  auto hash = mix(tessera::field_hash(options.name), tessera::field_hash(options.rule));
  for (const auto& halo : options.halo) {
    hash = mix(mix(hash, tessera::field_hash(halo.dim)), tessera::field_hash(halo.before));
    hash = mix(mix(hash, tessera::field_hash(halo.after)), tessera::field_hash(halo.value));
    hash = mix(hash, halo.boundary ? 1 + tessera::field_hash(*halo.boundary) : 0);
  }
  for (const auto* list : {&options.kernel.signature.in, &options.kernel.signature.out})
    hash = mix(hash, tessera::field_hash(*list));
  return hash;
}

CustomOpPtr define(CustomOpOptions options) {
  static std::uint64_t serial = 0;
  if (options.name.empty())
    throw ArgumentError(call_text() + ": the op has no name; it stands in errors and explain");
  RuleText rule = read(options.rule), without_margins = read(without('~', options.rule));
  check_sentence(options, rule);
  check_kernel(options, rule);
  const auto hash = hash_of(options);
  auto op = std::make_shared<CustomOp::Definition>(CustomOp::Definition{
      std::move(options), std::move(rule), std::move(without_margins), ++serial, hash, nullptr});
  op->name = record_of(*op, {}).name.c_str();
  return op;
}

// ---- types ----

std::string operands_text(std::size_t n) { return format_count(static_cast<std::int64_t>(n), "operand"); }

void check_operands(const CustomOp::Definition& op, std::span<const Type> in) {
  const auto wanted = op.rule.operands(false);
  const bool is_repeated = op.options.rule.find('{') != std::string::npos;
  const auto& signature = op.options.kernel.signature;
  const auto typed = signature.is_known ? signature.in.size() : wanted;
  const bool fits =
      is_repeated ? !in.empty() && in.size() + 1 >= wanted && (!signature.is_known || in.size() == typed)
                  : in.size() == wanted;
  if (!fits)
    throw ArgumentError(call_text() + ": it is called with " + operands_text(in.size()) +
                        ", the sharding rule \"" + op.options.rule + "\" has " +
                        (is_repeated && signature.is_known ? "a kernel of " + std::to_string(typed)
                                                           : std::to_string(wanted)));
  for (std::size_t i = 0; signature.is_known && i < in.size(); ++i)
    if (!(in[i].dtype == signature.in[i]))
      throw DtypeError(call_text() + ": operand " + std::to_string(i) + " is " + to_string(in[i]) +
                       ", the kernel takes " + name(signature.in[i]) + "; convert it, astype(x, " +
                       name(signature.in[i]) + ")");
}

Dtype promoted(std::span<const Type> in) {
  WeakDtype found{in[0].dtype, in[0].weak};
  for (const auto& type : in.subspan(1)) found = promote(found, WeakDtype{type.dtype, type.weak});
  return found.dtype;
}

template <class Read> auto read_shapes(const char* what, Read read) {
  try {
    return read();
  } catch (const InternalError& error) {
    throw ShapeError(call_text() + ": " + text_of(error) + "; " + what);
  }
}

// The results of one example.
std::vector<ShapeDtype> results_of(const CustomOp::Definition& op, std::span<const Type> in,
                                   std::span<const Shape> shapes) {
  std::vector<ShapeDtype> results;
  const auto fitting = without_margins(op, shapes);
  if (op.options.result) {
    std::vector<ShapeDtype> operands;
    for (std::size_t i = 0; i < in.size(); ++i) operands.push_back({shapes[i], in[i].dtype});
    const UserCode users;
    results = op.options.result(operands);
  } else {
    const auto& signature = op.options.kernel.signature;
    const auto found =
        read_shapes("call it with operands that the sentence fits, or give the op a result rule",
                    [&] { return op.without_margins.results_of(fitting); });
    for (std::size_t i = 0; i < found.size(); ++i)
      results.push_back({found[i], signature.is_known ? signature.out[i] : promoted(in)});
  }
  if (results.size() != op.rule.operands(true))
    throw ArgumentError(call_text() + ": its result rule gives " +
                        format_count(static_cast<std::int64_t>(results.size()), "result") +
                        ", the sharding rule \"" + op.options.rule + "\" has " +
                        std::to_string(op.rule.operands(true)));
  std::vector<Shape> out;
  for (const auto& result : results) out.push_back(result.shape);
  read_shapes("call it with operands that the sentence fits; nothing is broadcast", [&] {
    op.without_margins.check_exact(fitting, out);
    return true;
  });
  return results;
}

std::vector<Type> infer(std::span<const Type> in, const Params& params) {
  const auto& p = params_of(params);
  check_operands(*p.op, in);
  std::vector<Shape> shapes;
  for (const auto& type : in) shapes.push_back(type.shape);
  std::vector<std::int64_t> sizes;
  for (const auto& level : p.batches) {
    const auto operand =
        static_cast<std::size_t>(std::find(level.begin(), level.end(), true) - level.begin());
    std::size_t dim = 0;
    for (const auto* outer = p.batches.data(); outer != &level; ++outer) dim += (*outer)[operand];
    sizes.push_back(in[operand].shape[dim]);
  }
  std::vector<Type> out;
  for (const auto& result : results_of(*p.op, in, shapes_of_examples(p, shapes)))
    out.push_back({join(sizes, result.shape), result.dtype});
  return out;
}

Halves halves(const Params& params) {
  const auto& signature = params_of(params).op->options.kernel.signature;
  const bool takes_halves = std::any_of(signature.in.begin(), signature.in.end(), is_half);
  return takes_halves ? Halves::moved : Halves::widened;
}

// ---- records ----

OpDef make_record(const CustomOp::Definition& op, const std::string& sentence) {
  OpDef record{.name = op.options.name, .halves = halves, .infer = infer};
  record.sharding = Rule(sentence.c_str());
  if (op.options.halo.empty())
    record.runs = Kernel{run_kernel};
  else
    record.runs = Lower{.write = write_with_margins, .kernel = run_kernel};
  if (op.options.vjp || op.options.jvp)
    record.vjp = vjp;
  else
    record.vjp = NoRule{"its custom_op has neither vjp nor jvp"};
  record.batch = batch;
  record.may_fail = true;
  return record;
}

}  // namespace

std::size_t CustomOpParams::batch_dims(std::size_t operand) const {
  return static_cast<std::size_t>(
      std::count_if(batches.begin(), batches.end(), [&](const BatchLevel& level) { return level[operand]; }));
}

std::vector<Shape> shapes_of_examples(const CustomOpParams& p, std::span<const Shape> in) {
  std::vector<Shape> shapes;
  for (std::size_t i = 0; i < in.size(); ++i) {
    const auto dims = static_cast<std::ptrdiff_t>(p.batch_dims(i));
    shapes.emplace_back(std::vector<std::int64_t>(in[i].begin() + dims, in[i].end()));
  }
  return shapes;
}

const OpDef& record_of(const CustomOp::Definition& op, const std::vector<BatchLevel>& batches) {
  using Key = std::tuple<std::string, std::string, bool, bool, bool>;
  static auto& records = *new std::map<Key, OpDef>;  // nodes and plans refer to them to the very end
  std::string sentence = op.options.rule;
  for (auto level = batches.rbegin(); level != batches.rend(); ++level) sentence = batched(sentence, *level);
  const auto& o = op.options;
  const Key key{o.name, sentence, bool(o.vjp || o.jvp), bool(o.jvp), !o.halo.empty()};
  auto found = records.find(key);
  if (found == records.end()) {
    found = records.emplace(key, make_record(op, sentence)).first;
    if (o.jvp) add_jvp(found->second);
  }
  return found->second;
}

}  // namespace custom

const detail::BlockData& detail::block_at(const std::vector<BlockData>& blocks, std::size_t i, Dtype wanted,
                                          const char* what) {
  const std::string operand = std::string(what) + " " + std::to_string(i);
  if (i >= blocks.size())
    throw ArgumentError("the kernel asks for " + operand + ", there are " + std::to_string(blocks.size()));
  if (!(blocks[i].dtype == wanted))
    throw DtypeError("the kernel asks for " + operand + " as " + tessera::name(wanted) + ", it is " +
                     tessera::name(blocks[i].dtype));
  return blocks[i];
}

CustomOp::CustomOp(CustomOpOptions options, std::source_location where) {
  const Call call("custom_op", where);
  definition_ = custom::define(std::move(options));
}
CustomOp custom_op(CustomOpOptions options, std::source_location where) {
  return CustomOp(std::move(options), where);
}

const std::string& CustomOp::name() const { return definition_->options.name; }
const std::string& CustomOp::rule() const { return definition_->options.rule; }

// Plain numbers take the dtype that the kernel wants, or that of the other operands.
static std::vector<Array> with_numbers_cast(const CustomOp::Definition& op, std::vector<Array> operands) {
  const auto& signature = op.options.kernel.signature;
  std::vector<Type> types;
  for (const auto& x : operands) check_usable(x), types.push_back(type_of(x));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (!types[i].weak) continue;
    const bool is_wanted = signature.is_known && i < signature.in.size();
    const Dtype to = is_wanted ? signature.in[i] : custom::promoted(types);
    if (promote(WeakDtype{types[i].dtype, true}, WeakDtype{to, false}).dtype == to)
      operands[i] = cast_to(operands[i], to);
  }
  return operands;
}

std::vector<Array> CustomOp::results(const std::vector<Array>& operands, std::source_location where) const {
  const auto& op = *definition_;
  const Call call(op.name, where);
  if (operands.empty()) custom::check_operands(op, {});
  return record_all(custom::record_of(op, {}), make_params(custom::CustomOpParams{definition_}),
                    with_numbers_cast(op, operands));
}

Array CustomOp::one(std::vector<Array> operands, std::source_location where) const {
  const Call call(definition_->name, where);
  if (const auto results = definition_->rule.operands(true); results != 1)
    throw ArgumentError(call_text() + ": it has " + std::to_string(results) +
                        " results; ask for all of them, op.results({a, b})");
  return results(std::move(operands), where)[0];
}

Array CustomOp::operator()(const Operand& a) const { return one({a.array}, a.where); }
Array CustomOp::operator()(const Operand& a, const Operand& b) const {
  return one({a.array, b.array}, a.where);
}
Array CustomOp::operator()(const Operand& a, const Operand& b, const Operand& c) const {
  return one({a.array, b.array, c.array}, a.where);
}
Array CustomOp::operator()(const Operand& a, const Operand& b, const Operand& c, const Operand& d) const {
  return one({a.array, b.array, c.array, d.array}, a.where);
}

}  // namespace tessera
