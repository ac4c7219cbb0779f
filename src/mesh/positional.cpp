#include <tessera/error.hpp>
#include <tessera/sharding.hpp>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "mesh/mesh_impl.hpp"
#include "mesh/text.hpp"

namespace tessera {
namespace {

int total(const std::vector<int>& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>());
}

std::vector<int> row_major_strides(const std::vector<int>& sizes) {
  std::vector<int> strides(sizes.size());
  int stride = 1;
  for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d]) strides[d] = stride;
  return strides;
}

// One mesh axis found in the grid of devices: each of its `size` steps advances by `stride` positions in the
// order of devices, and by `weight` along `dim` of the grid.
struct Step {
  int stride, size;
  std::size_t dim;
  int weight = 1;
};

// The steps, minor first, that generate `values` (positions in the base order, from one corner along one
// dim); empty if there are none.
std::vector<Step> steps_along(const std::vector<int>& values, std::size_t dim) {
  std::vector<Step> steps;
  const int n = static_cast<int>(values.size());
  for (int walked = 1; walked < n;) {
    const int stride = values[walked] - values[0];
    int times = 1;
    while (walked * times < n && values[walked * times] - values[0] == stride * times) ++times;
    while ((n / walked) % times != 0) --times;
    if (times < 2) return {};
    steps.push_back({stride, times, dim, walked});
    walked *= times;
  }
  return steps;
}

void append_text(std::string& text, const std::vector<int>& sizes, const std::vector<std::vector<int>>& sets,
                 std::size_t depth, std::size_t& next) {
  if (depth == sizes.size()) {
    auto ids = sets[next++];
    std::sort(ids.begin(), ids.end());
    text += "{";
    for (std::size_t i = 0; i < ids.size(); ++i) text += (i ? " " : "") + std::to_string(ids[i]);
    text += "}";
    return;
  }
  text += "[";
  for (int i = 0; i < sizes[depth]; ++i) {
    text += i ? " " : "";
    append_text(text, sizes, sets, depth + 1, next);
  }
  text += "]";
}

}  // namespace

PositionalSharding::PositionalSharding(NdDevices devices)
    : base_(std::vector<int>{static_cast<int>(devices.ids().size())}, devices.ids()),
      sizes_(devices.sizes()) {
  base_.abstract_ = devices.is_abstract();
  [[maybe_unused]] const Mesh checked(base_, {"_"});  // refuses unknown and repeated devices
  for (int id : base_.ids()) sets_.push_back({id});
}
PositionalSharding::PositionalSharding(const std::vector<Device>& devices)
    : PositionalSharding(NdDevices(devices)) {}

Shape PositionalSharding::shape() const {
  return Shape(std::vector<std::int64_t>(sizes_.begin(), sizes_.end()));
}
int PositionalSharding::ndim() const { return static_cast<int>(sizes_.size()); }

PositionalSharding PositionalSharding::reshape(std::vector<int> sizes) const {
  const int count = static_cast<int>(sets_.size());
  const auto open = std::count(sizes.begin(), sizes.end(), -1);
  const auto refuse = [&](const std::string& why) {
    throw ShardingError("PositionalSharding::reshape: " + to_text(*this) + " of shape " + listed(sizes_) +
                        " cannot become " + listed(sizes) + ": " + why);
  };
  if (open > 1) refuse("only one size can be -1");
  if (std::any_of(sizes.begin(), sizes.end(), [](int size) { return size < 1 && size != -1; }))
    refuse("sizes are 1 or more, or -1 once");
  const int known = total(sizes) * (open == 1 ? -1 : 1);
  if (open == 1 ? count % known != 0 : count != known)
    refuse("it has " + std::to_string(count) + " device sets, the sizes ask for " +
           (open == 1 ? "a multiple of " : "") + std::to_string(known));
  auto reshaped = *this;
  for (auto& size : sizes)
    if (size == -1) size = count / known;
  reshaped.sizes_ = std::move(sizes);
  return reshaped;
}

PositionalSharding PositionalSharding::T() const {
  std::vector<int> reversed(sizes_.size());
  std::iota(reversed.rbegin(), reversed.rend(), 0);
  return transpose(std::move(reversed));
}

PositionalSharding PositionalSharding::transpose(std::vector<int> permutation) const {
  auto sorted = permutation;
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t d = 0; d < std::max(sorted.size(), sizes_.size()); ++d)
    if (sorted.size() != sizes_.size() || sorted[d] != static_cast<int>(d))
      throw ShardingError("PositionalSharding::transpose: " + listed(permutation) +
                          " is not a permutation of the " + counted(sizes_.size(), "dimension") + " of " +
                          to_text(*this));
  auto transposed = *this;
  const auto from_strides = row_major_strides(sizes_);
  for (std::size_t d = 0; d < sizes_.size(); ++d) transposed.sizes_[d] = sizes_[permutation[d]];
  const auto to_strides = row_major_strides(transposed.sizes_);
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    int from = 0;
    for (std::size_t d = 0; d < sizes_.size(); ++d)
      from += static_cast<int>(i) / to_strides[d] % transposed.sizes_[d] * from_strides[permutation[d]];
    transposed.sets_[i] = sets_[from];
  }
  return transposed;
}

PositionalSharding PositionalSharding::replicate() const {
  auto replicated = *this;
  replicated.sizes_.assign(sizes_.size(), 1);
  replicated.sets_ = {base_.ids()};
  return replicated;
}

