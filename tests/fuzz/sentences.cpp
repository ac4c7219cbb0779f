// The small languages: one-line texts written by users, ops and the command line.
#include <tessera/error.hpp>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <stdexcept>

#include "commands.hpp"
#include "fuzz/accepts.hpp"
#include "fuzz/parsers.hpp"
#include "mesh/rule.hpp"
#include "ops/contract/einsum_text.hpp"
#include "ops/index/slice_range.hpp"
#include "types/checked.hpp"

namespace tessera::test {
namespace {

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text)
    if (c == at)
      parts.emplace_back();
    else
      parts.back() += c;
  return parts;
}
std::optional<std::int64_t> number_in(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}
// "2x3 4": shapes that the library allows, with a size that fits 64 bits. "-": none.
std::optional<std::vector<Shape>> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  for (const auto& word : split(text, ' ')) {
    if (word == "-") continue;
    std::vector<std::int64_t> extents;
    for (const auto& digits : split(word, 'x')) {
      if (digits.empty()) continue;
      const auto extent = number_in(digits);
      if (!extent || *extent < 0 || extents.size() == 12) return std::nullopt;
      extents.push_back(*extent);
    }
    shapes.emplace_back(std::move(extents));
    std::int64_t elements = 1;
    for (const auto extent : shapes.back())
      if (__builtin_mul_overflow(elements, extent, &elements)) return std::nullopt;
  }
  return shapes;
}

// --- sharding rules: "sentence @ shapes in -> shapes out"
// ---------------------------------------------------
void check_factors(const FactorRule& rule, const std::vector<std::vector<DimFactors>>& operands,
                   const std::vector<Shape>& shapes) {
  require(operands.size() == shapes.size(), "each operand has its dims");
  for (std::size_t o = 0; o < shapes.size(); ++o) {
    require(operands[o].size() == shapes[o].size(), "each dim has its factors");
    for (const auto& dim : operands[o])
      for (const int f : dim)
        require(f >= 0 && f < static_cast<int>(rule.factors.size()), "a factor that the rule has");
  }
}
bool parse_rule(std::string_view input) {
  const auto parts = split(input, '@');
  return accepts<InternalError>(
      [&] {
        const RuleText rule(parts[0]);
        for (const bool is_output : {false, true})
          for (std::size_t o = 0; o < rule.operands(is_output); ++o) rule.letters(is_output, o);
        if (parts.size() != 3) return;
        const auto in = shapes_in(parts[1]), out = shapes_in(parts[2]);
        if (!in || !out) return;
        const FactorRule found = rule.on(*in, *out);
        check_factors(found, found.inputs, *in);
        check_factors(found, found.outputs, *out);
        for (const auto& factor : found.factors) require(factor.size >= 0, "a size is not negative");
        to_string(found);
      },
      Said::by_programs);
}
Parser rule() {
  return {"rule",
          {"B.. m k, B.. k n -> B.. m n | sum k@2x3 3x4@2x4", "B.. n -> B.. n | whole n@5x7@5x7",
           "{D..} -> D..@2x3 3 1@2x3", "n (g c) ~S.., (g o) c T.. -> n (g o) S.. | sum c | whole T",
           "(D..) -> (D..)@24x5@4x30", "n (g c), c -> n g | sum c@2x12 3@2x4",
           "i j, j k -> i k | sum j@9223372036854775807x0 0x4@9223372036854775807x4"},
          {"->",         ",",     "|",   "sum",   "whole",
           "prod",       "max",   "B..", "K..",   "..",
           "~s",         "(",     ")",   "(g c)", "{",
           "}",          "{D..}", "1",   "k2",    " ",
           "@",          "x",     "-",   "@-@",   "9223372036854775807",
           "4294967296", "0x0",   "\xff"},
          parse_rule};
}

// --- einsum: "expression @ shapes" ------------------------------------------------------------------------
bool parse_einsum_text(std::string_view input) {
  const auto parts = split(input, '@');
  const auto shapes = parts.size() == 2 ? shapes_in(parts[1]) : std::nullopt;
  if (!shapes) return false;
  return accepts<ArgumentError, ShapeError>([&] {
    const EinsumText text = parse_einsum(parts[0], *shapes);
    require(text.terms.size() == shapes->size(), "each operand has its labels");
    for (std::size_t i = 0; i < shapes->size(); ++i) {
      const auto& shape = (*shapes)[i];
      require(text.terms[i].size() == shape.size(), "each dim has a label");
      for (std::size_t d = 0; d < shape.size(); ++d)
        require(shape[d] == text.sizes.at(text.terms[i][d]) || shape[d] == 1,
                "a dim is as long as its label");
    }
    const std::set<int> distinct(text.output.begin(), text.output.end());
    require(distinct.size() == text.output.size(), "no label stands twice in the result");
    for (const int label : text.output) require(text.sizes.contains(label), "the result has known labels");
  });
}
Parser einsum() {
  return {"einsum",
          {"ij,jk->ik@2x3 3x4", "bij,bjk->bik@2x3x4 2x4x5", "...ij,...jk@7x2x3 3x4", "ii->i@3x3", "ij->@2x3",
           "i...->...@4x5x6", "i,j,k->kji@2 3 4", "ij,ij->ij@1x3 2x1"},
          {"->", ",", "...", ".", "i", "j", "Z", " ", "@", "x", "0", "1", "9223372036854775807", "?",
           "\x1b[2J", "\n", "\0"},
          parse_einsum_text};
}

