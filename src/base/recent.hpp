// A map of at most `most` entries that evicts the least recently used one.
#pragma once
#include <cstddef>
#include <functional>
#include <list>
#include <unordered_map>
#include <utility>

namespace tessera {

template <class Key, class Value, class Hash = std::hash<Key>> class RecentMap {
 public:
  explicit RecentMap(std::size_t most) : most_(most) {}

  // nullptr if the key is unknown. A found entry stays until `most` others have been asked for.
  Value* find(const Key& key) {
    const auto found = place_of_.find(key);
    if (found == place_of_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }
  Value& insert(const Key& key, Value value) {
    if (Value* known = find(key)) return *known = std::move(value);
    if (entries_.size() >= most_) {
      place_of_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(value));
    place_of_.emplace(key, entries_.begin());
    return entries_.front().second;
  }
  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<Key, Value>>;
  std::size_t most_;
  Entries entries_;  // the most recently used first
  std::unordered_map<Key, typename Entries::iterator, Hash> place_of_;
};

}  // namespace tessera
