#include "io/formats/zarr/metadata/node.hpp"

#include <filesystem>

#include "base/text.hpp"
#include "io/file.hpp"

namespace tessera::io::zarr {
namespace {

namespace fs = std::filesystem;
constexpr const char* mend = "write it again, or check it against the Zarr specification";

bool is_file(const std::string& path) {
  std::error_code none;
  return fs::exists(path, none);
}
std::string text_of(const File& file) {
  std::string text(static_cast<std::size_t>(file.bytes()), '\0');
  file.read(text.data(), static_cast<std::int64_t>(text.size()), 0);
  return text;
}

ZarrNode node_of(const Json& document) {
  ZarrNode node;
  const bool is_array = document.contains("node_type") && document["node_type"] == "array";
  node.kind = is_array ? ZarrNode::Kind::array : ZarrNode::Kind::group;
  if (is_array) {
    node.meta = read_array_v3(document);
    node.attributes = node.meta.attributes;
  } else {
    node.attributes = read_group_v3(document);
  }
  return node;
}

ZarrNode read_v2(const std::string& call, const std::string& folder) {
  ZarrNode node;
  node.format = 2;
  const std::string attributes = is_file(folder + "/.zattrs") ? read_text(call, folder + "/.zattrs") : "";
  const bool is_array = is_file(folder + "/.zarray");
  if (!is_array && !is_file(folder + "/.zgroup")) return node;
  const File file(call, folder + (is_array ? "/.zarray" : "/.zgroup"), File::Mode::read);
  const std::string text = text_of(file);
  parsed(file, mend, [&] {
    if (is_array) {
      node.meta = parse_array_v2(text, attributes);
      node.attributes = node.meta.attributes;
    } else {
      parse_group_v2(text);
      if (!attributes.empty()) node.attributes = parse_document(attributes, ".zattrs");
    }
    return 0;
  });
  node.kind = is_array ? ZarrNode::Kind::array : ZarrNode::Kind::group;
  return node;
}

// Reads a node of consolidated metadata; kind none if tessera cannot read it.
ZarrNode quietly(const std::function<ZarrNode()>& read) {
  try {
    return read();
  } catch (const IoError&) {
    return {};
  }
}

void search(const std::string& folder, const std::string& name, int depth,
            const std::function<bool(const std::string& folder, const std::string& name)>& visit) {
  constexpr int deepest = 32;
  if (depth > deepest) return;
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(folder, none)) {
    if (!entry.is_directory(none)) continue;
    const std::string child = entry.path().filename().string(),
                      path = name.empty() ? child : name + "/" + child;
    if (visit(entry.path().string(), path)) search(entry.path().string(), path, depth + 1, visit);
  }
}

std::map<std::string, ZarrNode> consolidated_v3(const Json& metadata) {
  std::map<std::string, ZarrNode> nodes;
  for (const auto& [name, document] : metadata.items())
    if (is_good_name(name))
      nodes.emplace(name, quietly([&, &document = document] { return node_of(document); }));
  return nodes;
}
std::map<std::string, ZarrNode> consolidated_v2(const Json& metadata) {
  std::map<std::string, ZarrNode> nodes;
  for (const auto& [key, document] : metadata.items()) {
    const auto slash = key.rfind('/');
    if (slash == std::string::npos || !is_good_name(key.substr(0, slash))) continue;
    const std::string name = key.substr(0, slash), file = key.substr(slash + 1);
    const Json attributes = metadata.value(name + "/.zattrs", Json::object());
    if (file == ".zarray")
      nodes.emplace(
          name, quietly([&, &document = document] {
            ZarrNode node{ZarrNode::Kind::array, 2, read_array_v2(document, attributes), attributes};
            return node;
          }));
    if (file == ".zgroup") nodes.emplace(name, ZarrNode{ZarrNode::Kind::group, 2, {}, attributes});
  }
  return nodes;
}

std::optional<std::map<std::string, ZarrNode>> consolidated(const std::string& call,
                                                            const std::string& folder) {
  const bool is_v3 = is_file(folder + "/zarr.json"), is_v2 = !is_v3 && is_file(folder + "/.zmetadata");
  if (!is_v3 && !is_v2) return std::nullopt;
  const File file(call, folder + (is_v3 ? "/zarr.json" : "/.zmetadata"), File::Mode::read);
  const Json document = parsed(file, mend, [&] { return parse_document(text_of(file), "its metadata"); });
  const Json* holder = &document;
  if (is_v3) {
    const auto found = document.find("consolidated_metadata");
    if (found == document.end() || !found->is_object()) return std::nullopt;
    holder = &*found;
  }
  const auto metadata = holder->find("metadata");
  if (metadata == holder->end() || !metadata->is_object()) return std::nullopt;
  return is_v3 ? consolidated_v3(*metadata) : consolidated_v2(*metadata);
}

// A node whose own metadata are missing, as those of a folder above describe it.
ZarrNode node_from_above(const std::string& call, const std::string& folder) {
  for (auto slash = folder.rfind('/'); slash != std::string::npos && slash > 0;
       slash = folder.rfind('/', slash - 1))
    if (auto nodes = consolidated(call, folder.substr(0, slash))) return (*nodes)[folder.substr(slash + 1)];
  return {};
}

}  // namespace

