// Collectives in plain loops, with every rank's value in one process. Independent of the library except for
// Shape.
#pragma once
#include <tessera/shape.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace simulator {

using tessera::Shape;

struct Value {
  std::vector<std::int64_t> shape;
  std::vector<double> data;  // row-major
  std::int64_t size() const {
    std::int64_t n = 1;
    for (const auto e : shape) n *= e;
    return n;
  }
};
inline Value zeros(std::vector<std::int64_t> shape) {
  Value v{std::move(shape), {}};
  v.data.assign(v.size(), 0.0);
  return v;
}

// Calls visit(index) for every multi-index of the shape.
inline void for_each(const std::vector<std::int64_t>& shape,
                     const std::function<void(const std::vector<std::int64_t>&)>& visit) {
  std::vector<std::int64_t> index(shape.size(), 0);
  std::int64_t n = 1;
  for (const auto e : shape) n *= e;
  for (std::int64_t flat = 0; flat < n; ++flat) {
    std::int64_t rest = flat;
    for (std::size_t d = shape.size(); d-- > 0;) index[d] = rest % shape[d], rest /= shape[d];
    visit(index);
  }
}
inline double& at(Value& v, const std::vector<std::int64_t>& index) {
  std::int64_t flat = 0;
  for (std::size_t d = 0; d < index.size(); ++d) flat = flat * v.shape[d] + index[d];
  return v.data[flat];
}
inline double at(const Value& v, const std::vector<std::int64_t>& index) {
  return at(const_cast<Value&>(v), index);
}

using PerRank = std::vector<Value>;
// For each rank, the ranks of its group in order.
using Members = std::vector<std::vector<int>>;

// Groups of a mesh along some of its axes (numbers, first major), cut further by axis_index_groups.
inline Members members_along(const std::vector<int>& sizes, const std::vector<int>& axes,
                             const std::vector<std::vector<int>>& groups = {}) {
  int ranks = 1;
  for (const int s : sizes) ranks *= s;
  const auto coords = [&](int rank) {
    std::vector<int> c(sizes.size());
    for (std::size_t d = sizes.size(); d-- > 0;) c[d] = rank % sizes[d], rank /= sizes[d];
    return c;
  };
  const auto number = [&](int rank) {
    int n = 0;
    for (const int a : axes) n = n * sizes[a] + coords(rank)[a];
    return n;
  };
  Members members;
  for (int r = 0; r < ranks; ++r) {
    std::vector<int> same;
    for (int q = 0; q < ranks; ++q) {
      bool differs = false;
      for (std::size_t d = 0; d < sizes.size(); ++d)
        if (coords(q)[d] != coords(r)[d] &&
            std::find(axes.begin(), axes.end(), static_cast<int>(d)) == axes.end())
          differs = true;
      if (!differs) same.push_back(q);
    }
    std::sort(same.begin(), same.end(), [&](int a, int b) { return number(a) < number(b); });
    if (!groups.empty()) {
      std::vector<int> mine;
      for (const auto& group : groups)
        if (std::find(group.begin(), group.end(), number(r)) != group.end())
          for (const int g : group) mine.push_back(same[g]);
      same = mine;
    }
    members.push_back(same);
  }
  return members;
}

inline int place(const Members& members, int rank) {
  const auto& list = members[rank];
  return static_cast<int>(std::find(list.begin(), list.end(), rank) - list.begin());
}

inline PerRank reduce(const PerRank& x, const Members& members,
                      const std::function<double(double, double)>& op) {
  PerRank out;
  for (std::size_t r = 0; r < x.size(); ++r) {
    Value v = x[members[r][0]];
    for (std::size_t m = 1; m < members[r].size(); ++m)
      for (std::size_t i = 0; i < v.data.size(); ++i) v.data[i] = op(v.data[i], x[members[r][m]].data[i]);
    out.push_back(v);
  }
  return out;
}

inline PerRank all_gather(const PerRank& x, const Members& members, int axis, bool tiled) {
  PerRank out;
  const auto d = static_cast<std::size_t>(axis);
  for (std::size_t r = 0; r < x.size(); ++r) {
    auto shape = x[r].shape;
    const auto p = static_cast<std::int64_t>(members[r].size());
    if (tiled)
      shape[d] *= p;
    else
      shape.insert(shape.begin() + axis, p);
    Value v = zeros(shape);
    for (std::int64_t m = 0; m < p; ++m) {
      const Value& from = x[members[r][m]];
      for_each(from.shape, [&](const std::vector<std::int64_t>& index) {
        auto to = index;
        if (tiled)
          to[d] += m * from.shape[d];
        else
          to.insert(to.begin() + axis, m);
        at(v, to) = at(from, index);
      });
    }
    out.push_back(v);
  }
  return out;
}

inline PerRank psum_scatter(const PerRank& x, const Members& members, int axis, bool tiled) {
  const auto total = reduce(x, members, [](double a, double b) { return a + b; });
  const auto d = static_cast<std::size_t>(axis);
  PerRank out;
  for (std::size_t r = 0; r < x.size(); ++r) {
    auto shape = x[r].shape;
    const auto n = shape[d] / static_cast<std::int64_t>(members[r].size());
    shape[d] = n;
    Value v = zeros(shape);
    for_each(shape, [&](const std::vector<std::int64_t>& index) {
      auto from = index;
      from[d] += place(members, static_cast<int>(r)) * n;
      at(v, index) = at(total[r], from);
    });
    if (!tiled) v.shape.erase(v.shape.begin() + axis);
    out.push_back(v);
  }
  return out;
}

// By definition: rank r receives from member m the r-th block along `split`; blocks are concatenated along
// `concat` in the order of members.
inline PerRank all_to_all(const PerRank& x, const Members& members, int split, int concat, bool tiled) {
  PerRank out;
  for (std::size_t r = 0; r < x.size(); ++r) {
    const auto p = static_cast<std::int64_t>(members[r].size());
    const int me = place(members, static_cast<int>(r));
    auto shape = x[r].shape;
    if (tiled) {
      shape[split] /= p;
      const auto block = shape;
      shape[concat] *= p;
      Value v = zeros(shape);
      for (std::int64_t m = 0; m < p; ++m)
        for_each(block, [&](const std::vector<std::int64_t>& index) {
          auto from = index, to = index;
          from[split] += me * block[split];
          to[concat] += m * block[concat];
          at(v, to) = at(x[members[r][m]], from);
        });
      out.push_back(v);
    } else {
      shape.erase(shape.begin() + split);
      shape.insert(shape.begin() + concat, p);
      Value v = zeros(shape);
      for_each(shape, [&](const std::vector<std::int64_t>& index) {
        auto from = index;
        const auto m = from[concat];
        from.erase(from.begin() + concat);
        from.insert(from.begin() + split, me);
        at(v, index) = at(x[members[r][m]], from);
      });
      out.push_back(v);
    }
  }
  return out;
}

inline PerRank ppermute(const PerRank& x, const Members& members,
                        const std::vector<std::pair<int, int>>& pairs) {
  PerRank out;
  for (std::size_t r = 0; r < x.size(); ++r) {
    Value v = zeros(x[r].shape);
    for (const auto& [source, destination] : pairs)
      if (destination == place(members, static_cast<int>(r))) v = x[members[r][source]];
    out.push_back(v);
  }
  return out;
}

}  // namespace simulator
