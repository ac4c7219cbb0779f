#include "ops/fourier/line_plan.hpp"

#include <algorithm>
#include <cmath>

#include "base/rates.hpp"
#include "mesh/reshard.hpp"

namespace tessera {
namespace {

using kernels::FftKind;

constexpr std::int64_t collected_bytes =
    32768;  // a line of this size is faster on one rank than three exchanges

// The largest divisor of n not above its square root.
std::int64_t middle_divisor(std::int64_t n) {
  for (auto d = static_cast<std::int64_t>(std::sqrt(static_cast<double>(n))) + 1; d > 1; --d)
    if (n % d == 0 && d * d <= n) return d;
  return 1;
}

// The smallest 2^a, 3 * 2^a, 5 * 2^a, 9 * 2^a or 15 * 2^a that is at least n.
std::int64_t smooth_length(std::int64_t n) {
  std::int64_t best = 0;
  for (const std::int64_t odd : {1, 3, 5, 9, 15}) {
    std::int64_t length = odd;
    while (length < n) length *= 2;
    if (best == 0 || length < best) best = length;
  }
  return best;
}

}  // namespace

LinePlan plan_line(const LineParams& p, std::int64_t extent, std::int64_t batch, int ranks,
                   std::size_t complex_bytes) {
  LinePlan plan;
  plan.points = p.kind == FftKind::c2r ? p.length : extent;
  plan.in_points = extent;
  plan.out_points = p.kind == FftKind::r2c ? extent / 2 + 1 : plan.points;
  plan.ranks = ranks;
  plan.batch = batch;
  if (plan.points * batch * static_cast<std::int64_t>(complex_bytes) <= collected_bytes) {
    plan.method = LineMethod::collect;
    return plan;
  }
  plan.rows = middle_divisor(plan.points);
  plan.columns = plan.points / plan.rows;
  if (ranks > 1 && (plan.rows == 1 || plan.rows * 2 < ranks)) {
    plan.method = LineMethod::chirp;
    const auto padded = smooth_length(2 * plan.points - 1);
    plan.rows = middle_divisor(padded);
    plan.columns = padded / plan.rows;
  }
  return plan;
}

std::vector<Patch> patches(Range block, std::int64_t width, Range columns) {
  std::vector<Patch> result;
  const auto add = [&](std::int64_t row, std::int64_t row_end, std::int64_t from, std::int64_t to) {
    const Patch patch{{row, row_end}, {std::max(from, columns.start), std::min(to, columns.stop)}};
    if (patch.rows.size() > 0 && patch.columns.size() > 0) result.push_back(patch);
  };
  if (block.size() <= 0) return result;
  const auto first = block.start / width, last = (block.stop - 1) / width;
  if (first == last) {
    add(first, first + 1, block.start - first * width, block.stop - first * width);
    return result;
  }
  const bool starts_whole = block.start % width == 0, ends_whole = block.stop % width == 0;
  if (!starts_whole) add(first, first + 1, block.start - first * width, width);
  add(starts_whole ? first : first + 1, ends_whole ? last + 1 : last, 0, width);
  if (!ends_whole) add(last, last + 1, 0, block.stop - last * width);
  return result;
}

LineParams line_params(const FftParams& p, int dim) {
  const bool halved = p.kind != FftKind::c2c && dim == p.dims.back();
  return {halved ? p.kind : FftKind::c2c, p.sign, dim, halved ? p.length : 0, 1};
}

LineCost line_cost(const LineParams& p, const Type& in, const Sharding& layout, const std::vector<int>&) {
  const auto dim = static_cast<std::size_t>(p.dim);
  const auto axes = layout.dim_axes(in.shape.ndim())[dim];
  const auto ranks = static_cast<int>(devices_along(layout.mesh(), axes));
  auto block = layout.shard_shape(in.shape);
  block[dim] = 1;
  const auto bytes = itemsize(complex_dtype(in.dtype));
  const LinePlan plan = plan_line(p, in.shape[dim], block.elements(), ranks, bytes);
  // The elements that the busiest rank receives in an exchange.
  const auto busiest = [&](auto&& received_by) {
    std::int64_t most = 0;
    for (int q = 0; q < ranks; ++q) most = std::max(most, received_by(q));
    return most * plan.batch * static_cast<std::int64_t>(bytes);
  };
  const auto overlap = [](const std::vector<Patch>& list) {
    std::int64_t elements = 0;
    for (const auto& patch : list) elements += patch.elements();
    return elements;
  };
  std::vector<std::int64_t> exchanges;
  if (plan.method == LineMethod::collect) {
    exchanges.push_back(
        busiest([&](int q) { return q == 0 ? plan.in_points - plan.in_block(0).size() : 0; }));
    exchanges.push_back(busiest([&](int q) { return q == 0 ? 0 : plan.out_block(q).size(); }));
  } else {
    const auto to_columns = busiest([&](int q) {
      return overlap(patches({0, plan.in_points}, plan.columns, plan.my_columns(q))) -
             overlap(patches(plan.in_block(q), plan.columns, plan.my_columns(q)));
    });
    const auto to_rows =
        busiest([&](int q) { return plan.my_rows(q).size() * (plan.columns - plan.my_columns(q).size()); });
    exchanges = {to_columns, to_rows};
    if (plan.method == LineMethod::six_steps) {
      exchanges.push_back(busiest([&](int q) {
        return plan.out_block(q).size() - overlap(patches(plan.out_block(q), plan.rows, plan.my_rows(q)));
      }));
    } else {
      exchanges.push_back(to_rows / std::max<std::int64_t>(1, plan.batch));  // the chirp's own transform
      exchanges.push_back(
          busiest([&](int q) { return plan.my_columns(q).size() * (plan.rows - plan.my_rows(q).size()); }));
      exchanges.push_back(busiest([&](int q) {
        return plan.out_block(q).size() -
               overlap(patches(plan.out_block(q), plan.columns, plan.my_columns(q)));
      }));
    }
  }
  LineCost cost;
  std::int64_t total = 0;
  for (const auto e : exchanges) {
    total += e;
    cost.seconds += rates().inside.latency_s * (ranks - 1) +
                    static_cast<double>(e) * 2 / rates().inside.bytes_per_s;  // strided packing on both sides
  }
  cost.communication = {{"all-to-all", axes, total, static_cast<std::int64_t>(exchanges.size())}};
  return cost;
}

}  // namespace tessera
