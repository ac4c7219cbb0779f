// Shardings to draw, and helpers that parse a picture.
#pragma once
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include <tessera/visualize.hpp>

#include "mesh/devices.hpp"
#include "support/data.hpp"
#include "viz/blocks.hpp"
#include "viz/labels.hpp"

namespace tessera::debug {

// A job of 64 devices, so that meshes of chosen devices can be made without processes.
class PictureTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<Device> table;
    for (int id = 0; id < 64; ++id) table.push_back({id, id, "localhost"});
    set_devices(table);
  }
  void TearDown() override { set_devices({{0, 0, "localhost"}}); }
};

inline Sharding over(std::vector<int> sizes, std::vector<std::string> names, PartitionSpec spec) {
  return NamedSharding(abstract_mesh(std::move(sizes), std::move(names)), std::move(spec));
}

inline std::string framed(const Shape& shape, const Sharding& sharding, VisualizeOptions options = {}) {
  options.use_color = false;
  return visualize_sharding(shape, sharding, options);
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// ANSI text without its colours.
inline std::string without_colours(const std::string& ansi) {
  std::string text;
  for (std::size_t i = 0; i < ansi.size(); ++i) {
    if (ansi[i] == '\x1b')
      i = ansi.find('m', i);
    else
      text += ansi[i];
  }
  return text;
}

inline std::string read_golden(const std::string& name) {
  std::ifstream file(test::tests_folder() / "viz/golden" / name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

// One random array on one random mesh: permuted devices, uneven and empty blocks, up to four dimensions.
struct Subject {
  Shape shape;
  Sharding sharding;
};
inline Subject random_subject(std::mt19937& random) {
  auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  std::vector<int> sizes;
  std::vector<std::string> names;
  int devices = 1;
  for (int axis = 1 + below(3); axis > 0; --axis) {
    int size = 1 + below(5);
    if (devices * size > 64) break;
    devices *= size;
    sizes.push_back(size);
    names.push_back(std::string(1, static_cast<char>('a' + axis)));
  }
  std::vector<int> ids(64);
  std::iota(ids.begin(), ids.end(), 0);
  if (below(2)) std::shuffle(ids.begin(), ids.end(), random);
  ids.resize(devices);

  std::vector<std::int64_t> extents;
  std::vector<std::vector<std::string>> dims;
  for (int d = below(5); d > 0; --d) {
    extents.push_back(below(4) ? 1 + below(40) : below(3) * 1000);
    dims.emplace_back();
  }
  for (const std::string& name : names) {
    if (!dims.empty() && below(4)) dims[below(static_cast<int>(dims.size()))].push_back(name);
  }
  std::vector<DimSpec> spec(dims.begin(), dims.end());
  return {Shape(extents), NamedSharding(Mesh(NdDevices(sizes, ids), names), PartitionSpec(spec))};
}

// The devices that hold each nonempty block, from the sharding's own map.
inline std::vector<std::pair<std::vector<int>, Shape>> blocks_of(const Subject& subject) {
  std::map<std::string, std::pair<std::vector<int>, Shape>> blocks;
  for (const auto& [device, box] : subject.sharding.devices_indices_map(subject.shape)) {
    std::vector<std::int64_t> extents;
    for (const Range& range : box) extents.push_back(range.size());
    Shape shape{extents};
    if (shape.elements() == 0) continue;
    auto& [ids, block_shape] = blocks[to_string(box)];
    ids.push_back(device.id);
    block_shape = shape;
  }
  std::vector<std::pair<std::vector<int>, Shape>> all;
  for (auto& [box, block] : blocks) {
    std::sort(block.first.begin(), block.first.end());
    all.push_back(std::move(block));
  }
  return all;
}

// Whether the text names the device set: in one piece, or name by name if the label was broken.
inline bool names(const std::string& text, const std::vector<int>& ids) {
  const std::string label = viz::short_label(ids);
  if (text.find(viz::full_label(ids)) != std::string::npos || text.find(label) != std::string::npos)
    return true;
  if (text.find(" more") != std::string::npos) return false;
  std::istringstream parts(label);
  for (std::string name; std::getline(parts, name, ',');) {
    if (text.find(name) == std::string::npos) return false;
  }
  return true;
}

}  // namespace tessera::debug
