// Random meshes and specs over all ranks of the job, equal on every rank, and references computed by plain
// loops.
#pragma once
#include <tessera/ops.hpp>
#include <tessera/runtime.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "compile/graph.hpp"
#include "compile/pipeline.hpp"
#include "graph/node.hpp"
#include "support/errors.hpp"
#include "support/text.hpp"

namespace tessera::test {

using Position = std::vector<std::int64_t>;

inline int pick(std::mt19937& random, int lo, int hi) {
  return lo + static_cast<int>(random() % static_cast<unsigned>(hi - lo + 1));
}

// All devices on two axes, as square as possible; the second one is the longer one.
inline Mesh grid() {
  const int n = device_count();
  int rows = 1;
  for (int d = 2; d * d <= n; ++d)
    if (n % d == 0) rows = d;
  return make_mesh({rows, n / rows}, {"x", "y"});
}

// All devices, in a random order, on 1 to 3 axes.
inline Mesh random_mesh(std::mt19937& random) {
  auto all = devices();
  if (random() % 3 == 0) std::shuffle(all.begin(), all.end(), random);
  int rest = static_cast<int>(all.size());
  std::vector<int> sizes;
  for (int a = 0; a < 2; ++a) {
    std::vector<int> divisors;
    for (int d = 1; d <= rest; ++d)
      if (rest % d == 0) divisors.push_back(d);
    sizes.push_back(divisors[random() % divisors.size()]);
    rest /= sizes.back();
  }
  sizes.push_back(rest);
  return make_mesh(sizes, {"x", "y", "z"}, all);
}

// Assigns every axis of the mesh to a random dim or to none.
inline Sharding random_sharding(std::mt19937& random, const Mesh& mesh, int ndim) {
  std::vector<std::vector<int>> dims(ndim);
  std::vector<int> axes = {0, 1, 2};
  std::shuffle(axes.begin(), axes.end(), random);
  for (const int a : axes)
    if (ndim > 0 && random() % 5 != 0) dims[random() % static_cast<unsigned>(ndim)].push_back(a);
  return Sharding::from_dim_axes(mesh, dims);
}

inline std::string text_of(const Sharding& sharding) { return printed(sharding); }

// The array whose element at a position is f(position).
inline Array make(const Shape& shape, Dtype dtype, const std::function<double(const Position&)>& f) {
  std::vector<double> values;
  Position at(shape.size(), 0);
  for (std::int64_t n = shape.elements(); n-- > 0;) {
    values.push_back(f(at));
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
  return astype(array(HostArray(values, shape)), dtype);
}

inline std::int64_t flat(const Position& at, const Shape& shape) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) index = index * shape[d] + at[d];
  return index;
}

// Compares every element with f(position).
inline void expect_elements(const Array& x, const Shape& shape,
                            const std::function<double(const Position&)>& f, const std::string& what) {
  ASSERT_EQ(to_string(x.shape()), to_string(shape)) << what;
  const auto values = to_vector<double>(x);
  Position at(shape.size(), 0);
  for (std::size_t n = 0; n < values.size(); ++n) {
    const double expected = f(at);
    if (expected != expected) {
      ASSERT_NE(values[n], values[n]) << what << " element " << n;
    } else {
      ASSERT_EQ(values[n], expected) << what << " element " << n;
    }
    for (std::size_t d = shape.size(); d-- > 0;) {
      if (++at[d] < shape[d]) break;
      at[d] = 0;
    }
  }
}

// The program that an evaluation of x would run.
inline std::string program_of(const Array& x) { return program_text(compile(collect({x}, false))); }

}  // namespace tessera::test
