// Runs exchange plans of all ranks in one process, on integers that encode their position in the source
// arrays.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include "mesh/devices.hpp"
#include "mesh/remap.hpp"
#include "mesh/reshard.hpp"
#include "types/box.hpp"

namespace tessera::simulator {

inline void use_job(int n) {
  std::vector<Device> table;
  for (int id = 0; id < n; ++id) table.push_back({id, id, "localhost"});
  set_devices(table);
}

template <class Visit> void for_each_index(const Index& box, Visit visit) {
  if (box_elements(box) == 0) return;
  std::vector<std::int64_t> at(box.size());
  for (std::size_t d = 0; d < box.size(); ++d) at[d] = box[d].start;
  for (;;) {
    visit(at);
    std::size_t d = box.size();
    while (d > 0 && ++at[d - 1] == box[d - 1].stop) --d, at[d] = box[d].start;
    if (d == 0) return;
  }
}

inline std::int64_t linear(const Index& box, const std::vector<std::int64_t>& at) {
  std::int64_t index = 0;
  for (std::size_t d = 0; d < box.size(); ++d) index = index * box[d].size() + at[d] - box[d].start;
  return index;
}

// The blocks of one array on all devices. Values: 1 + source * 1'000'000 + the linear index in the global
// array; 0 means "not filled".
using Blocks = std::map<int, std::vector<std::int64_t>>;

inline std::int64_t value_at(int source, const Shape& shape, const std::vector<std::int64_t>& at) {
  return 1 + source * 1'000'000 + linear(whole_box(shape), at);
}
inline Blocks scatter(int source, const Sharding& sharding, const Shape& shape) {
  Blocks blocks;
  for (int id : sharding.mesh().device_ids())
    for_each_index(sharding.local_box(shape, id),
                   [&](const auto& at) { blocks[id].push_back(value_at(source, shape, at)); });
  return blocks;
}

struct Counted {
  Blocks result;
  std::int64_t most_received = 0;  // elements, of the busiest device
  std::int64_t most_sent = 0;
  std::int64_t most_messages = 0;
};

inline int devices_in_job(const std::vector<Sharding>& from, const Sharding& to) {
  int highest = 0;
  for (const auto& s : from)
    for (int id : s.mesh().device_ids()) highest = std::max(highest, id);
  for (int id : to.mesh().device_ids()) highest = std::max(highest, id);
  return highest + 1;
}

// Also checks that both sides list the same messages, senders hold what they send, and nothing arrives twice.
inline Counted run_exchange(const Remap& remap, const std::vector<Sharding>& from,
                            const std::vector<Shape>& from_shapes, const Sharding& to, const Shape& shape,
                            const std::vector<Blocks>& sources, const std::vector<int>& fixed_axes = {}) {
  Counted counted;
  const int job = devices_in_job(from, to);
  std::vector<ExchangePlan> plans;
  for (int me = 0; me < job; ++me)
    plans.push_back(plan_exchange(remap, from, from_shapes, to, shape, me, fixed_axes));
  const auto load = [&](int sender, const RemapPiece& piece,
                        const std::vector<std::int64_t>& at) -> std::int64_t {
    const auto s = static_cast<std::size_t>(piece.source);
    std::vector<std::int64_t> place(at.size());
    for (std::size_t d = 0; d < at.size(); ++d) place[d] = piece.offset[d] + piece.step[d] * at[d];
    const Index box = from[s].local_box(from_shapes[s], sender);
    for (std::size_t d = 0; d < at.size(); ++d)
      if (from[s].mesh().position(sender) < 0 || place[d] < box[d].start || place[d] >= box[d].stop) {
        ADD_FAILURE() << "device " << sender << " is asked for an element that it does not hold";
        return -1;
      }
    return sources[s].at(sender)[linear(box, place)];
  };
  using Message = std::tuple<int, int, std::string>;  // peer, piece, box
  for (int me = 0; me < job; ++me) {
    const Index box = to.local_box(shape, me);
    const bool member = to.mesh().position(me) >= 0;
    auto& block = counted.result[me];
    if (member) block.assign(box_elements(box), 0);
    std::int64_t received = 0, sent = 0;
    for (const auto* list : {&plans[me].receives, &plans[me].local})
      for (const auto& transfer : *list) {
        EXPECT_EQ(transfer.peer == me, list == &plans[me].local);
        EXPECT_GT(box_elements(transfer.to), 0);
        if (list == &plans[me].receives) received += box_elements(transfer.to);
        for_each_index(transfer.to, [&](const auto& at) {
          auto& slot = block.at(linear(box, at));
          EXPECT_EQ(slot, 0) << "an element arrives twice";
          slot = load(transfer.peer, remap.pieces[transfer.piece], at);
        });
      }
    for (const auto& transfer : plans[me].sends) sent += box_elements(transfer.to);
    counted.most_received = std::max(counted.most_received, received);
    counted.most_sent = std::max(counted.most_sent, sent);
    counted.most_messages =
        std::max(counted.most_messages, static_cast<std::int64_t>(plans[me].receives.size()));
    for (int peer = 0; peer < job; ++peer) {
      std::vector<Message> announced, expected;
      for (const auto& t : plans[me].sends)
        if (t.peer == peer) announced.emplace_back(me, t.piece, to_string(t.to));
      for (const auto& t : plans[peer].receives)
        if (t.peer == me) expected.emplace_back(me, t.piece, to_string(t.to));
      EXPECT_EQ(announced, expected) << "what " << me << " sends to " << peer
                                     << " differs from what is expected there";
    }
  }
  return counted;
}

// The expected result of a remap.
inline Blocks expected_blocks(const Remap& remap, const std::vector<Shape>& from_shapes, const Sharding& to,
                              const Shape& shape) {
  std::vector<std::int64_t> whole(shape.elements(), 0);
  for (const auto& piece : remap.pieces)
    for_each_index(piece.to, [&](const auto& at) {
      std::vector<std::int64_t> place(at.size());
      for (std::size_t d = 0; d < at.size(); ++d) place[d] = piece.offset[d] + piece.step[d] * at[d];
      whole[linear(whole_box(shape), at)] = value_at(piece.source, from_shapes[piece.source], place);
    });
  Blocks blocks;
  for (int id : to.mesh().device_ids()) {
    blocks[id];
    for_each_index(to.local_box(shape, id),
                   [&](const auto& at) { blocks[id].push_back(whole[linear(whole_box(shape), at)]); });
  }
  return blocks;
}

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  int between(int low, int high) { return low + below(high - low + 1); }
  template <class T> const T& pick(const std::vector<T>& values) {
    return values[below(static_cast<int>(values.size()))];
  }

