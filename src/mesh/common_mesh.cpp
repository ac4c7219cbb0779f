// Two meshes over the same devices in the same order differ only in how the list of devices is cut into
// axes. If the cuts of one refine those of the other (or both have a common refinement), every sharding of
// either can be written on one mesh.
//
//   ('x': 8)            cuts 8 | 1            P('x')
//   ('a': 2, 'b': 4)    cuts 8 | 4 | 1        P('b')
//   common              cuts 8 | 4 | 1        ('a': 2, 'b': 4):  P(('a', 'b'))  and  P('b')
#include <algorithm>

#include "mesh/reshard.hpp"
#include "mesh/sharding_impl.hpp"

namespace tessera {
namespace {

// The strides of all axes in descending order, preceded by the number of devices; empty unless each divides
// the one before.
std::vector<int> common_cuts(const std::vector<Sharding>& shardings) {
  std::vector<int> cuts = {1, shardings[0].identity()->mesh.size()};
  for (const auto& sharding : shardings)
    for (int stride : sharding.identity()->mesh.identity()->strides) cuts.push_back(stride);
  std::sort(cuts.begin(), cuts.end(), std::greater<>());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    if (cuts[i] % cuts[i + 1] != 0) return {};
  return cuts;
}

// The name of an axis on the common mesh: the one it has in a given mesh, if any.
std::string axis_name(const std::vector<Sharding>& shardings, int stride, int size) {
  for (const auto& sharding : shardings) {
    const auto& mesh = *sharding.identity()->mesh.identity();
    for (std::size_t a = 0; a < mesh.names.size(); ++a)
      if (mesh.sizes[a] == size && mesh.strides[a] == stride) return mesh.names[a];
  }
  return "";
}

Mesh mesh_of_cuts(const std::vector<Sharding>& shardings, const std::vector<int>& cuts) {
  const Mesh& like = shardings[0].identity()->mesh;
  std::vector<int> sizes;
  std::vector<std::string> names;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    sizes.push_back(cuts[i] / cuts[i + 1]);
    std::string name = axis_name(shardings, cuts[i + 1], sizes.back());
    if (name.empty() || std::find(names.begin(), names.end(), name) != names.end())
      name = "part" + std::to_string(i);
    while (std::find(names.begin(), names.end(), name) != names.end()) name += "_";
    names.push_back(std::move(name));
  }
  return like.with_axes(std::move(sizes), std::move(names));
}

Sharding rewrite(const Sharding& sharding, const Mesh& mesh, const std::vector<int>& cuts) {
  const auto& impl = *sharding.identity();
  std::vector<std::vector<int>> dim_axes(impl.parts.size());
  for (std::size_t d = 0; d < dim_axes.size(); ++d)
    for (int k = impl.first[d]; k < impl.first[d + 1]; ++k) {
      const AxisDigit& digit = impl.digits[k];
      for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
        if (cuts[i] <= digit.stride * digit.size && cuts[i + 1] >= digit.stride)
          dim_axes[d].push_back(static_cast<int>(i));
    }
  return Sharding::from_dim_axes(mesh, dim_axes);
}

}  // namespace

std::vector<Sharding> on_common_mesh(const std::vector<Sharding>& shardings) {
  if (shardings.empty()) return {};
  const Mesh& first = shardings[0].identity()->mesh;
  bool equal = true;
  for (const auto& sharding : shardings) {
    const Mesh& mesh = sharding.identity()->mesh;
    equal = equal && (&mesh == &first || mesh == first);
    if (!equal && !mesh.same_devices(first)) return {};
  }
  if (equal) return shardings;
  const auto cuts = common_cuts(shardings);
  if (cuts.empty()) return {};
  const Mesh common = mesh_of_cuts(shardings, cuts);
  std::vector<Sharding> rewritten;
  rewritten.reserve(shardings.size());
  for (const auto& sharding : shardings)
    rewritten.push_back(sharding.identity()->mesh == common ? sharding : rewrite(sharding, common, cuts));
  return rewritten;
}

}  // namespace tessera
