#include "io/formats/zarr/store.hpp"

#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "io/fault_point.hpp"
#include "io/file.hpp"
#include "io/formats/zarr/chunk_write.hpp"
#include "io/formats/zarr/metadata/node.hpp"
#include "io/save_target.hpp"

namespace tessera::io::zarr {
namespace {

namespace fs = std::filesystem;

std::string parent_name(const std::string& name) {
  const auto slash = name.rfind('/');
  return slash == std::string::npos ? "" : name.substr(0, slash);
}

// Removes the files of chunks that have no values any more.
void remove_empty(const std::string& folder, const std::vector<std::string>& keys) {
  for (const auto& key : keys) ::unlink((folder + "/" + key).c_str());
}

// Moves this rank's new chunks into the array's folder.
void move_chunks(const std::string& call, const std::string& from, const std::string& to,
                 const WrittenKeys& keys) {
  std::set<std::string> folders = {to};
  for (const auto& key : keys.files) {
    std::string folder = parent_name(to + "/" + key);
    std::error_code none;
    if (!folders.contains(folder)) fs::create_directories(folder, none);
    for (; folders.insert(folder).second; folder = parent_name(folder)) {}
    if (std::rename((from + "/" + key).c_str(), (to + "/" + key).c_str()) != 0)
      throw IoError(call + ": the chunk " + in_quotes(to + "/" + key) + " cannot be put in place: " +
                    std::strerror(errno) + "; check the permissions of the folder");
  }
  remove_empty(to, keys.empty);
  sync_folders(call, {folders.begin(), folders.end()});
}

}  // namespace

void Store::open(const Team& team, bool is_new) {
  team.once([&] {
    place_.emplace(call_, path_);
    const std::string& target = place_->target();
    is_new_ = is_new || !fs::exists(target);
    root_ = is_new_ ? place_->new_temporary() : target;
    if (is_new_) return write_document(call_, root_ + "/zarr.json", group_document(Json::object()));
    const ZarrNode node = read_node(call_, root_);
    if (node.kind != ZarrNode::Kind::group || node.format != 3)
      throw IoError(call_ + ": " + in_quotes(path_) +
                    (node.kind == ZarrNode::Kind::array ? " is one array, and no group that could hold others"
                     : node.format == 2 ? " is a store of version 2, which tessera reads and does not write"
                                        : " is an empty folder") +
                    "; open it with the mode replace, or write another one");
  });
  root_ = team.from_first(root_);
  is_new_ = team.from_first(is_new_ ? 1 : 0) != 0;
}

std::optional<ArrayMeta> Store::find(const Team& team, const std::string& name) const {
  std::string text;
  team.once([&] {
    const ZarrNode node = read_node(call_, at(name));
    if (node.kind == ZarrNode::Kind::group)
      throw IoError(call_ + ": " + in_quotes(path_) + " has a group " + in_quotes(name) +
                    ", where an array is wanted; choose another name");
    if (node.kind == ZarrNode::Kind::array) text = document_text(node.meta.document);
  });
  text = team.from_first(text);
  if (text.empty()) return std::nullopt;
  return parse_array_v3(text);
}

std::string Store::stage(const Team& team) {
  std::string folder;
  team.once([&] { folder = place_->new_temporary(); });
  return team.from_first(folder);
}

void Store::make(const Team& team, const std::string& name, const ArrayMeta& meta, const Array& x) {
  const bool exists = find(team, name).has_value();
  const std::string folder = is_new_ ? at(name) : stage(team);
  team.once([&] {
    make_groups(parent_name(name));
    std::error_code none;
    if (is_new_ && exists) remove_folder(folder);
    if (is_new_) fs::create_directory(folder, none);
    write_document(call_, folder + "/zarr.json", array_document(meta));
    fault_point("prepared");
  });
  write_chunks(team, {call_, meta, folder, ChunkIndex(meta.shape.size(), 0)}, x);
  if (is_new_) return;
  team.once([&] {
    if (exists) drop_consolidated();
    place_->commit(at(name));
    consolidate();
  });
}

void Store::append(const Team& team, const std::string& name, ArrayMeta before, int dim, const Array& x) {
  const auto d = static_cast<std::size_t>(dim);
  ArrayMeta after = before;
  ChunkIndex origin(before.shape.size(), 0);
  origin[d] = before.shape[d];
  after.shape[d] += x.shape()[d];
  const std::string folder = is_new_ ? at(name) : stage(team);
  const WrittenKeys keys = write_chunks(team, {call_, after, folder, origin, at(name), before.shape}, x);
  team.together([&] {
    if (is_new_)
      remove_empty(folder, keys.empty);
    else
      move_chunks(call_, folder, at(name), keys);
    fault_point("appended");
  });
  team.once([&] {
    after.document["shape"] = after.shape.vector();
    replace_document(at(name), after.document);
    if (!is_new_) consolidate();
  });
}

void Store::overwrite(const Team& team, const std::string& name, const ArrayMeta& meta,
                      const std::vector<std::int64_t>& start, const Array& x) {
  const std::string folder = is_new_ ? at(name) : stage(team);
  if (!is_new_) team.once([&] { link_folder(call_, at(name), folder); });
  const WrittenKeys keys = write_chunks(team, {call_, meta, folder, start, at(name), meta.shape}, x);
  team.together([&] { remove_empty(folder, keys.empty); });
  if (!is_new_) team.once([&] { place_->commit(at(name)); });
}

void Store::make_group(const Team& team, const std::string& name) {
  team.once([&] {
    make_groups(name);
    if (!is_new_) consolidate();
  });
}

void Store::make_groups(const std::string& name) {
  if (name.empty()) return;
  make_groups(parent_name(name));
  const ZarrNode node = read_node(call_, at(name));
  if (node.kind == ZarrNode::Kind::group) return;
  if (node.kind == ZarrNode::Kind::array)
    throw IoError(call_ + ": " + in_quotes(path_) + " has an array " + in_quotes(name) +
                  ", which holds no others; choose another name");
  std::error_code error;
  fs::create_directory(at(name), error);
  if (error)
    throw IoError(call_ + ": the folder " + in_quotes(at(name)) + " cannot be made: " + error.message() +
                  "; check the permissions and the free space");
  replace_document(at(name), group_document(Json::object()));
  sync_folder_of(call_, at(name));
}

void Store::set_attributes(const Team& team, const std::string& name,
                           const std::function<void(Json&)>& change) {
  team.once([&] {
    const std::string path = at(name) + "/zarr.json";
    if (!fs::exists(path))
      throw IoError(call_ + ": " + in_quotes(path_) + " has no " + in_quotes(name) +
                    "; make the array or group first");
    Json document = parse_document(read_text(call_, path), "zarr.json");
    if (!document.contains("attributes")) document["attributes"] = Json::object();
    change(document["attributes"]);
    replace_document(at(name), document);
    if (!is_new_) consolidate();
  });
}

void Store::replace_document(const std::string& folder, const Json& document) {
  const std::string target = folder + "/zarr.json", temporary = target + ".tmp-" + random_name();
  try {
    write_document(call_, temporary, document);
    fault_point("document");
    if (std::rename(temporary.c_str(), target.c_str()) != 0)
      throw IoError(call_ + ": " + in_quotes(target) + " cannot be replaced: " + std::strerror(errno) +
                    "; check the permissions of the folder");
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  sync_folder_of(call_, target);
}

void Store::consolidate() {
  Json document = parse_document(read_text(call_, root_ + "/zarr.json"), "zarr.json");
  Json metadata = Json::object();
  for (auto& [name, child] : documents_below(call_, root_)) metadata[name] = std::move(child);
  Json consolidated = {{"kind", "inline"}, {"must_understand", false}, {"metadata", std::move(metadata)}};
  if (document.value("consolidated_metadata", Json()) == consolidated) return;
  document["consolidated_metadata"] = std::move(consolidated);
  replace_document(root_, document);
}
// Drops consolidated metadata before an array is replaced: readers must not combine old metadata with new
// chunks.
void Store::drop_consolidated() {
  Json document = parse_document(read_text(call_, root_ + "/zarr.json"), "zarr.json");
  if (document.erase("consolidated_metadata") > 0) replace_document(root_, document);
}

void Store::commit(const Team& team) {
  team.once([&] {
    consolidate();
    if (is_new_) place_->commit(place_->target());
    root_ = place_->target();
    fault_point("saved");
  });
  root_ = team.from_first(root_);
  is_new_ = false;
}
void Store::release(const Team& team) {
  team.once([&] { place_.reset(); });
}

}  // namespace tessera::io::zarr
