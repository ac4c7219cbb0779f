#include "stream/spill/selections.hpp"

#include <tessera/array/index.hpp>
#include <tessera/ops.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "base/call.hpp"
#include "ops/build.hpp"
#include "ops/index/compress.hpp"
#include "ops/index/remap_op.hpp"
#include "ops/index/update/addressed.hpp"
#include "ops/known.hpp"
#include "stream/plan.hpp"
#include "stream/recorder.hpp"

namespace tessera::stream {
namespace {

// ---- elements at places that are computed ----

struct PlacesParams : FileParams {
  int dim = 0;
  bool clamps = true;  // otherwise places outside give zeros
  template <class V> void fields(V&& visit) const {
    FileParams::fields(visit);
    visit("dim", dim);
    visit("clamps", clamps);
  }
};
const PlacesParams& places_params(const Params& p) { return p.as<PlacesParams>(); }

// The place in [0, extent) that an index means; -1: none.
std::int64_t place_of(std::int64_t index, std::int64_t extent, bool clamps) {
  if (index < 0) index += extent;
  if (clamps) return std::clamp<std::int64_t>(index, 0, extent - 1);
  return index < extent ? std::max<std::int64_t>(index, -1) : -1;
}

// Operand: a vector of indices (int64).
const OpDef places_op{
    .name = "read_file_at",
    .halves = moves_halves,
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      Shape shape(places_params(p).count);
      shape[static_cast<std::size_t>(places_params(p).dim)] = in[0].shape[0];
      return {{shape, places_params(p).dtype}};
    },
    .sharding = Rule("i -> L.. i R..",
                     [](const Params& p, std::span<const Shape>) -> RuleReading {
                       const auto& file = places_params(p);
                       const auto after = std::ssize(file.count) - file.dim - 1;
                       return {{{{'L', file.dim}, {'R', after}}}, {}};
                     }),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = places_params(a.params);
      const auto* indices = a.in[0].as<const std::int64_t>();
      std::vector<std::int64_t> places;
      for (std::int64_t i = 0; i < a.in[0].elements(); ++i)
        places.push_back(place_of(indices[i], p.count[static_cast<std::size_t>(p.dim)], p.clamps));
      read_places(p, "read_file_at", p.dim, places, a.out[0].box, a.out[0].data);
    }},
    .vjp = [](const VjpArgs&) -> Cotangents { return Cotangents(1); },
    .batch = NoRule{"programs on files record it when they are computed, and are mapped before"},
    .parts = Parts::all_dims,
    .same_bits = SameBits::always,
    .may_fail = true,
};
const Registered registered_places(places_op);

// ---- selections ----

// Indices along a dim: of a slice, or as an operand, also known.
struct Selection {
  std::optional<Slice> slice;
  Array indices;
  std::optional<std::vector<std::int64_t>> places;
  bool clamps = true;
  std::int64_t count = 0;
};

class Selecting {
 public:
  Selecting(const Selection& selection, FileNumbers& numbers) : selection_(selection), numbers_(numbers) {}
  bool has_moved() const { return has_moved_; }

  Array of(const Array& x, int dim) {
    const auto [at, is_new] = known_.try_emplace({id_of(x), dim});
    if (!is_new) return at->second;
    const auto link = link_through(x, dim);
    Array part = link ? through(*x.node(), *link, x.output()) : applied(x, dim);
    has_moved_ |= link || is_file(*x.node());
    return known_[{id_of(x), dim}] = std::move(part);
  }

