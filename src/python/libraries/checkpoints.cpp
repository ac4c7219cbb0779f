// Checkpoints of Python trees: single ones, and those of long jobs.
#include <tessera/checkpoint.hpp>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/convert.hpp"
#include "python/module.hpp"
#include "python/trees.hpp"

namespace tessera::io::checkpoint::detail {

// Access to the parts of a Manager that do not depend on the type of a tree.
struct ManagerOfLeaves {
  static bool save(Manager& manager, int step, const std::vector<Array>& leaves, const std::string& structure,
                   bool now, const std::source_location& where) {
    return manager.save_leaves(step, leaves, structure, now, where);
  }
  static auto restore(Manager& manager, const std::vector<Array>& like, const std::string& structure,
                      const std::source_location& where) {
    return manager.restore_leaves(like, structure, where);
  }
};

}  // namespace tessera::io::checkpoint::detail

namespace tessera::python {
namespace {

namespace checkpoint = io::checkpoint;
using checkpoint::Manager;
using checkpoint::detail::ManagerOfLeaves;

// A flattened tree, with the text that files and agreements use.
struct Parts {
  std::vector<Array> leaves = {};
  Tree tree;
  std::string structure;
  explicit Parts(py::handle object)
      : tree(flatten(object, leaves, Numbers::leaves)), structure(text_of(tree)) {
    // The default text of an object, which begins a leaf's: another one on each rank and in each run.
    const auto begin = structure.find("=<");
    const auto address = structure.find(" at 0x", begin);
    if (begin == std::string::npos || address == std::string::npos) return;
    if (const auto end = structure.find('>', begin); end < address) return;
    throw py::type_error("checkpoint at " + line_text(here()) + ": the tree holds " +
                         structure.substr(begin + 1, address - begin - 1) +
                         ">, of which a later run could not tell that it is the same; keep it out of the "
                         "tree, or give its class a __repr__");
  }
};

// Managers that are not closed yet, kept until the program ends: a Manager's end is collective, but Python
// destroys objects at arbitrary times.
std::vector<std::shared_ptr<Manager>>& open_managers() {
  static auto* const all = new std::vector<std::shared_ptr<Manager>>();
  return *all;
}

// Ends a running save without communication, as if an exception passed through a Manager in C++.
void give_up(std::shared_ptr<Manager> manager) {
  struct Passing {};
  try {
    const auto dropped = std::move(manager);
    throw Passing();
  } catch (const Passing&) {}
}

class Saves {
 public:
  Saves(PathValue dir, int keep, int every, bool asynchronous) : dir_(std::move(dir.value)) {
    const auto where = here();
    const py::gil_scoped_release unlocked;
    manager_ = std::make_shared<Manager>(dir_, checkpoint::ManagerOptions{keep, every, asynchronous}, where);
    open_managers().push_back(manager_);
  }
  bool save(int step, py::handle tree, bool now) {
    Manager& manager = opened();
    const Parts parts(tree);
    const auto where = here();
    const py::gil_scoped_release unlocked;
    return ManagerOfLeaves::save(manager, step, parts.leaves, parts.structure, now, where);
  }
  void wait() {
    Manager& manager = opened();
    const auto where = here();
    const py::gil_scoped_release unlocked;
    manager.wait(where);
  }
  py::tuple restore(py::handle like) {
    Manager& manager = opened();
    const Parts parts(like);
    const auto where = here();
    std::pair<std::optional<int>, std::vector<Array>> found;
    {
      const py::gil_scoped_release unlocked;
      found = ManagerOfLeaves::restore(manager, parts.leaves, parts.structure, where);
    }
    if (!found.first) return py::make_tuple(py::none(), like);
    return py::make_tuple(*found.first, rebuild(parts.tree, found.second));
  }
  void close() {
    if (manager_ == nullptr) return;
    wait();
    auto ended = taken();
    const py::gil_scoped_release unlocked;
    ended.reset();
  }
  void leave(bool with_exception) {
    if (!with_exception) return close();
    if (manager_ != nullptr) give_up(taken());
  }

