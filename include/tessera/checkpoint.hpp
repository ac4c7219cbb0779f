/// @file
/// Checkpoints of long jobs: written in the background, the newest few kept, restored at the start.
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
// The structure of a tree without its numbers, which change from step to step.
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
  int keep = 0;              ///< number of newest steps to keep, older ones are removed; 0: all
  int every = 1;             ///< save accepts multiples of this number and ignores other steps
  bool asynchronous = true;  ///< save returns when the values are captured, and a thread writes them
};

/// The steps of one job in one folder, as io::checkpoint::save writes them. Every call is collective over all
/// ranks. At most one save runs at a time; it shares its values with the program's arrays, which are
/// immutable: nothing is copied, and arrays that the program releases meanwhile stay in memory until they are
/// written (they count among the live bytes of TESSERA_MEM_LIMIT). The thread makes no MPI calls.
///
/// A step gets its name when all ranks have written their parts: the first rank's thread learns this through
/// files, so that a completely written step survives any later failure of the program. A job that dies
/// earlier leaves the previous step. An error is raised by the next save, whether or not that one accepts its
/// step, or by wait(); if neither is called, it is logged and the job ends with status 74. Other calls that
/// read or save in the same folder first wait for the running save.
///
/// Retention counts complete steps up to the one just saved, which is always kept. Later numbers, of another
/// run or from before the program resumed from an older step, are left alone and warned about once. A damaged
/// step that restore skipped, or that blocks a save, is renamed to step_N.damaged.
class Manager {
 public:
  /// The first save creates the folder. ArgumentError: keep below 0, every below 1.
  explicit Manager(std::string dir, ManagerOptions options = {},
                   std::source_location where = std::source_location::current());
  /// Waits, and logs an error, with which the job ends in status 74. While an exception is passing, each rank
  /// waits for its own thread, and the first one up to a minute for the others' files.
  ~Manager();
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  /// Saves a tree as this step if it is due and does not exist intact yet; returns whether it does. Numbers
  /// in the tree are not saved, and may differ from step to step. IoError: this save cannot begin, or the
  /// previous one has failed (with its step and reason; this one is then not begun).
  template <class Tree>
  bool save(int step, const Tree& tree, std::source_location where = std::source_location::current()) {
    return save_leaves(step, tree_leaves(tree), detail::structure_without_numbers(tree), false, where);
  }
  /// Saves a tree as this step, due or not, unless it exists; the step is on the disk when this returns. For
  /// the last step, and for on_preemption. IoError as save.
  template <class Tree>
  void save_now(int step, const Tree& tree, std::source_location where = std::source_location::current()) {
    save_leaves(step, tree_leaves(tree), detail::structure_without_numbers(tree), true, where);
  }
  /// Returns when no save is running. IoError: the save has failed.
  void wait(std::source_location where = std::source_location::current());

  /// Loads the newest intact step into the tree, whose leaves keep their shardings and whose numbers are
  /// kept. Returns the step's number, or nullopt if the folder has no step; the tree is then unchanged. Works
  /// on any number of ranks and any mesh. IoError as io::checkpoint::restore: there are steps but none is
  /// intact, or the system refuses to read the newest, which tells nothing about its contents (tried four
  /// times in two seconds).
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
