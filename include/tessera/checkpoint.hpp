/// @file
/// Checkpoints of long jobs: saved while the program goes on, the newest few kept, found again at the start.
#pragma once
#include <tessera/detail/standard.hpp>

#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <tessera/io.hpp>

namespace tessera::io::checkpoint {

namespace detail {
// The structure of a tree whatever its numbers are: they change from step to step.
template <class Tree> std::string structure_without_numbers(Tree tree) {
  tessera::detail::walk_tree(
      tree, [](const Array&) {},
      [](auto& number) {
        if constexpr (std::is_arithmetic_v<std::decay_t<decltype(number)>>) number = {};
      });
  return tessera::detail::structure_of(tree);
}
struct ManagerOfLeaves;  // for trees of other languages
}  // namespace detail

/// Options of a Manager.
struct ManagerOptions {
  int keep = 0;              ///< so many of the newest steps stay, older ones are removed; 0: all stay
  int every = 1;             ///< save takes the steps that are multiples of it, and passes over others
  bool asynchronous = true;  ///< save returns when the values are set aside, and a thread writes them
};

/// The steps of one job in one folder, as io::checkpoint::save writes them. Every call is collective over all
/// ranks. One save is under way at most; its values are shared with the program's arrays, which never change:
/// nothing is copied, and what the program lets go meanwhile stays in memory until it is written (it counts
/// among the live bytes of TESSERA_MEM_LIMIT). The thread makes no calls of MPI.
///
/// A step has its name when all ranks have written their parts: the first rank's thread finds that out by
/// files, so that a step that is written survives what happens to the program afterwards. A job that dies
/// before leaves the step before. An error is raised by the next save, whether that one takes its step or
/// not, or by wait(); where neither follows it is logged, and the job ends with status 74. Reading and saving
/// in the same folder by other calls first waits for what is under way.
///
/// Retention counts complete steps up to the one just saved, which always stays. Later numbers, of another
/// run or from before the program went back, are left alone and warned of once. A step that restore passed
/// over because it is damaged becomes step_N.damaged, and so does one that stands in the way of a save.
class Manager {
 public:
  /// The folder is made by the first save. ArgumentError: keep below 0, every below 1.
  explicit Manager(std::string dir, ManagerOptions options = {},
                   std::source_location where = std::source_location::current());
  /// Waits, and logs what went wrong: the job then ends with status 74. Where an exception passes through,
  /// each rank waits for its own thread, and the first one up to a minute for the others' files.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  /// Saves a tree as this step if it is due and not there yet, whole; whether it does. Numbers in the tree
  /// are not saved, and may differ from step to step. IoError: this save cannot begin, or the one before has
  /// failed (its step and why: this one is not begun then).
  template <class Tree>
  bool save(int step, const Tree& tree, std::source_location where = std::source_location::current()) {
    return save_leaves(step, tree_leaves(tree), detail::structure_without_numbers(tree), false, where);
  }
  /// Saves a tree as this step, due or not, unless it is there; it is on the disk when this returns. For the
  /// last step, and for on_preemption. IoError as save.
  template <class Tree>
  void save_now(int step, const Tree& tree, std::source_location where = std::source_location::current()) {
    save_leaves(step, tree_leaves(tree), detail::structure_without_numbers(tree), true, where);
  }
  /// Returns when nothing is under way. IoError: the save has failed.
  void wait(std::source_location where = std::source_location::current());

  /// Puts the newest step that is whole into the tree, whose leaves keep their shardings and whose numbers
  /// stay; its number, or nullopt where the folder has no step, and the tree stays. On any number of ranks
  /// and any mesh. IoError as io::checkpoint::restore: there are steps and none is whole, or the system does
  /// not let the newest be read, which says nothing about its bytes (tried four times in two seconds).
  template <class Tree>
  [[nodiscard]] std::optional<int> restore(Tree& tree,
                                           std::source_location where = std::source_location::current()) {
    auto [step, leaves] = restore_leaves(tree_leaves(tree), detail::structure_without_numbers(tree), where);
    if (step) tree = tessera::detail::with_leaves(tree, leaves);
    return step;
  }

 private:
  friend struct detail::ManagerOfLeaves;
  bool save_leaves(int step, const std::vector<Array>& leaves, const std::string& structure, bool now,
                   const std::source_location& where);
  std::pair<std::optional<int>, std::vector<Array>> restore_leaves(const std::vector<Array>& like,
                                                                   const std::string& structure,
                                                                   const std::source_location& where);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::io::checkpoint
