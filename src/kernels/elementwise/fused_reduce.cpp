#include <algorithm>
#include <cstring>
#include <memory>

#include "base/thresholds.hpp"
#include "kernels/elementwise/fused.hpp"
#include "kernels/elementwise/fused/blocks.hpp"
#include "kernels/move/copy.hpp"
#include "kernels/parallel.hpp"
#include "kernels/reduce/pairwise_cascade.hpp"
#include "kernels/reduce/reduce.hpp"
#include "kernels/reduce/reduce_rows.hpp"
#include "kernels/visit.hpp"

namespace tessera::kernels {
namespace {

using Extents = std::vector<std::int64_t>;

// The shape is cut into blocks whose chain result fits the second-level cache. Blocks that differ in kept
// dims write different elements of the result; blocks that differ only in reduced dims are combined pairwise.
class FusedReduce {
 public:
  FusedReduce(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
              ReduceKind kind, const std::vector<int>& axes, std::byte* out)
      : program_(program),
        shape_(shape),
        inputs_(inputs),
        kind_(kind),
        axes_(axes),
        out_(out),
        reduced_(shape.size(), false) {
    for (const int axis : axes) reduced_[axis] = true;
    chain_dtype_ = output_dtype(program);
    result_dtype_ = reduce_result(kind, chain_dtype_);
    dense_ = dense_strides(shape);
    choose_block();
    shortcut_ = sums_squares()              ? Shortcut::squares
                : is_extreme_without_nan()  ? Shortcut::numbers
                : sums_conjugate_products() ? Shortcut::conjugate_products
                                            : Shortcut::none;
  }

  void run() {
    if (!is_decided_by_few() && !is_extreme_of_columns()) reduce_all_places();
  }

 private:
  void reduce_all_places() {
    for_blocks(
        shape_, [&](Extents& at) { return advance(at, false); },
        [&](const Extents& at) { reduce_place(at); });
  }

  static std::int64_t product(const Extents& extents) {
    std::int64_t n = 1;
    for (const auto extent : extents) n *= extent;
    return n;
  }

  // any and all: whether a small part of the reduced elements decides every element of the result, which is
  // then written.
  bool is_decided_by_few() const {
    constexpr std::int64_t part = 64, least = 16;
    if (kind_ != ReduceKind::any && kind_ != ReduceKind::all) return false;
    Extents extents(shape_.vector());
    std::int64_t reduced = 1, kept = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) (reduced_[d] ? reduced : kept) *= extents[d];
    if (reduced < threshold(part * least)) return false;
    std::int64_t few = std::max<std::int64_t>(reduced / part, 1);
    for (std::size_t d = extents.size(); d-- > 0;)
      if (reduced_[d]) extents[d] = std::clamp<std::int64_t>(few, 1, extents[d]), few /= extents[d];
    std::vector<FusedOperand> operands(inputs_.begin(), inputs_.end());
    for (auto& operand : operands) {
      if (!operand.parts.empty()) return false;
      if (operand.strides.empty()) operand.strides = dense_;
    }
    const Shape shape(std::move(extents));
    FusedReduce few_of_each(program_, shape, operands, kind_, axes_, out_);
    few_of_each.reduce_all_places();
    const auto decided = static_cast<std::byte>(kind_ == ReduceKind::any ? 1 : 0);
    return std::all_of(out_, out_ + kept, [&](std::byte found) { return found == decided; });
  }

  // Adds dims from the innermost outwards until the cache is full. A block has at most a few thousand
  // elements of the result, so that partial results are small against the block.
  void choose_block() {
    constexpr std::int64_t kept_elements = 4096, block_elements = 65536;
    block_.assign(shape_.size(), 1);
    std::int64_t kept = 1, all = 1;
    bool kept_cut = false, reduced_cut = false;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      bool& cut = reduced_[d] ? reduced_cut : kept_cut;
      if (cut) continue;
      const std::int64_t room =
          reduced_[d] ? block_elements / all : std::min(block_elements / all, kept_elements / kept);
      block_[d] = std::clamp<std::int64_t>(room, 1, shape_[d]);
      cut = block_[d] < shape_[d];
      all *= block_[d];
      if (!reduced_[d]) kept *= block_[d];
    }
  }

  // Advances to the next block among those that differ in the kept (or in the reduced) dims.
  bool advance(Extents& at, bool reduced) const {
    return advance_block(at, shape_, block_, [&](std::size_t d) { return reduced_[d] != reduced; });
  }

  Extents block_at(const Extents& at) const {
    Extents extents(at.size());
    for (std::size_t d = 0; d < at.size(); ++d) extents[d] = std::min(block_[d], shape_[d] - at[d]);
    return extents;
  }

