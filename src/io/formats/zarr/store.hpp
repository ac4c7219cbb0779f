// A Zarr store that is open for writing: each function carries out one step on disk. The functions are
// collective; names of nodes are paths in the store, "" is the store itself.
#pragma once
#include <tessera/array.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "io/formats/zarr/folder_place.hpp"
#include "io/formats/zarr/metadata/metadata.hpp"
#include "io/team.hpp"

namespace tessera::io::zarr {

class Store {
 public:
  Store(std::string call, std::string path) : call_(std::move(call)), path_(std::move(path)) {}

  void open(const Team&, bool is_new);  // a new store is written beside the old one, until commit()
  bool is_new() const { return is_new_; }
  // The metadata of an array, on every rank; nullopt if there is no such array.
  std::optional<ArrayMeta> find(const Team&, const std::string& name) const;

  void make(const Team&, const std::string& name, const ArrayMeta&, const Array& x);
  void append(const Team&, const std::string& name, ArrayMeta before, int dim, const Array& x);
  void overwrite(const Team&, const std::string& name, const ArrayMeta&,
                 const std::vector<std::int64_t>& start, const Array& x);
  void make_group(const Team&, const std::string& name);
  // Changes the attributes of a node by `change`, on one rank.
  void set_attributes(const Team&, const std::string& name, const std::function<void(Json&)>& change);
  // Gives a new store its name and updates the consolidated metadata.
  void commit(const Team&);
  void release(const Team&);  // releases the lock

  void set_call(std::string call) { call_ = std::move(call); }
  const std::string& path() const { return path_; }

 private:
  std::string at(const std::string& name) const { return name.empty() ? root_ : root_ + "/" + name; }
  std::string stage(const Team&);  // an empty folder for chunks that are moved later
  void make_groups(const std::string& name);
  void replace_document(const std::string& folder, const Json&);
  void consolidate();
  void drop_consolidated();

  std::string call_, path_, root_;
  bool is_new_ = false;
  std::optional<FolderPlace> place_;  // on the first rank
};

}  // namespace tessera::io::zarr