PositionalSharding PositionalSharding::replicate(int axis, bool keepdims) const {
  const int from_front = axis < 0 ? axis + ndim() : axis;
  if (from_front < 0 || from_front >= ndim())
    throw ShardingError("PositionalSharding::replicate: axis " + std::to_string(axis) +
                        " is out of range for " + to_text(*this) + ", which has " +
                        counted(sizes_.size(), "dimension"));
  const auto d = static_cast<std::size_t>(from_front);
  const int stride = row_major_strides(sizes_)[d], joined = sizes_[d];
  auto replicated = *this;
  replicated.sizes_[d] = 1;
  if (!keepdims) replicated.sizes_.erase(replicated.sizes_.begin() + from_front);
  replicated.sets_.assign(sets_.size() / static_cast<std::size_t>(joined), {});
  const Mesh base(base_, {"_"});
  for (std::size_t i = 0; i < sets_.size(); ++i) {
    const int at = static_cast<int>(i);
    auto& set = replicated.sets_[at / (stride * joined) * stride + at % stride];
    set.insert(set.end(), sets_[i].begin(), sets_[i].end());
  }
  for (auto& set : replicated.sets_)
    std::sort(set.begin(), set.end(), [&](int a, int b) { return base.position(a) < base.position(b); });
  return replicated;
}

namespace {

// Reshape, T and replicate keep the device order of the base list, so that arrays under all of them can be
// mixed. The grid is described by axes of the base order if possible,
//   [0 1 2 3].reshape(2, 2).T() = [[0 2] [1 3]]   =>   Mesh('_1': 2, '_0': 2) over 0 1 2 3, P('_0', '_1')
// otherwise over the grid's own order (e.g. reshape(2, 3).T().reshape(2, 3)).
//
// positions: of every device in the base order, row-major over `sizes`; the last size is that of the device
// sets. Returns the mesh axes, major first; empty if no axes of the base order describe the grid.
std::vector<Step> axes_of_base_order(const std::vector<int>& positions, const std::vector<int>& sizes) {
  const auto strides = row_major_strides(sizes);
  std::vector<Step> steps;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int> along;
    for (int i = 0; i < sizes[d]; ++i) along.push_back(positions[i * strides[d]]);
    for (const auto& step : steps_along(along, d)) steps.push_back(step);
  }
  for (std::size_t i = 0; i < positions.size(); ++i) {
    int walked = 0;
    std::vector<int> left(sizes.size());
    for (std::size_t d = 0; d < sizes.size(); ++d) left[d] = static_cast<int>(i) / strides[d] % sizes[d];
    for (const auto& step : steps) {
      walked += left[step.dim] % step.size * step.stride;
      left[step.dim] /= step.size;
    }
    if (walked != positions[i]) return {};
  }
  std::stable_sort(steps.begin(), steps.end(),
                   [](const Step& a, const Step& b) { return a.stride > b.stride; });
  int covered = static_cast<int>(positions.size());
  for (const auto& step : steps) {
    if (step.stride * step.size != covered) return {};
    covered = step.stride;
  }
  return steps;
}

std::vector<Step> axes_of_own_order(const std::vector<int>& sizes) {
  const auto strides = row_major_strides(sizes);
  std::vector<Step> axes;
  for (std::size_t d = 0; d < sizes.size(); ++d)
    if (sizes[d] > 1) axes.push_back({strides[d], sizes[d], d});
  return axes;
}

}  // namespace

std::pair<Mesh, std::vector<std::vector<int>>> PositionalSharding::as_mesh() const {
  const Mesh base(base_, {"_"});
  auto sizes = sizes_;
  sizes.push_back(static_cast<int>(sets_[0].size()));
  std::vector<int> ids, positions;
  for (const auto& set : sets_)
    for (int id : set) {
      ids.push_back(id);
      positions.push_back(base.position(id));
    }
  auto axes = axes_of_base_order(positions, sizes);
  if (axes.empty())
    axes = axes_of_own_order(sizes);
  else
    ids = base_.ids();

  std::vector<int> mesh_sizes;
  std::vector<std::string> names;
  std::vector<std::vector<int>> dim_axes(sizes.size());
  for (const auto& axis : axes) {
    auto& of_dim = dim_axes[axis.dim];
    const std::string name = axis.dim == sizes_.size() ? "_replica" : "_" + std::to_string(axis.dim);
    names.push_back(of_dim.empty() ? name : name + "_" + std::to_string(of_dim.size()));
    mesh_sizes.push_back(axis.size);
    of_dim.push_back(static_cast<int>(names.size()) - 1);
  }
  // Among the axes that split a dim, the one with the largest step in it is the major one.
  for (std::size_t d = 0; d < sizes_.size(); ++d)
    std::sort(dim_axes[d].begin(), dim_axes[d].end(),
              [&](int a, int b) { return axes[a].weight > axes[b].weight; });
  dim_axes.pop_back();
  NdDevices grid(std::move(mesh_sizes), std::move(ids));
  grid.abstract_ = base_.is_abstract();
  return {Mesh(std::move(grid), std::move(names), {}), std::move(dim_axes)};
}

bool operator==(const PositionalSharding& a, const PositionalSharding& b) {
  return a.sizes_ == b.sizes_ && a.sets_ == b.sets_ && a.base_.ids() == b.base_.ids() &&
         a.base_.is_abstract() == b.base_.is_abstract();
}

std::string to_text(const PositionalSharding& sharding) {
  std::string text;
  std::size_t next = 0;
  std::vector<int> sizes;
  for (auto extent : sharding.shape()) sizes.push_back(static_cast<int>(extent));
  append_text(text, sizes, sharding.device_sets(), 0, next);
  return text;
}
std::ostream& operator<<(std::ostream& out, const PositionalSharding& sharding) {
  return out << to_text(sharding);
}

}  // namespace tessera