  // Reduces all blocks of one part of the result.
  void reduce_place(const Extents& first) {
    Extents places, place_strides;  // of this part in the complete result
    std::int64_t stride = 1, offset = 0;
    for (std::size_t d = shape_.size(); d-- > 0;) {
      if (reduced_[d]) continue;
      places.insert(places.begin(), std::min(block_[d], shape_[d] - first[d]));
      place_strides.insert(place_strides.begin(), stride);
      offset += first[d] * stride;
      stride *= shape_[d];
    }
    const std::size_t item = itemsize(result_dtype_);
    const std::int64_t width = product(places);
    const std::int64_t at_once = 8 * std::max(threads(), 2),
                       row_bytes = width * static_cast<std::int64_t>(item);
    const std::unique_ptr<std::byte[]> partial(new std::byte[static_cast<std::size_t>(at_once * row_bytes)]);
    PairwiseCascade cascade(combine_map(kind_, result_dtype_), width, item);
    Extents at = first;
    for (bool more = true; more;) {
      std::vector<Extents> blocks;
      while (more && static_cast<std::int64_t>(blocks.size()) < at_once) {
        blocks.push_back(at);
        more = advance(at, true);
      }
      const auto count = static_cast<std::int64_t>(blocks.size());
      share(count, 1, [&](std::int64_t begin, std::int64_t end) {
        const Values values = block_values();
        for (std::int64_t b = begin; b < end; ++b)
          reduce_block(blocks[b], values.get(), partial.get() + b * row_bytes);
      });
      for (std::int64_t b = 0; b < count; ++b) cascade.add_row(partial.get() + b * row_bytes);
    }
    cascade.finish(partial.get());
    Extents dense(places.size(), 1);
    for (std::size_t d = places.size(); d-- > 1;) dense[d - 1] = dense[d] * places[d];
    copy_strided(out_ + offset * static_cast<std::int64_t>(item), place_strides, partial.get(), dense,
                 Shape(std::move(places)), item);
  }

  using Values = std::unique_ptr<std::byte[]>;
  Values block_values() const {
    return Values(new std::byte[static_cast<std::size_t>(product(block_)) * itemsize(chain_dtype_)]);
  }

  // Whether all squares of one dense operand are summed: then no square is written.
  bool sums_squares() const {
    if (program_.steps.size() != 1 || program_.inputs.size() != 1 || kind_ != ReduceKind::sum) return false;
    const auto& step = program_.steps[0];
    const bool is_real = chain_dtype_ == float32 || chain_dtype_ == float64;
    return is_real && step.n_in == 1 && step.fn == map<"square">.of(chain_dtype_) &&
           program_.inputs[0].dtype == chain_dtype_ && program_.outputs[0] == 1 && is_dense(0) &&
           reduces_all();
  }

