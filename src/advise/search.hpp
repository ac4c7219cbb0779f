// The search of advise and of P::automatic: layouts as numbers, plans as costs.
#pragma once
#include <tessera/jit/advise.hpp>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tessera {

// Every layout that gives each axis of the mesh to one dim of the shape or to none, without empty blocks. The
// replicated one comes first.
std::vector<Sharding> layouts_of(const Mesh&, const Shape&);
std::int64_t blocks_along(const Sharding&, const Shape&, int dim);

// An array whose layout is searched, with its choices by number. nullopt: no layout is imposed.
struct SearchedArray {
  Shape shape;
  Dtype dtype;
  std::vector<std::optional<Sharding>> choices;
  std::size_t given = 0;  // the choice that the program has now
};

// Chooses for several arrays together. A plan is made once for each combination.
class LayoutSearch {
 public:
  using Choice = std::vector<int>;
  using Layouts = std::vector<std::optional<Sharding>>;
  using Plan = std::function<Explanation(const Layouts&)>;
  struct Cost {
    double seconds = 0;
    std::int64_t bytes = 0, peak_bytes = 0, excess = 0;  // excess: bytes above the memory limit
    std::string reason = {};
    bool is_possible = true;
    bool operator<(const Cost&) const;
  };

  // memory_limit_bytes 0: no limit.
  LayoutSearch(std::vector<SearchedArray>, std::int64_t memory_limit_bytes, Plan, int most_plans);
  // Plans what is worth it. False: not every combination.
  bool run();
  const std::map<Choice, Cost>& costs() const { return costs_; }
  const Choice& best() const;
  Layouts layouts_of_choice(const Choice&) const;

 private:
  const Cost& cost_of(const Choice&);
  bool may_plan() const { return static_cast<int>(costs_.size()) < most_plans_; }
  void try_all(Choice&, std::size_t leaf);
  std::vector<Choice> beginnings() const;
  void descend(Choice);
  bool improve(Choice&, const std::vector<std::size_t>& together);
  bool improve_pairs(Choice&);

  std::vector<SearchedArray> arrays_;
  std::int64_t memory_limit_bytes_;
  Plan plan_;
  int most_plans_;
  std::vector<std::vector<std::size_t>> groups_, moves_;  // arrays of one type; what is changed at a time
  std::map<Choice, Cost> costs_;
};

}  // namespace tessera
