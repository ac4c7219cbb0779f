// Keys derived from keys: split and fold_in. A key whose words every rank holds is split on the host instead
// (src/random/keys.cpp).
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/rng/rng.hpp"

namespace tessera::rng {

Shape leading_dims(const Shape& keys) { return without_last(keys, 1); }

std::span<const Words> keys_of(const Tile& keys) {
  static_assert(sizeof(Words) == 2 * sizeof(std::uint32_t));
  return {keys.as<const Words>(), static_cast<std::size_t>(keys.elements() / 2)};
}

Box box_of_one_key(const Tile& out, const Tile& keys) {
  return Box(out.box.begin() + static_cast<std::ptrdiff_t>(keys.box.size()) - 1, out.box.end());
}
Shape shape_of_one_key(const Tile& out, const Tile& keys) {
  return Shape(std::vector<std::int64_t>(
      out.global.begin() + static_cast<std::ptrdiff_t>(keys.box.size()) - 1, out.global.end()));
}

Batched batch_keys(const BatchArgs& args) {
  return {{record(*args.node.op, args.node.params, {batch_first(args.in[0], args.dims[0])})}, {0}};
}

namespace {

// w is the dim of a key's two words.

struct SplitOneParams {
  std::uint64_t i, n;
  Threefry mode;
  template <class V> void fields(V&& visit) const {
    visit("i", i);
    visit("n", n);
    visit("mode", mode);
  }
};
const OpDef split_one_op{
    .name = "split_key",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> { return {in[0]}; },
    .sharding = Rule("B.. w -> B.. w | whole w"),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto& p = a.params.as<SplitOneParams>();
      auto* out = a.out[0].as<Words>();
      for (const Words key : keys_of(a.in[0])) *out++ = kernels::split_key(key, p.i, p.n, p.mode);
    }},
    .vjp = no_cotangents,
    .batch = batch_keys,
    .parts = Parts::all_dims,
};
const Registered registered_split_one(split_one_op);

struct SplitManyParams {
  Shape shape;
  Threefry mode;
  template <class V> void fields(V&& visit) const {
    visit("shape", shape);
    visit("mode", mode);
  }
};
const OpDef split_many_op{
    .name = "split_keys",
    .infer = [](std::span<const Type> in, const Params& p) -> std::vector<Type> {
      return {{join(join(leading_dims(in[0].shape), p.as<SplitManyParams>().shape), Shape{2}), uint32}};
    },
    .sharding = Rule("B.. w -> B.. S.. w | whole w"),
    .runs = Kernel{[](const KernelArgs& a) {
      const auto mode = a.params.as<SplitManyParams>().mode;
      Box box = box_of_one_key(a.out[0], a.in[0]);
      Shape global = shape_of_one_key(a.out[0], a.in[0]);
      box.pop_back();
      global = leading_dims(global);
      auto* out = a.out[0].as<Words>();
      if (is_empty(box)) return;
      const auto n = static_cast<std::uint64_t>(global.elements());
      kernels::BoxRuns runs(box, global);
      for (const Words key : keys_of(a.in[0])) {
        while (!runs.done()) {
          const auto run = runs.take(box_elements(box));
          if (mode == Threefry::partitionable)
            kernels::threefry_counters(key.x0, key.x1, run.start, run.count, out);
          else
            kernels::threefry_original_bits(key.x0, key.x1, static_cast<std::int64_t>(2 * n),
                                            static_cast<std::int64_t>(2 * run.start), 2 * run.count, 32, out);
          out += run.count;
        }
        runs.restart();
      }
    }},
    .vjp = no_cotangents,
    .batch = batch_keys,
};
const Registered registered_split_many(split_many_op);

const OpDef fold_in_op{
    .name = "fold_in",
    .infer = [](std::span<const Type> in, const Params&) -> std::vector<Type> { return {in[0]}; },
    .sharding = Rule("B.. w, B.. -> B.. w | whole w"),
    .runs = Kernel{[](const KernelArgs& a) {
      auto* out = a.out[0].as<Words>();
      const auto* data = a.in[1].as<const std::uint32_t>();
      for (const Words key : keys_of(a.in[0])) *out++ = kernels::fold_key(key, *data++);
    }},
    .vjp = no_cotangents,
    .batch = batch_leading,
    .parts = Parts::all_dims,
};
const Registered registered_fold_in(fold_in_op);

}  // namespace

Array split_one(const Array& key, std::uint64_t i, std::uint64_t n, Threefry mode) {
  return record(split_one_op, make_params(SplitOneParams{i, n, mode}), {key});
}
Array split_many(const Array& key, Shape shape, Threefry mode) {
  return record(split_many_op, make_params(SplitManyParams{std::move(shape), mode}), {key});
}
std::optional<KeysOfOne> source_of_split(const Array& keys) {
  const Node& node = *keys.node();
  if (node.op != &split_many_op || node.inputs.empty() || keys.ndim() != 2) return std::nullopt;
  const Array& key = node.inputs[0];
  if (key.ndim() != 1) return std::nullopt;
  return KeysOfOne{key, static_cast<std::uint64_t>(keys.shape()[0]), node.params->as<SplitManyParams>().mode};
}
Array fold_in(const Array& key, const Array& data) {
  return record(fold_in_op, no_params(), {key, cast_to(data, uint32)});
}

}  // namespace tessera::rng
