// Trees of Python values: arguments and results of transformed functions.
//
// Lists, tuples, named tuples, dicts (in order of their sorted keys), None, dataclasses, random keys, and
// registered classes. Arrays (also NumPy's) are leaves. A plain number is a leaf (a weakly typed array) or
// part of the structure, as the caller chooses; any other object is part of the structure.
#pragma once
#include <tessera/tree.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/convert.hpp"

namespace tessera::python {

enum class Numbers { leaves, structure };

class Tree {
 public:
  enum class Kind { array, none, tuple, list, dict, named_tuple, dataclass, key, registered, other };
  Kind kind = Kind::none;
  py::object type;  // class of named tuples, dataclasses and registered classes
  // Keys of a dict, fields of a dataclass, auxiliary data of a registered class; for `other` the value
  // itself.
  py::object names;
  std::vector<Tree> children;

  bool has_only_arrays() const;  // no value but arrays, None and containers
};

// Appends the leaves.
Tree flatten(py::handle object, std::vector<Array>& leaves, Numbers numbers);
// The tree with leaf(n) in place of leaf n.
py::object rebuild(const Tree&, const std::function<py::object(std::size_t)>& leaf, std::size_t& next);
py::object rebuild(const Tree&, const std::vector<Array>& leaves, std::size_t& next);
py::object rebuild(const Tree&, const std::vector<Array>& leaves);

detail::TreeShape shape_of(const Tree&);
// Structures are equal if their texts are. An exact text is valid within this process, for keys of caches: it
// contains numbers for types and values, and the values must be hashable. A readable text contains names and
// reprs, and is valid for files too.
enum class Text { exact, readable };
void append_text(const Tree&, Text, std::string& text);
std::string text_of(const Tree&, Text = Text::readable);
// "[0]['bias']", a name per leaf.
void append_leaf_names(const Tree&, const std::string& path, std::vector<std::string>& names);

// An option per leaf of a tree: what `leaf` reads, or a tuple, list or dict (in order of its sorted keys) of
// such. `what` begins the error.
template <class T, class Leaf> T options_tree(py::handle from, const std::string& what, Leaf leaf) {
  if (auto value = leaf(from)) return std::move(*value);
  std::vector<T> children;
  const auto add = [&](py::handle child) { children.push_back(options_tree<T>(child, what, leaf)); };
  if (PyDict_Check(from.ptr()))
    for (const auto key : py::module_::import("builtins").attr("sorted")(from)) add(from[key]);
  else if (PyTuple_Check(from.ptr()) || PyList_Check(from.ptr()))
    for (const auto child : from) add(child);
  else
    throw py::type_error(what + ", or a tuple, list or dict of those; not " +
                         py::repr(from).cast<std::string>());
  return T(std::move(children));
}

// The arguments of a call, a tree each, and their leaves.
struct Arguments {
  std::vector<Tree> trees;
  std::vector<Array> leaves;
  std::vector<std::size_t> first_leaf;  // index of each argument's first leaf, and past the last
  void add(py::handle argument, Numbers numbers);
  py::tuple rebuilt(const std::vector<Array>& with) const;
};

// An object that C++ may hold beyond the interpreter's end, and release on any thread.
template <class T> std::shared_ptr<T> kept(T value) {
  return std::shared_ptr<T>(new T(std::move(value)), [](T* held) {
    if (!Py_IsInitialized()) return;  // after the interpreter's end, which has destroyed its objects
    const py::gil_scoped_acquire locked;
    delete held;
  });
}

}  // namespace tessera::python
