// The compiled programs of a jitted function.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>

namespace tessera::detail {

inline constexpr std::size_t most_programs = 512;  // per function: each holds its trace and its messages

// Programs by signature; evicts the least recently used one.
template <class Program> class Programs {
 public:
  // Shared ownership: a running program must survive the compilation of others in its callbacks.
  std::shared_ptr<Program> find(const std::string& signature) {
    const auto found = known_.find(signature);
    if (found == known_.end()) return nullptr;
    found->second.asked = ++asked_;
    return found->second.program;
  }
  std::shared_ptr<Program> add(const std::string& signature, Program program) {
    if (known_.size() >= most_programs) forget_one();
    last_signature = signature;
    return (known_[signature] = {std::make_shared<Program>(std::move(program)), ++asked_}).program;
  }
  std::string last_signature;  // signature of the latest compilation

 private:
  struct Entry {
    std::shared_ptr<Program> program;
    std::uint64_t asked = 0;
  };
  void forget_one() {
    auto oldest = known_.begin();
    for (auto it = known_.begin(); it != known_.end(); ++it)
      if (it->second.asked < oldest->second.asked) oldest = it;
    known_.erase(oldest);
  }

  std::map<std::string, Entry> known_;
  std::uint64_t asked_ = 0;
};

}  // namespace tessera::detail