  // Whether the program is where(isnan(x), -infinity, x) of dense x and the largest element is wanted (or
  // +infinity and the smallest): comparisons ignore NaN without the chain. Returns x, else -1.
  int operand_without_nan() const {
    const bool is_max = kind_ == ReduceKind::max;
    const bool is_real = chain_dtype_ == float32 || chain_dtype_ == float64;
    if (!(is_max || kind_ == ReduceKind::min) || !is_real || program_.steps.size() != 2) return -1;
    const auto n = static_cast<int>(program_.inputs.size());
    const auto &test = program_.steps[0], &choice = program_.steps[1];
    if (n != 2 || test.n_in != 1 || choice.n_in != 3 || program_.outputs[0] != n + 1) return -1;
    const int x = test.in[0], instead = choice.in[1];
    if (x == instead || x >= n || instead >= n || choice.in[0] != n || choice.in[2] != x) return -1;
    if (test.fn != map<"isnan">.of(chain_dtype_) || choice.fn != map<"where">.of(chain_dtype_)) return -1;
    return is_dense(x) && is_infinity(instead, is_max) ? x : -1;
  }
  // Over all dims or over rows.
  bool is_extreme_without_nan() const { return are_rows() && operand_without_nan() >= 0; }
  // Over neighbouring dims before others: computes the result.
  bool is_extreme_of_columns() const {
    const auto first = std::ranges::find(reduced_, true), rest = std::find(first, reduced_.end(), false);
    if (rest == reduced_.end() || std::find(rest, reduced_.end(), true) != reduced_.end()) return false;
    const int x = operand_without_nan();
    if (x < 0) return false;
    const auto before = static_cast<std::size_t>(first - reduced_.begin());
    const auto until = static_cast<std::size_t>(rest - reduced_.begin());
    std::int64_t outer = 1, rows = 1, columns = 1;
    for (std::size_t d = 0; d < shape_.size(); ++d)
      (d < before ? outer : d < until ? rows : columns) *= shape_[d];
    extreme_numbers_of_columns(kind_ == ReduceKind::max, chain_dtype_,
                               inputs_[static_cast<std::size_t>(x)].data, {outer, rows, columns}, out_);
    return true;
  }
  // Whether conj(a) b of two dense operands is summed over all dims.
  bool sums_conjugate_products() const {
    const bool is_wanted = kind_ == ReduceKind::sum && is_complex(chain_dtype_) && reduces_all();
    if (!is_wanted || program_.steps.size() != 2 || program_.inputs.size() != 2 || program_.outputs[0] != 3)
      return false;
    const auto &conjugate = program_.steps[0], &product = program_.steps[1];
    const int a = conjugate.in[0], other = product.in[0] == 2 ? product.in[1] : product.in[0];
    return conjugate.fn == map<"conj">.of(chain_dtype_) && product.fn == map<"multiply">.of(chain_dtype_) &&
           (product.in[0] == 2) != (product.in[1] == 2) && other == 1 - a && is_dense(0) && is_dense(1);
  }
  bool is_dense(int input) const {
    const auto& operand = inputs_[static_cast<std::size_t>(input)];
    return operand.parts.empty() && (operand.strides.empty() || std::ranges::equal(operand.strides, dense_));
  }
  bool is_infinity(int input, bool negative) const {
    const auto& operand = inputs_[static_cast<std::size_t>(input)];
    const auto is_zero = [](std::int64_t stride) { return stride == 0; };
    if (operand.parts.empty() && std::ranges::all_of(operand.strides, is_zero) &&
        operand.strides.size() == shape_.size() &&
        program_.inputs[static_cast<std::size_t>(input)].dtype == chain_dtype_)
      return visit(chain_dtype_, [&]<class T>(T) {
        T value{};
        std::memcpy(&value, operand.data, sizeof value);
        return value == (negative ? lowest<T>() : highest<T>());
      });
    return false;
  }
  bool reduces_all() const { return std::find(reduced_.begin(), reduced_.end(), false) == reduced_.end(); }
  bool are_rows() const { return reduces_all() || (shape_.ndim() == 2 && !reduced_[0]); }
  // The block at a position of a dense operand.
  const std::byte* begin_of(int input, const Extents& at) const {
    std::int64_t first = 0;
    for (std::size_t d = 0; d < at.size(); ++d) first += at[d] * dense_[d];
    return inputs_[static_cast<std::size_t>(input)].data +
           first * static_cast<std::int64_t>(itemsize(chain_dtype_));
  }
  void reduce_directly(const Extents& at, std::byte* partial) const {
    const Extents block = block_at(at);
    const int x = program_.steps[0].in[0];
    const std::byte* const begin = begin_of(x, at);
    if (shortcut_ == Shortcut::squares)
      return sum_squares_of_rows(chain_dtype_, begin, 1, product(block), partial);
    if (shortcut_ == Shortcut::conjugate_products)
      return sum_conjugate_products(chain_dtype_, begin, begin_of(1 - x, at), product(block), partial);
    const auto item = static_cast<std::int64_t>(itemsize(chain_dtype_));
    const std::int64_t rows = at.size() == 2 && !reduced_[0] ? block[0] : 1;
    for (std::int64_t r = 0; r < rows; ++r)
      extreme_number_of_row(kind_ == ReduceKind::max, chain_dtype_,
                            begin + (rows > 1 ? r * dense_[0] * item : 0), product(block) / rows,
                            partial + r * item);
  }

  void reduce_block(const Extents& at, std::byte* block_values, std::byte* partial) const {
    if (shortcut_ != Shortcut::none) return reduce_directly(at, partial);
    const Shape extents(block_at(at));
    run_block(program_, inputs_, dense_, at, extents, block_values);
    reduce(kind_, chain_dtype_, block_values, extents, axes_, partial);
  }

  // Programs that one pass over their operands reduces without the chain.
  enum class Shortcut { none, squares, numbers, conjugate_products };

  const FusedProgram& program_;
  const Shape& shape_;
  std::span<const FusedOperand> inputs_;
  ReduceKind kind_;
  const std::vector<int>& axes_;
  std::byte* out_;
  std::vector<bool> reduced_;
  Extents dense_, block_;
  Dtype chain_dtype_, result_dtype_;
  Shortcut shortcut_ = Shortcut::none;
};

}  // namespace

void run_fused_reduce(const FusedProgram& program, const Shape& shape, std::span<const FusedOperand> inputs,
                      ReduceKind kind, const std::vector<int>& axes, std::byte* out) {
  // An empty operand has no blocks; reduce() returns the identity.
  if (shape.elements() == 0) return reduce(kind, output_dtype(program), nullptr, shape, axes, out);
  FusedReduce(program, shape, inputs, kind, axes, out).run();
}

}  // namespace tessera::kernels
