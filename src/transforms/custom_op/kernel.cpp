// A custom op on one rank's tiles: its kernel gets blocks with their positions, one example at a time.
#include <tessera/error.hpp>

#include <algorithm>
#include <exception>

#include "kernels/reduce/reduce.hpp"
#include "transforms/custom_op/definition.hpp"

namespace tessera::custom {
namespace {

// Operands and results of the first example, and the strides to the next ones.
struct Side {
  std::vector<detail::BlockData> blocks;
  std::vector<std::vector<std::int64_t>> bytes_apart;  // [operand][batch level]
};

std::vector<std::int64_t> dense_strides(const Shape& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

template <class T> std::vector<T> after(std::size_t n, const std::vector<T>& all) {
  return {all.begin() + static_cast<std::ptrdiff_t>(n), all.end()};
}

// `has`: which batch levels the tile has dims of.
void add_tile(Side& side, const Tile& tile, const std::vector<bool>& has) {
  const Shape shape = tile.shape();
  const auto strides = dense_strides(shape);
  const auto size = static_cast<std::int64_t>(itemsize(tile.dtype));
  std::vector<std::int64_t> apart;
  std::size_t dim = 0;
  for (const bool is_there : has) apart.push_back(is_there ? strides[dim++] * size : 0);
  detail::BlockData block{tile.data,
                          tile.dtype,
                          Shape(after(dim, shape.vector())),
                          after(dim, strides),
                          {},
                          Shape(after(dim, tile.global.vector())),
                          {}};
  block.margins.resize(block.shape.size());
  for (std::size_t d = dim; d < tile.box.size(); ++d) block.start.push_back(tile.box[d].start);
  side.blocks.push_back(std::move(block));
  side.bytes_apart.push_back(std::move(apart));
}

// Points the block past the margins: the tile holds the block with its margins.
void set_margin(detail::BlockData& block, const Margin& margin, const detail::BlockData& result) {
  const auto d = margin.dim, r = margin.output_dim;
  const Halo& halo = *margin.halo;
  block.data = static_cast<std::byte*>(block.data) +
               halo.before * block.strides[d] * static_cast<std::int64_t>(itemsize(block.dtype));
  block.shape[d] = result.shape[r];
  block.margins[d] = {halo.before, halo.after};
  block.start[d] = result.start[r] + (halo.boundary ? 0 : halo.before);
  block.global[d] = result.global[r] + (halo.boundary ? 0 : halo.before + halo.after);
}

void set_margins(const CustomOp::Definition& op, Side& in, const Side& out) {
  if (op.options.halo.empty()) return;
  std::vector<Shape> shapes, results;
  for (const auto& block : in.blocks) shapes.push_back(block.shape);
  for (const auto& block : out.blocks) results.push_back(block.shape);
  for (const auto& margin : margins_of(op, shapes, results))
    set_margin(in.blocks[margin.operand], margin, out.blocks[margin.output]);
}

bool is_empty_tile(const Tile& tile) { return tile.elements() == 0; }

// Blocks without elements have no results; if their dims are reduced, the result is the neutral element.
bool is_done_without_kernel(const CustomOp::Definition& op, const KernelArgs& a) {
  if (std::all_of(a.out.begin(), a.out.end(), is_empty_tile)) return true;
  if (!op.rule.reduces() || std::none_of(a.in.begin(), a.in.end(), is_empty_tile)) return false;
  for (const auto& tile : a.out) {
    const bool adds_bools = op.rule.reduce_kind() == ReduceKind::sum && is_bool(tile.dtype);
    kernels::fill_identity(adds_bools ? ReduceKind::any : op.rule.reduce_kind(), tile.dtype, tile.data,
                           tile.elements());
  }
  return true;
}

// Exceptions of the user's kernel reach the other ranks as text.
void call(const detail::KernelFunction& kernel, const Blocks& blocks) {
  try {
    kernel(blocks);
  } catch (const LinAlgError&) {
    throw;
  } catch (const std::exception& error) {
    throw UserError(std::string("its kernel failed: ") + error.what());
  } catch (...) {
    throw UserError("its kernel threw something that is no std::exception");
  }
}

// Advances to the next example; false if there is none.
bool advance(std::vector<std::int64_t>& example, const std::vector<std::int64_t>& counts) {
  for (std::size_t level = counts.size(); level-- > 0;) {
    if (++example[level] < counts[level]) return true;
    example[level] = 0;
  }
  return false;
}

std::vector<detail::BlockData> of_example(const Side& side, const std::vector<std::int64_t>& example) {
  auto blocks = side.blocks;
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (std::size_t level = 0; level < example.size(); ++level)
      blocks[i].data = static_cast<std::byte*>(blocks[i].data) + example[level] * side.bytes_apart[i][level];
  return blocks;
}

}  // namespace

void run_kernel(const KernelArgs& a) {
  const auto& p = params_of(a.params);
  if (is_done_without_kernel(*p.op, a)) return;
  Side in, out;
  for (std::size_t i = 0; i < a.in.size(); ++i) {
    std::vector<bool> has;
    for (const auto& level : p.batches) has.push_back(level[i]);
    add_tile(in, a.in[i], has);
  }
  for (const auto& tile : a.out) add_tile(out, tile, std::vector<bool>(p.batches.size(), true));
  set_margins(*p.op, in, out);
  std::vector<std::int64_t> counts, example(p.batches.size(), 0);
  const Shape shape = a.out[0].shape();
  for (std::size_t level = 0; level < p.batches.size(); ++level) counts.push_back(shape[level]);
  do call(p.op->options.kernel.function, Blocks(of_example(in, example), of_example(out, example)));
  while (advance(example, counts));
}

}  // namespace tessera::custom