bool is_good_name(const std::string& path) {
  for (std::size_t start = 0; start <= path.size();) {
    const auto slash = std::min(path.find('/', start), path.size());
    const std::string part = path.substr(start, slash - start);
    if (part.empty() || part == "." || part == ".." || part.starts_with("__") || part == "zarr.json" ||
        part.starts_with(".z") || part.find('\0') != std::string::npos)
      return false;
    start = slash + 1;
  }
  return true;
}

ZarrNode read_node(const std::string& call, const std::string& folder) {
  if (!is_file(folder + "/zarr.json")) return read_v2(call, folder);
  const File file(call, folder + "/zarr.json", File::Mode::read);
  return parsed(file, mend, [&] { return node_of(parse_document(text_of(file), "zarr.json")); });
}

ArrayMeta read_array(const std::string& call, const std::string& folder) {
  ZarrNode node = read_node(call, folder);
  if (node.kind == ZarrNode::Kind::none && is_file(folder)) node = node_from_above(call, folder);
  if (node.kind == ZarrNode::Kind::array) return std::move(node.meta);
  if (node.kind == ZarrNode::Kind::none)
    throw IoError(call + ": " + in_quotes(folder) +
                  (is_file(folder) ? " holds no Zarr array" : " is not there") +
                  "; check the path: it is the folder of an array, as in \"store.zarr/temperature\"");
  std::vector<std::string> names;
  for (const auto& [name, child] : nodes_below(call, folder))
    if (child.kind == ZarrNode::Kind::array && names.size() < 20) names.push_back(in_quotes(name));
  throw IoError(call + ": " + in_quotes(folder) + " is a group and no array; " +
                (names.empty() ? "it has no arrays" : "give the path of one: it has " + join(names)));
}

std::map<std::string, ZarrNode> nodes_below(const std::string& call, const std::string& folder) {
  if (auto found = consolidated(call, folder)) return std::move(*found);
  std::map<std::string, ZarrNode> nodes;
  search(folder, "", 0, [&](const std::string& place, const std::string& name) {
    const bool is_node =
        is_file(place + "/zarr.json") || is_file(place + "/.zarray") || is_file(place + "/.zgroup");
    if (!is_node) return false;
    const auto [at, is_new] = nodes.emplace(name, quietly([&] { return read_node(call, place); }));
    return at->second.kind == ZarrNode::Kind::group;
  });
  return nodes;
}

std::map<std::string, Json> documents_below(const std::string& call, const std::string& folder) {
  std::map<std::string, Json> documents;
  search(folder, "", 0, [&](const std::string& place, const std::string& name) {
    if (!is_file(place + "/zarr.json")) return false;
    const File file(call, place + "/zarr.json", File::Mode::read);
    Json document = parsed(file, mend, [&] { return parse_document(text_of(file), "zarr.json"); });
    document.erase("consolidated_metadata");
    const bool is_group = document.value("node_type", "") == "group";
    documents.emplace(name, std::move(document));
    return is_group;
  });
  return documents;
}

std::string detail_of(const ArrayMeta& meta) {
  std::string text = "zarr " + std::to_string(meta.format) + ", chunks " + to_string(meta.chunk);
  for (const Codec& codec : meta.codecs) {
    if (codec.kind != Codec::Kind::bytes) text += std::string(", ") + name_of(codec.kind);
    for (const Codec& inner : codec.codecs)
      if (inner.kind != Codec::Kind::bytes) text += std::string(" of ") + name_of(inner.kind);
  }
  return text;
}

void write_document(const std::string& call, const std::string& path, const Json& document) {
  const std::string text = document_text(document);
  File file(call, path, File::Mode::create);
  file.write(text.data(), static_cast<std::int64_t>(text.size()), 0);
  file.sync();
}

}  // namespace tessera::io::zarr
