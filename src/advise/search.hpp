// The search of advise: layouts as numbers, plans as costs.
#pragma once
#include <tessera/jit/advise.hpp>

#include <map>
#include <optional>
#include <vector>

namespace tessera {

// Every layout that gives each axis of the mesh to one dim of the shape or to none, without empty blocks. The
// replicated one comes first.
std::vector<Sharding> layouts_of(const Mesh&, const Shape&);
std::int64_t blocks_along(const Sharding&, const Shape&, int dim);
std::string seconds_text(double seconds);  // 18.2 us

// One mesh: choices of each leaf by number. A plan is made once for each combination.
class LayoutSearch {
 public:
  using Plan = std::function<Explanation(const std::vector<Sharding>&)>;
  struct Cost {
    double seconds = 0;
    std::int64_t bytes = 0, peak_bytes = 0, excess = 0;  // excess: bytes above the memory limit
    std::string reason = {};
    bool is_possible = true;
    bool operator<(const Cost&) const;
  };
  using Choice = std::vector<int>;

  LayoutSearch(const std::vector<detail::Leaf>&, const AdviseOptions&, Mesh, const Plan&, int most_plans);
  // Plans what is worth it. False: not every combination.
  bool run();
  const std::map<Choice, Cost>& costs() const { return costs_; }
  std::vector<Sharding> shardings_of(const Choice&) const;

 private:
  const Cost& cost_of(const Choice&);
  bool may_plan() const { return static_cast<int>(costs_.size()) < most_plans_; }
  void try_all(Choice&, std::size_t leaf);
  std::vector<Choice> beginnings() const;
  void descend(Choice);
  bool improve(Choice&, const std::vector<std::size_t>& together);

  const std::vector<detail::Leaf>& leaves_;
  const AdviseOptions& options_;
  Mesh mesh_;
  const Plan& plan_;
  int most_plans_;
  std::vector<std::vector<Sharding>> choices_;            // of each leaf
  std::vector<std::vector<std::size_t>> groups_, moves_;  // leaves of one type; what is changed at a time
  std::map<Choice, Cost> costs_;
};

}  // namespace tessera