 private:
  // The link of a node whose result has the same elements in this dim, each made of those of its operands.
  std::optional<DimLink> link_through(const Array& x, int dim) const {
    const Node& node = *x.node();
    const bool has_few = 2 * selection_.count <= x.shape()[static_cast<std::size_t>(dim)];
    if (!has_few || is_file(node) || is_parameter(node) || node.is_evaluated() || is_sparse_product(node))
      return std::nullopt;
    if (is_in_sequence(node, dim)) return std::nullopt;
    for (auto& link : links_of(node))
      if (!link.is_reduced && link.out[static_cast<std::size_t>(x.output())] == dim && link.out[0] >= 0)
        return link;
    return std::nullopt;
  }
  Array through(const Node& node, const DimLink& link, int output) {
    std::vector<Array> inputs;
    for (std::size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(link.in[i] >= 0 ? of(node.inputs[i], link.in[i]) : node.inputs[i]);
    const auto params = params_for_part(node, link.out[0], selection_.count);
    return record_again(node, params, std::move(inputs))[static_cast<std::size_t>(output)];
  }
  Array applied(const Array& x, int dim) {
    const bool is_in_file = is_file(*x.node());
    if (selection_.slice) {
      std::vector<IndexPart> parts(static_cast<std::size_t>(dim), slice());
      parts.emplace_back(*selection_.slice);
      const Array part = index(x, std::move(parts));
      return is_in_file ? *as_file(*part.node(), {x}, numbers_) : part;
    }
    if (!is_in_file)
      return gather(x, {selection_.indices}, dim, selection_.clamps ? OutOfRange::clamp : OutOfRange::drop);
    const auto& file = x.node()->params->as<FileParams>();
    if (selection_.places) return record_source(source_at(file, dim, *selection_.places), numbers_);
    return record(places_op, make_params(PlacesParams{file, dim, selection_.clamps}), {selection_.indices});
  }

  const Selection& selection_;
  FileNumbers& numbers_;
  bool has_moved_ = false;
  std::map<std::pair<ValueId, int>, Array> known_;
};

// A slice, one dim after the other.
std::optional<Array> sliced(const Node& node, const Array& x, FileNumbers& numbers) {
  const auto& p = node.params->as<RemapParams>();
  if (p.layout || !is_slice(p)) return std::nullopt;
  Array part = x;
  bool has_moved = false;
  for (std::size_t d = 0; d < p.shape.size(); ++d) {
    if (p.shape[d] == x.shape()[d] || p.shape[d] == 0) continue;
    const auto first = p.pieces[0].offset[d], step = p.pieces[0].step[d];
    const Selection one{slice(first, first + (p.shape[d] - 1) * step + 1, step), {}, {}, true, p.shape[d]};
    Selecting selecting(one, numbers);
    part = selecting.of(part, static_cast<int>(d));
    has_moved |= selecting.has_moved();
  }
  return has_moved ? std::optional(part) : std::nullopt;
}

// Index arrays of several dims as places in these dims together.
Selection by_indices(const GatherParams& p, const Shape& x, std::span<const Array> indices) {
  const auto count = indices[0].size();
  Selection s{{}, {}, std::vector<std::int64_t>(static_cast<std::size_t>(count)), true, count};
  s.clamps = p.out_of_range == OutOfRange::clamp;
  for (std::size_t k = 0; k < indices.size(); ++k) {
    const auto extent = x[static_cast<std::size_t>(p.first) + k];
    const Array own = reshape(cast_to(indices[k], int64), {count});
    if (indices.size() == 1) s.indices = own;
    if (indices.size() > 1) {
      const Array place = clip(where(own < 0, own + extent, own), 0, extent - 1);
      s.indices = k == 0 ? place : s.indices * extent + place;
    }
    const auto values = known_values(indices[k]);
    if (!values) s.places.reset();
    for (std::size_t i = 0; s.places && i < values->size(); ++i) {
      auto& place = (*s.places)[i];
      const auto next = place_of(static_cast<std::int64_t>((*values)[i]), extent, s.clamps);
      place = place < 0 || next < 0 ? -1 : place * extent + next;
    }
  }
  return s;
}
// The slices at which a mask is true, then zeros.
Selection by_mask(const CompressParams& p, const Array& mask) {
  Selection s{{}, {}, {}, false, p.size};
  const auto n = mask.size();
  s.indices = compress_rows(mask, arange(n), p.size, {{}, n, true});
  if (const auto values = known_values(mask)) {
    s.places.emplace();
    for (std::int64_t i = 0; i < n && std::ssize(*s.places) < p.size; ++i)
      if ((*values)[static_cast<std::size_t>(i)] != 0) s.places->push_back(i);
    s.places->resize(static_cast<std::size_t>(p.size), -1);
  }
  return s;
}

// The selection, its dim, and the array with its dims as one.
struct Selected {
  Selection selection;
  Array x;
  int dim = 0;
};
std::optional<Selected> selection_of(const Node& node, const std::vector<Array>& inputs,
                                     FileNumbers& numbers) {
  if (node.op->name == "compress") {
    const auto& p = node.params->as<CompressParams>();
    const bool is_zero = p.fill.is_integer ? p.fill.integer == 0 : p.fill.floating == 0.;
    if (p.batch > 0 || !is_zero) return std::nullopt;
    return Selected{by_mask(p, inputs[0]), inputs[1], 0};
  }
  const auto& p = gather_params(*node.params);
  const bool has_several = p.count > 1;
  if (has_several && (!is_file(*inputs[0].node()) || p.out_of_range != OutOfRange::clamp))
    return std::nullopt;
  Selected s{by_indices(p, inputs[0].shape(), std::span(inputs).subspan(1)), inputs[0], p.first};
  if (has_several) {
    auto extents = s.x.shape().vector();
    const auto first = extents.begin() + p.first;
    *first = std::accumulate(first, first + p.count, std::int64_t{1}, std::multiplies<>());
    extents.erase(first + 1, first + p.count);
    s.x = *as_file(*reshape(s.x, Shape(std::move(extents))).node(), {s.x}, numbers);
  }
  return s;
}

}  // namespace

std::optional<Array> selected(const Node& node, const std::vector<Array>& inputs, FileNumbers& numbers) {
  const auto& name = node.op->name;
  const Shape& shape = node.outputs[0].type.shape;
  const bool is_slice = name == "remap" && inputs.size() == 1;
  if ((!is_slice && name != "gather" && name != "compress") || shape.elements() == 0) return std::nullopt;
  const Array& x = inputs[name == "compress" ? 1 : 0];
  if (x.size() == 0 || !reads_files(collect({x}, false))) return std::nullopt;
  const OnBehalfOf call(node.called());
  if (is_slice) return sliced(node, x, numbers);
  const auto found = selection_of(node, inputs, numbers);
  if (!found) return std::nullopt;
  Selecting selecting(found->selection, numbers);
  const Array part = selecting.of(found->x, found->dim);
  if (!selecting.has_moved()) return std::nullopt;
  return reshape(part, shape);
}

std::optional<PlacesRead> read_at_places(const Node& node) {
  constexpr std::int64_t page = 4096;  // that the system reads at least for an element apart from others
  if (node.op != &places_op) return std::nullopt;
  const auto& p = places_params(*node.params);
  const Shape& shape = node.outputs[0].type.shape;
  const auto width = static_cast<std::int64_t>(itemsize(p.dtype));
  std::int64_t run = width;
  for (auto d = static_cast<std::size_t>(p.dim) + 1; d < shape.size(); ++d) run *= shape[d];
  const auto runs = shape.elements() * width / std::max<std::int64_t>(1, run);
  return PlacesRead{p, p.dim, runs * (run + page), reading_bytes_at(p, p.dim, shape)};
}

}  // namespace tessera::stream
