#include "stablehlo/layouts.hpp"

#include <tessera/error.hpp>
#include <tessera/runtime.hpp>

#include <algorithm>
#include <charconv>
#include <numeric>

#include "base/text.hpp"

namespace tessera::stablehlo {
namespace {

std::string place_text(const Module& module, TextPlace place) {
  return module.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
}

[[noreturn]] void refuse_devices(const Module& module, TextPlace place, const std::string& what) {
  throw ShardingError(place_text(module, place) + ": " + what + ", and the job has " +
                      format_count(device_count(), "rank") +
                      "; start it with more (tessera run -n), or leave the layouts out (--ignore-shardings, "
                      "LoadOptions::ignore_shardings)");
}

Mesh mesh_of_text(const Module& module, const std::string& name, const MeshText& text) {
  std::vector<int> sizes;
  std::vector<std::string> names;
  std::int64_t devices = 1;
  for (const auto& axis : text.axes) {
    if (axis.size < 1) refuse_text(module.file, text.place, "an axis of size " + std::to_string(axis.size));
    if (__builtin_mul_overflow(devices, axis.size, &devices) || devices > device_count())
      refuse_devices(module, text.place, "the mesh @" + name + " has more devices");
    sizes.push_back(static_cast<int>(axis.size));
    names.push_back(axis.name);
  }
  std::vector<Device> given = tessera::devices();
  if (!text.devices.empty()) {
    if (static_cast<std::int64_t>(text.devices.size()) != devices)
      refuse_text(module.file, text.place,
                  std::to_string(text.devices.size()) + " devices for a mesh of " + std::to_string(devices));
    std::vector<Device> chosen;
    for (const auto id : text.devices) {
      if (id < 0 || id >= device_count())
        refuse_devices(module, text.place, "the mesh @" + name + " has the device " + std::to_string(id));
      chosen.push_back(given[static_cast<std::size_t>(id)]);
    }
    given = chosen;
  }
  return make_mesh(sizes, names, given);
}

}  // namespace

Layouts layouts_of(const Module& module, bool ignored) {
  Layouts layouts;
  layouts.ignored = ignored;
  for (const auto& [name, text] : module.meshes) {
    if (text.axes.empty()) continue;
    try {
      layouts.meshes.emplace(name, mesh_of_text(module, name, text));
    } catch (const ShardingError&) {
      if (!ignored) throw;
    }
  }
  return layouts;
}

const Mesh& mesh_of(const Module& module, const Layouts& layouts, const Attribute& sharding) {
  const Attribute* name = sharding.find("mesh");
  const auto found = name == nullptr ? layouts.meshes.end() : layouts.meshes.find(name->text);
  if (found == layouts.meshes.end())
    refuse_text(module.file, sharding.place,
                "a mesh " + shown(name == nullptr ? "" : name->text) + " with axes is expected here");
  return found->second;
}

std::vector<std::vector<std::string>> axes_of(const Attribute& sharding) {
  std::vector<std::vector<std::string>> dims;
  const Attribute* all = sharding.find("dims");
  if (all == nullptr) return dims;
  for (const auto& dim : all->items) {
    dims.emplace_back();
    for (const auto& axis : dim.items)
      if (axis.kind == Attribute::Kind::string) dims.back().push_back(axis.text);
  }
  return dims;
}

std::optional<Sharding> sharding_of(const Module& module, const Layouts& layouts, const Attribute& sharding,
                                    int ndim) {
  if (layouts.ignored) return std::nullopt;
  const Attribute *name = sharding.find("mesh"), *all = sharding.find("dims");
  if (name == nullptr || all == nullptr)
    refuse_text(module.file, sharding.place, "a layout is expected here: <@mesh, [{\"x\"}, {}]>");
  if (sharding.find("unreduced") != nullptr)
    refuse_text(module.file, sharding.place, "partial sums as a layout (unreduced) have no counterpart");
  const auto text = module.meshes.find(name->text);
  if (text == module.meshes.end())
    refuse_text(module.file, sharding.place, "the module has no mesh " + shown(name->text));
  if (text->second.axes.empty()) return std::nullopt;
  const auto dims = axes_of(sharding);
  if (static_cast<int>(dims.size()) != ndim)
    refuse_text(
        module.file, sharding.place,
        "a layout of " + std::to_string(dims.size()) + " dims for an array of " + std::to_string(ndim));
  for (const auto& dim : all->items)  // an open dim is left to the planner
    for (const auto& axis : dim.items)
      if (axis.kind == Attribute::Kind::word) return std::nullopt;
  std::vector<DimSpec> spec;
  for (const auto& axes : dims) spec.emplace_back(axes);
  return NamedSharding(mesh_of(module, layouts, sharding), PartitionSpec(std::move(spec)));
}

// ---- GSPMD ----

namespace {

// "[4,2]" or "4,2" from `at` on; moves `at` past it.
std::vector<int> numbers_at(std::string_view text, std::size_t& at) {
  std::vector<int> numbers;
  if (at < text.size() && (text[at] == '[' || text[at] == '(')) ++at;
  while (at < text.size()) {
    int value = 0;
    const auto read = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (read.ec != std::errc()) break;
    numbers.push_back(value);
    at = static_cast<std::size_t>(read.ptr - text.data());
    if (at >= text.size() || text[at] != ',') break;
    ++at;
  }
  if (at < text.size() && (text[at] == ']' || text[at] == ')')) ++at;
  return numbers;
}

std::int64_t product(const std::vector<int>& sizes, std::int64_t most) {
  std::int64_t n = 1;
  for (const int size : sizes) {
    if (size < 1 || n > most / size) return -1;
    n *= size;
  }
  return n;
}

// The numbers 0, 1, ... as an array of these extents, its dims in another order, row-major.
std::vector<int> turned_range(const std::vector<int>& extents, const std::vector<int>& order) {
  const auto n = extents.size();
  std::vector<int> strides(n, 1), result;
  for (std::size_t d = n - 1; d-- > 0;) strides[d] = strides[d + 1] * extents[d + 1];
  std::vector<int> at(n, 0);
  const auto count = std::accumulate(extents.begin(), extents.end(), 1, std::multiplies<>());
  for (int i = 0; i < count; ++i) {
    int id = 0;
    for (std::size_t d = 0; d < n; ++d) id += at[d] * strides[static_cast<std::size_t>(order[d])];
    result.push_back(id);
    for (std::size_t d = n; d-- > 0;) {
      if (++at[d] < extents[static_cast<std::size_t>(order[d])]) break;
      at[d] = 0;
    }
  }
  return result;
}

bool is_permutation_of_all(const std::vector<int>& order, std::size_t n) {
  std::vector<bool> seen(n);
  if (order.size() != n) return false;
  for (const int d : order) {
    if (d < 0 || d >= static_cast<int>(n) || seen[static_cast<std::size_t>(d)]) return false;
    seen[static_cast<std::size_t>(d)] = true;
  }
  return true;
}

// The tiles as axes of a mesh of devices in order, so that all layouts of a program have one order of
// devices: axes of these extents, read in `order`, are cut where tiles end. nullopt: no axis ends there.
std::optional<Sharding> sharding_of_tiles(const std::vector<int>& tiles, const std::vector<int>& extents,
                                          const std::vector<int>& order, int ndim) {
  std::vector<std::vector<std::pair<int, std::size_t>>> cuts(extents.size());  // size and tile, major first
  std::size_t next = 0;
  int rest = extents[static_cast<std::size_t>(order[0])];
  for (std::size_t tile = 0; tile < tiles.size(); ++tile) {
    for (int wanted = tiles[tile]; wanted > 1;) {
      while (rest == 1 && ++next < order.size()) rest = extents[static_cast<std::size_t>(order[next])];
      const int taken = std::min(wanted, rest);
      if (next >= order.size() || taken < 2 || wanted % taken != 0 || rest % taken != 0) return std::nullopt;
      cuts[static_cast<std::size_t>(order[next])].emplace_back(taken, tile);
      wanted /= taken, rest /= taken;
    }
  }
  std::vector<int> sizes;
  std::vector<std::string> names;
  // The axes that split each dim, with their places in `order`: the spec lists them in that order.
  std::vector<std::vector<std::pair<std::size_t, std::string>>> taken(tiles.size());
  for (std::size_t axis = 0; axis < extents.size(); ++axis)
    for (const auto& [size, tile] : cuts[axis]) {
      sizes.push_back(size), names.push_back("d" + std::to_string(names.size()));
      const auto place = std::find(order.begin(), order.end(), static_cast<int>(axis)) - order.begin();
      taken[tile].emplace_back(static_cast<std::size_t>(place), names.back());
    }
  if (sizes.empty()) sizes = {1}, names = {"d0"};
  std::vector<DimSpec> spec;
  for (int d = 0; d < ndim; ++d) {
    auto& axes = taken[static_cast<std::size_t>(d)];
    std::stable_sort(axes.begin(), axes.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<std::string> of_dim;
    for (const auto& [place, axis] : axes) of_dim.push_back(axis);
    spec.emplace_back(of_dim);
  }
  return NamedSharding(make_mesh(sizes, names, tessera::devices()), PartitionSpec(std::move(spec)));
}

}  // namespace

std::optional<Sharding> gspmd_sharding_of(const Module& module, const Layouts& layouts,
                                          const Attribute& attribute, int ndim) {
  if (layouts.ignored) return std::nullopt;
  const std::string_view text = attribute.text;
  const auto refuse = [&](const std::string& why) {
    refuse_text(module.file, attribute.place, "the layout " + shown(text) + ": " + why);
  };
  if (text.find("manual") != std::string_view::npos || text.find("unreduced") != std::string_view::npos)
    refuse("blocks of single devices and partial sums have no counterpart in GSPMD's form");
  std::size_t at = text.find("devices=[");
  if (at == std::string_view::npos) {
    if (text.find("replicated") == std::string_view::npos)
      refuse("one on all devices, or split over them, is expected");
    const auto n = std::max<std::int64_t>(module.partitions, 1);
    if (n > device_count())
      refuse_devices(module, attribute.place, "the program has " + std::to_string(n) + " partitions");
    return Sharding::replicated(make_mesh({static_cast<int>(n)}, {"devices"}, tessera::devices()));
  }
  at += 8;
  auto tiles = numbers_at(text, at);
  const auto count = product(tiles, device_count());
  if (count < 1) refuse_devices(module, attribute.place, "the layout " + shown(text) + " has more devices");
  std::vector<int> ids;
  if (text.substr(at, 2) == "<=") {
    at += 2;
    const auto extents = numbers_at(text, at);
    std::vector<int> order(extents.size());
    std::iota(order.begin(), order.end(), 0);
    if (at < text.size() && text[at] == 'T') order = numbers_at(text, ++at);
    if (extents.empty() || product(extents, device_count()) != count ||
        !is_permutation_of_all(order, extents.size()))
      refuse("its devices are not as many as its tiles");
    if (tiles.size() >= static_cast<std::size_t>(ndim)) {
      const bool is_replicated = text.find("replicate", at) != std::string_view::npos;
      if (is_replicated || tiles.size() == static_cast<std::size_t>(ndim))
        if (auto named = sharding_of_tiles(tiles, extents, order, ndim)) return named;
    }
    ids = turned_range(extents, order);
  } else {
    ids = numbers_at(text, at);
  }
  if (static_cast<std::int64_t>(ids.size()) != count) refuse("its devices are not as many as its tiles");
  PositionalSharding sharding(NdDevices(tiles, ids));
  if (text.find("replicate", at) != std::string_view::npos) {
    while (sharding.ndim() > ndim) sharding = sharding.replicate(sharding.ndim() - 1, false);
  }
  if (sharding.ndim() != ndim) refuse("an array of " + std::to_string(ndim) + " dims");
  return Sharding(sharding);
}

std::optional<Sharding> sharding_among(const Module& module, const Layouts& layouts,
                                       const Attribute& attributes, int ndim) {
  if (const Attribute* found = attributes.find("sdy.sharding"))
    return sharding_of(module, layouts, *found, ndim);
  if (const Attribute* found = attributes.find("mhlo.sharding"))
    return gspmd_sharding_of(module, layouts, *found, ndim);
  return std::nullopt;
}

}  // namespace tessera::stablehlo