// --- slices: "start:stop:step of n" -----------------------------------------------------------------------
bool parse_slice(std::string_view input) {
  const auto parts = split(input, ':');
  if (parts.size() != 4) return false;
  std::optional<std::int64_t> bounds[3];
  for (int i = 0; i < 3; ++i) {
    if (parts[i].empty()) continue;
    bounds[i] = number_in(parts[i]);
    if (!bounds[i]) return false;
  }
  const auto n = number_in(parts[3]);
  if (!n || *n < 0 || bounds[2] == 0) return false;
  const auto range = range_of({bounds[0], bounds[1], bounds[2]}, *n);
  require(range.count >= 0 && range.count <= *n, "no more elements than there are");
  if (range.count == 0) return true;
  const auto last = static_cast<__int128>(range.start) + static_cast<__int128>(range.count - 1) * range.step;
  require(range.start >= 0 && range.start < *n && last >= 0 && last < *n, "all of them lie in the array");
  // Python's definition, checked by counting for small extents.
  if (*n > 100) return true;
  const __int128 step = bounds[2].value_or(1), extent = *n;
  const auto place = [&](const std::optional<std::int64_t>& given, __int128 otherwise) {
    if (!given) return otherwise;
    const __int128 at = *given < 0 ? *given + extent : *given;
    return step > 0 ? std::clamp<__int128>(at, 0, extent) : std::clamp<__int128>(at, -1, extent - 1);
  };
  const __int128 stop = place(bounds[1], step > 0 ? extent : -1);
  std::int64_t count = 0;
  for (__int128 at = place(bounds[0], step > 0 ? 0 : extent - 1); step > 0 ? at < stop : at > stop;
       at += step)
    require(at == range.start + static_cast<__int128>(count++) * range.step, "Python's elements");
  require(count == range.count, "as many as Python's");
  return true;
}
Parser slice_bounds() {
  return {"slice",
          {"1:5:2:10", "::-1:7", "-3::1:4", ":-1::8", "9:0:-3:10",
           "0:9223372036854775807:1:9223372036854775807", "::-9223372036854775808:5"},
          {":", "::", "-", "-1", "0", "1", "100", "9223372036854775807", "-9223372036854775808"},
          parse_slice};
}

// --- partition specs and meshes, as on the command line: "mesh|spec|shape" ---------------------------------
void check_blocks(const Sharding& layout, const Shape& shape) {
  std::int64_t covered = 0;
  for (const int id : layout.mesh().device_ids()) {
    const Box box = layout.local_box(shape, id);
    require(box.size() == shape.size(), "a block has the array's dimensions");
    for (std::size_t d = 0; d < box.size(); ++d)
      require(box[d].start >= 0 && box[d].stop <= shape[d], "a block lies in its array");
    if (layout.replica_id(shape,
                          layout.mesh().devices()[static_cast<std::size_t>(layout.mesh().position(id))]) == 0)
      covered += box_elements(box);
  }
  require(covered == shape.elements(), "the blocks cover the array");
}
bool parse_layout(std::string_view input) {
  const auto parts = split(input, '|');
  if (parts.size() != 3) return false;
  return accepts<cli::UsageError, UserError>([&] {
    cli::Order order;
    order.mesh = parts[0];
    const Mesh mesh = cli::planning_mesh(order);
    const Sharding layout = NamedSharding(mesh, cli::parse_spec(parts[1]));
    const Shape shape = cli::parse_shape(parts[2]);
    layout.check_fits(shape, "fuzz");
    if (mesh.size() <= 64 && shape.ndim() <= 8) check_blocks(layout, shape);
  });
}
Parser layout() {
  return {"layout",
          {"x=4,y=2|x,None|8x6", "x=2|x|5", "x=2,y=3|y+x,-|7x1", "a=1|None|3", "x=4,y=2|,y|1797x64",
           "x=8|x|9223372036854775807"},
          {"x", "y", "=", ",", "+", "|", "None", "-", "0", "1", "2", "1000000", "1000001", "4294967296",
           "9223372036854775808", "x=2", "\x1b", " "},
          parse_layout};
}

// --- words of the command line
// ------------------------------------------------------------------------------
bool parse_word(std::string_view input) {
  const std::string word(input);
  const auto shape = [&] {
    const Shape parsed = cli::parse_shape(word);
    for (const auto extent : parsed) require(extent >= 0, "no extent is negative");
    checked_bytes(parsed, complex128, "fuzz");
  };
  const bool is_shape = accepts<cli::UsageError, UserError>(shape);
  if (cli::is_shape(word) && !is_shape)  // refused for its size or a missing number
    require(word.find("xx") != std::string::npos || word.back() == 'x' || word.size() > 10,
            "shapes are read");
  cli::Order order;
  order.output = word;
  order.force = true;  // no dataset is looked for: libFuzzer's program has no HDF5
  const bool is_file = accepts<cli::UsageError, IoError>([&] { cli::check_output(order); });
  require(cli::without_places(word).size() <= word.size(), "places are only left out");
  return is_shape || is_file;
}
Parser words() {
  return {"words",
          {"4096x4096", "10", "0x3", "a.npy", "b.h5:/group/b", "c.hdf5:d"},
          {"x", "0", "9223372036854775807", ".npy", ".mtx", ".h5", ".h5:", ".hdf5:/", "/", "..", " at ",
           ".cpp:", "12", " ", "\x1b[2J", "\n", "-"},
          parse_word};
}

}  // namespace

std::vector<Parser> sentence_parsers() { return {rule(), einsum(), slice_bounds(), layout(), words()}; }

}  // namespace tessera::test