  // 1 to 3 axes over a subset of the job's devices, in order or permuted.
  Mesh mesh(int job) {
    std::vector<int> sizes;
    int product = 1;
    for (int axis = between(1, 3); axis > 0; --axis) {
      const int size = between(1, std::max(1, std::min(4, job / product)));
      sizes.push_back(size);
      product *= size;
    }
    std::vector<int> ids(job);
    std::iota(ids.begin(), ids.end(), 0);
    if (below(2)) std::shuffle(ids.begin(), ids.end(), engine_);
    ids.resize(product);
    return Mesh(NdDevices(sizes, ids), names(sizes.size()));
  }
  Sharding sharding(const Mesh& mesh, int ndim, const std::vector<int>& unused = {}) {
    std::vector<std::vector<int>> dims(ndim);
    std::vector<int> axes(mesh.ndim());
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), engine_);
    for (int axis : axes)
      if (ndim > 0 && below(4) && std::find(unused.begin(), unused.end(), axis) == unused.end())
        dims[below(ndim)].push_back(axis);
    return Sharding::from_dim_axes(mesh, dims);
  }
  Shape shape(int ndim) {
    std::vector<std::int64_t> extents;
    for (int d = 0; d < ndim; ++d)
      extents.push_back(pick(std::vector<int>{0, 1, 2, 3, 4, 5, 7, 8, 8, 9, 12, 16}));
    return Shape(std::move(extents));
  }
  static std::vector<std::string> names(std::size_t count) {
    return std::vector<std::string>{"x", "y", "z"}.size() >= count
               ? std::vector<std::string>(all_names().begin(),
                                          all_names().begin() + static_cast<std::ptrdiff_t>(count))
               : all_names();
  }

 private:
  static const std::vector<std::string>& all_names() {
    static const std::vector<std::string> names = {"x", "y", "z"};
    return names;
  }
  std::mt19937 engine_;
};

}  // namespace tessera::simulator
