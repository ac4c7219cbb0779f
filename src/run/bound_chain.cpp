#include "run/bound_chain.hpp"

#include <omp.h>

#include <algorithm>
#include <optional>

#include "base/thresholds.hpp"
#include "graph/elementwise_row.hpp"
#include "kernels/elementwise/elementwise.hpp"
#include "kernels/threads.hpp"

namespace tessera {
namespace {

kernels::FusedStep bound_step(const FusedChain::Step& step, Dtype selects, const ElementwiseRow& row) {
  kernels::FusedStep bound;
  bound.out = step.out;
  bound.n_in = static_cast<int>(step.in.size());
  std::copy(step.in.begin(), step.in.end(), bound.in);
  bound.fn = row.kernel ? row.kernel->of(selects) : kernels::find_cast(selects, step.out);
  if (bound.fn == nullptr) throw InternalError(step.op->name + ": no kernel for " + name(selects));
  return bound;
}

// The stride of dims [first, last) traversed as one dim; nullopt if they have no single stride.
std::optional<std::int64_t> one_step(const Shape& shape, const std::vector<std::int64_t>& strides, int first,
                                     int last) {
  std::int64_t step = 0, next = 0;
  bool found = false;
  for (int d = last; d-- > first;) {
    if (shape[d] == 1) continue;
    const auto stride = strides[static_cast<std::size_t>(d)];
    if (!found)
      step = stride, found = true;
    else if (stride != next)
      return std::nullopt;
    next = stride * shape[d];
  }
  return step;
}

constexpr std::int64_t worth_parts = 1 << 14;  // elements above which working in parts pays off

}  // namespace

kernels::FusedProgram bound_program(const FusedChain& chain, std::span<const Dtype> operands) {
  kernels::FusedProgram program;
  std::vector<Dtype> registers(operands.begin(), operands.end());
  for (const Dtype dtype : operands) program.inputs.push_back({dtype});
  for (const auto& step : chain.steps) {
    const auto& row = *elementwise_row(*step.op);
    program.steps.push_back(bound_step(step, registers[step.in[row.dtype_input]], row));
    registers.push_back(step.out);
  }
  program.outputs = {static_cast<int>(registers.size()) - 1};
  return program;
}

std::vector<std::int64_t> operand_strides(const Shape& operand, const Shape& result) {
  const auto dense = row_major_strides(operand);
  std::vector<std::int64_t> strides(result.size(), 0);
  const std::size_t lead = result.size() - operand.size();
  for (std::size_t d = 0; d < operand.size(); ++d)
    if (operand[d] == result[lead + d] && operand[d] != 1) strides[lead + d] = dense[d];
  return strides;
}

BoundEpilogue::BoundEpilogue(const BindContext& context, const Instruction& i, const Epilogue& epilogue)
    : inputs_(i.inputs.begin() + static_cast<std::ptrdiff_t>(epilogue.inputs), i.inputs.end()),
      result_(epilogue.operand) {
  const Tile& result = context.local(i.outputs[0]).tile;
  shape_ = result.shape();
  inputs_.insert(inputs_.begin() + static_cast<std::ptrdiff_t>(result_), i.outputs[0]);
  std::vector<Dtype> dtypes;
  for (const int v : inputs_) {
    const Tile& tile = context.local(v).tile;
    dtypes.push_back(tile.dtype);
    strides_.push_back(operand_strides(tile.shape(), shape_));
  }
  strides_[result_] = row_major_strides(shape_);
  program_ = bound_program(epilogue.chain, dtypes);
  std::vector<Shape> shapes;
  for (std::size_t k = 0; k < epilogue.inputs; ++k) shapes.push_back(context.local(i.inputs[k]).tile.shape());
  const Params& params =
      i.is<CommunicatingCall>() ? *i.as<CommunicatingCall>()->params : *i.as<KernelCall>()->params;
  if (shape_.elements() >= threshold(worth_parts) &&
      find_row_and_column_steps(i.op->columns_of_parts(shapes, params)))
    pass_ = [this](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
      run_part(row, rows, column, columns);
    };
}

bool BoundEpilogue::find_row_and_column_steps(int columns_of_parts) {
  const int split = shape_.ndim() - columns_of_parts;
  for (int d = split; d < shape_.ndim(); ++d) columns_ *= shape_[d];
  for (const auto& strides : strides_) {
    const auto row = one_step(shape_, strides, 0, split),
               column = one_step(shape_, strides, split, shape_.ndim());
    if (!row || !column) return false;
    steps_.push_back({*row, *column});
  }
  return true;
}

const LastPass* BoundEpilogue::begin(const Frame& frame, std::byte* out) {
  out_ = out;
  data_.clear();
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    data_.push_back(i == result_ ? out : frame.slots[inputs_[i]].data());
  if (!pass_) return nullptr;
  blocks_.clear();
  blocks_.resize(static_cast<std::size_t>(kernels::threads()));
  return &pass_;
}

void BoundEpilogue::finish() {
  blocks_.clear();
  if (pass_ || shape_.elements() == 0) return;
  std::vector<kernels::FusedOperand> operands;
  for (std::size_t i = 0; i < data_.size(); ++i) operands.push_back({data_[i], strides_[i]});
  kernels::run_fused(program_, shape_, operands, std::span(&out_, 1));
}

void BoundEpilogue::run_part(std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
  if (rows == 0 || columns == 0) return;
  std::vector<const std::byte*> at;
  for (std::size_t i = 0; i < data_.size(); ++i)
    at.push_back(data_[i] + (row * steps_[i][0] + column * steps_[i][1]) *
                                static_cast<std::int64_t>(itemsize(program_.inputs[i].dtype)));
  std::byte* const out = out_ + (at[result_] - data_[result_]);
  auto& ready = blocks_[static_cast<std::size_t>(omp_get_thread_num())];
  auto block = ready.find({rows, columns});
  if (block == ready.end()) {
    std::vector<kernels::FusedOperand> operands;
    for (std::size_t i = 0; i < at.size(); ++i) operands.push_back({at[i], steps_[i]});
    block = ready
                .emplace(Extents{rows, columns},
                         kernels::FusedBlock(program_, rows, columns, operands, out, columns_))
                .first;
  }
  block->second.run(at, out);
}

}  // namespace tessera
