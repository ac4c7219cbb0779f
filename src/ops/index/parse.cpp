#include "ops/index/parse.hpp"

#include <algorithm>

#include "base/text.hpp"
#include "ops/build.hpp"
#include "ops/functions.hpp"
#include "ops/index/slice_range.hpp"

namespace tessera {
namespace {

class Parser {
 public:
  explicit Parser(const Shape& shape) : shape_(shape) {}

  ParsedIndex run(std::vector<IndexPart> parts) {
    parts = with_ellipsis_expanded(std::move(parts));
    Shape& extents = result_.shape;
    std::vector<std::size_t> advanced;  // positions among the parts
    std::vector<int> dims_before;       // number of result dims before each part
    std::size_t d = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const auto& part = parts[i];
      dims_before.push_back(static_cast<int>(extents.size()));
      if (part.kind == IndexPart::Kind::ellipsis) continue;
      if (part.kind == IndexPart::Kind::newaxis) {
        extents.push_back(1);
        continue;
      }
      if (part.kind == IndexPart::Kind::integer) {
        take_integer(part.integer, static_cast<int>(d));
        advanced.push_back(i);
      } else if (part.kind == IndexPart::Kind::slice) {
        take_slice(part.slice, static_cast<int>(d));
        extents.push_back(result_.count[d]);
      } else {
        take_array(part.array, static_cast<int>(d));
        result_.array_dims.push_back(static_cast<int>(extents.size()));
        advanced.push_back(i);
        extents.push_back(shape_[d]);
      }
      ++d;
    }
    if (!result_.arrays.empty()) {
      // NumPy: adjacent index arrays and integers put their dims in place, separated ones in front.
      const bool side_by_side = advanced.back() - advanced.front() + 1 == advanced.size();
      result_.arrays_at = side_by_side ? dims_before[advanced.front()] : 0;
      broadcast_arrays();
    }
    return std::move(result_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { throw IndexError(call_text() + ": " + why); }

  std::vector<IndexPart> with_ellipsis_expanded(std::vector<IndexPart> parts) const {
    int used = 0, ellipses = 0;
    for (const auto& part : parts) {
      used += part.kind != IndexPart::Kind::newaxis && part.kind != IndexPart::Kind::ellipsis;
      ellipses += part.kind == IndexPart::Kind::ellipsis;
    }
    if (ellipses > 1) refuse("an index may contain only one ellipsis");
    if (used > shape_.ndim())
      refuse("too many indices: " + std::to_string(used) + " for an array of " +
             format_count(shape_.ndim(), "dimension") + ", shape " + to_string(shape_));
    const bool stands_for_none =
        used == shape_.ndim();  // kept even if empty: parts on both sides are not adjacent
    if (ellipses == 0 && stands_for_none) return parts;
    if (ellipses == 0) parts.emplace_back(ellipsis);
    std::vector<IndexPart> expanded;
    for (auto& part : parts) {
      if (part.kind != IndexPart::Kind::ellipsis || stands_for_none)
        expanded.push_back(std::move(part));
      else
        expanded.insert(expanded.end(), shape_.ndim() - used, IndexPart(slice()));
    }
    return expanded;
  }

  void add(std::int64_t start, std::int64_t step, std::int64_t count, std::int64_t extent) {
    result_.start.push_back(start);
    result_.step.push_back(step);
    result_.count.push_back(count);
    result_.takes_everything &= start == 0 && step == 1 && count == extent;
  }

  void take_integer(std::int64_t i, int d) {
    const auto n = shape_[d];
    if (i < -n || i >= n)
      refuse("index " + std::to_string(i) + " is out of bounds for dimension " + std::to_string(d) +
             " of shape " + to_string(shape_) +
             (n == 0 ? ", which is empty"
                     : "; it must be in [" + std::to_string(-n) + ", " + std::to_string(n) + ")"));
    result_.integer_dims.push_back(d);
    add(i < 0 ? i + n : i, 1, 1, n);
  }

  void take_slice(const Slice& s, int d) {
    const auto n = shape_[d];
    if (s.step == 0)
      refuse("the step of the slice of dimension " + std::to_string(d) +
             " is 0; use a step that goes from start to stop");
    const auto range = range_of(s, n);
    add(range.start, range.step, range.count, n);
  }

  void take_array(const Array& indices, int d) {
    check_usable(indices);
    if (is_bool(indices.dtype()))
      refuse(
          "an index array of bool selects a number of elements that depends on its values, so the shape of "
          "the result is not known. Use "
          "where(mask, a, b), or at(mask).set(value)");
    if (!is_integer(indices.dtype()))
      refuse("an index array must hold integers, not " + name(indices.dtype()) +
             "; convert it with astype(i, int32)");
    const auto n = shape_[d];
    if (n == 0 && indices.size() > 0)
      refuse("dimension " + std::to_string(d) + " of shape " + to_string(shape_) +
             " is empty: there is nothing to index");
    result_.arrays.push_back(indices);
    add(0, 1, n, n);
  }

  void broadcast_arrays() {
    Shape common;
    for (const auto& a : result_.arrays) common = broadcast_shapes(common, a.shape());
    for (auto& a : result_.arrays) a = broadcast_to(a, common);
  }

  const Shape& shape_;
  ParsedIndex result_;
};

}  // namespace

ParsedIndex parse_index(const Shape& shape, std::vector<IndexPart> parts) {
  return Parser(shape).run(std::move(parts));
}

}  // namespace tessera