 private:
  Manager& opened() const {
    if (manager_ == nullptr)
      throw ArgumentError("checkpoint.Manager of \"" + dir_ + "\" at " + line_text(here()) +
                          ": it is closed; make another one");
    return *manager_;
  }
  std::shared_ptr<Manager> taken() {
    std::erase(open_managers(), manager_);
    return std::exchange(manager_, nullptr);
  }
  std::string dir_;
  std::shared_ptr<Manager> manager_;
};

// Called at the end of the program: collective, but after an exception each rank ends its saves by itself.
void finish_managers(bool has_failed) {
  auto all = std::exchange(open_managers(), {});
  const py::gil_scoped_release unlocked;
  for (auto& manager : all) {
    if (has_failed) give_up(std::move(manager));
    manager.reset();
  }
}

void bind_steps(py::module_& m) {
  m.def(
      "save",
      [](const PathValue& directory, int step, py::handle tree) {
        const Parts parts(tree);
        const auto where = here();
        const py::gil_scoped_release unlocked;
        checkpoint::detail::save_leaves(directory, step, parts.leaves, parts.structure, where);
      },
      py::arg("directory"), py::arg("step"), py::arg("tree"),
      "Writes a tree of arrays. Collective over all ranks.");
  m.def(
      "restore",
      [](const PathValue& directory, py::handle like, std::optional<int> step) {
        const Parts parts(like);
        const auto where = here();
        std::vector<Array> restored;
        {
          const py::gil_scoped_release unlocked;
          restored =
              checkpoint::detail::restore_leaves(directory, step, parts.leaves, parts.structure, where);
        }
        return rebuild(parts.tree, restored);
      },
      py::arg("directory"), py::arg("like"), py::arg("step") = py::none(),
      "Reads the latest (or the given) step, each leaf as its counterpart in `like`. Collective over all "
      "ranks.");
  m.def(
      "latest_step", [](const PathValue& directory) { return checkpoint::latest_step(directory, here()); },
      py::arg("directory"), "The largest step that is there, or None. Not collective.");
  m.def(
      "latest_whole_step",
      [](const PathValue& directory) {
        const auto where = here();
        const py::gil_scoped_release unlocked;
        return checkpoint::latest_whole_step(directory, where);
      },
      py::arg("directory"), "The largest step that can be read, or None. Collective over all ranks.");
}

void bind_manager(py::module_& m) {
  py::class_<Saves>(
      m, "Manager",
      R"(The steps of one job in one folder, as checkpoint.save writes them: saved while the program goes on.

So many of the newest steps stay (keep; 0: all); save takes the steps that are multiples of `every`; with
asynchronous a save returns when the values are set aside, and a thread writes them: nothing is copied. One
save is under way at most. A step has its name when all ranks have written their parts, whatever happens to
the program afterwards; a job that dies before leaves the step before. An error is raised by the next save,
wait() or close(); where none follows, the program ends with status 74. A damaged step does not count among
those that stay, and becomes step_N.damaged when restore passes over it. With `with` it is closed at the end.
Plain numbers in a tree are leaves, as everywhere in Python. Every call is collective over all ranks.)")
      .def(py::init<PathValue, int, int, bool>(), py::arg("directory"), py::kw_only(), py::arg("keep") = 0,
           py::arg("every") = 1, py::arg("asynchronous") = true)
      .def(
          "save", [](Saves& saves, int step, py::handle tree) { return saves.save(step, tree, false); },
          py::arg("step"), py::arg("tree"),
          "Saves a tree as this step if it is due and not there yet; whether it does. OSError: this save "
          "cannot begin, or the one before has failed (its step and why: this one is not begun then).")
      .def(
          "save_now", [](Saves& saves, int step, py::handle tree) { saves.save(step, tree, true); },
          py::arg("step"), py::arg("tree"),
          "Saves a tree as this step, due or not, unless it is there; it is on the disk when this returns. "
          "For the last step, and for on_preemption.")
      .def("wait", &Saves::wait, "Returns when nothing is under way. OSError: the save has failed.")
      .def("restore", &Saves::restore, py::arg("like"),
           "(step, tree) of the newest step that is whole, each leaf as its counterpart in `like`; (None, "
           "like) where the folder has no step. On any number of ranks and any mesh. OSError: there are "
           "steps, and none can be read.")
      .def("close", &Saves::close, "wait, and the end of it.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](Saves& saves, const py::object& kind, py::handle, py::handle) {
        saves.leave(!kind.is_none());
      });
}

}  // namespace

void bind_checkpoints(py::module_& m) {
  py::module_ part = m.def_submodule("checkpoint");
  bind_steps(part);
  bind_manager(part);
  part.def(
      "finish_managers", &finish_managers, py::arg("has_failed"),
      "Of the package: what is under way at the end of the program. Collective over all ranks, unless it "
      "has failed.");
}

}  // namespace tessera::python
