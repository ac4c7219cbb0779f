// Runs a collective in shard_map on an array [ranks, ...] with every rank's values, and returns the results
// as an array [ranks, ...].
#pragma once
#include <gtest/gtest.h>

#include <tessera/collectives.hpp>
#include <tessera/maps.hpp>
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <numeric>

#include "simulator.hpp"

namespace over_ranks {

using namespace tessera;
using simulator::Members;
using simulator::PerRank;
using simulator::Value;

// Meshes of 1, 2 and 3 axes over all ranks, for every factorization of their number.
inline std::vector<Mesh> meshes() {
  const int p = device_count();
  std::vector<Mesh> all = {make_mesh({p}, {"x"})};
  for (int a = 1; a <= p; ++a) {
    if (p % a != 0) continue;
    all.push_back(make_mesh({a, p / a}, {"x", "y"}));
    for (int b = 1; b <= p / a; ++b)
      if (p / a % b == 0 && (a > 1 || p == 1) && (b > 1 || p < 4))
        all.push_back(make_mesh({a, b, p / a / b}, {"x", "y", "z"}));
  }
  return all;
}

// The axes over which a collective is tested: each one, and pairs in both orders.
inline std::vector<std::vector<std::string>> axis_choices(const Mesh& mesh) {
  std::vector<std::vector<std::string>> choices;
  const auto names = mesh.axis_names();
  for (const auto& a : names) choices.push_back({a});
  for (const auto& a : names)
    for (const auto& b : names)
      if (a != b) choices.push_back({a, b});
  if (names.size() == 3) choices.push_back({"z", "x", "y"});
  return choices;
}
inline AxisName axis_of(const std::vector<std::string>& names) { return AxisName(DimSpec(names)); }
inline Members members_of(const Mesh& mesh, const std::vector<std::string>& names,
                          const Groups& groups = {}) {
  std::vector<int> axes;
  for (const auto& n : names) axes.push_back(mesh.axis_number(n));
  return simulator::members_along(mesh.axis_sizes(), axes, groups);
}
inline int size_along(const Mesh& mesh, const std::vector<std::string>& names) {
  int n = 1;
  for (const auto& name : names) n *= mesh.axis_size(name);
  return n;
}

// Small integers that differ by rank and position.
inline PerRank values(int ranks, std::vector<std::int64_t> shape) {
  PerRank all;
  for (int r = 0; r < ranks; ++r) {
    Value v = simulator::zeros(shape);
    for (std::size_t i = 0; i < v.data.size(); ++i)
      v.data[i] = static_cast<double>((r * 31 + static_cast<int>(i) * 7) % 23 - 5 + r);
    all.push_back(v);
  }
  return all;
}

inline PartitionSpec over_all_axes(const Mesh& mesh) {
  return PartitionSpec(std::vector<DimSpec>{DimSpec(mesh.axis_names())});
}

template <class F> void expect_over_ranks(const Mesh& mesh, const PerRank& in, const PerRank& expected,
                                          F body, const std::string& what, Dtype dtype = int32) {
  std::vector<double> flat;
  for (const auto& v : in) flat.insert(flat.end(), v.data.begin(), v.data.end());
  auto shape = in[0].shape;
  shape.insert(shape.begin(), static_cast<std::int64_t>(in.size()));
  const Array x = astype(array(HostArray(flat, Shape(shape))), dtype);
  const auto f = shard_map([&](const Array& block) { return expand_dims(body(squeeze(block, 0)), 0); }, mesh,
                           over_all_axes(mesh), over_all_axes(mesh));
  const Array y = f(x);
  auto result_shape = expected[0].shape;
  result_shape.insert(result_shape.begin(), static_cast<std::int64_t>(expected.size()));
  std::vector<double> wanted;
  for (const auto& v : expected) wanted.insert(wanted.end(), v.data.begin(), v.data.end());
  EXPECT_EQ(y.shape(), Shape(result_shape)) << what << " over " << mesh;
  const auto got = to_vector<double>(y);
  if (dtype == float64) {  // a division may precede or follow the sum
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], wanted[i], 1e-12) << what << " over " << mesh;
    return;
  }
  EXPECT_EQ(got, wanted) << what << " over " << mesh;
}

inline std::string text(const std::vector<std::string>& names) {
  std::string s;
  for (const auto& n : names) s += n + " ";
  return s;
}

}  // namespace over_ranks
