#include "python/trees.hpp"

#include <string>

#include "python/module.hpp"

namespace tessera::python {
namespace {

// Registered classes: type -> (flatten, unflatten); and parts of structures: a type, or (type, value) ->
// number.
struct Registry {
  py::dict classes, values;
};
Registry& registry() {
  static auto* const one = new Registry();
  return *one;
}

// Counts the nesting depth, so that a container that contains itself raises a RecursionError instead of
// crashing.
class Deeper {
 public:
  Deeper() {
    if (Py_EnterRecursiveCall(": a tree of arrays contains itself, or is nested more deeply than "
                              "sys.getrecursionlimit()") != 0)
      throw py::error_already_set();
  }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;
  ~Deeper() { Py_LeaveRecursiveCall(); }
};

// A number that is the same for equal objects of one type, and different for all others.
std::string number_of(const py::object& object) {
  auto& values = registry().values;
  if (!values.contains(object)) values[object] = py::int_(values.size());
  return "#" + py::cast<std::string>(py::str(values[object]));
}

Tree container(Tree::Kind kind, py::object type, py::object names) {
  return {kind, std::move(type), std::move(names), {}};
}

bool is_named_tuple(PyObject* object) {
  return PyTuple_Check(object) && !PyTuple_CheckExact(object) && PyObject_HasAttrString(object, "_fields");
}

Tree flatten_dict(py::handle object, std::vector<Array>& leaves, Numbers numbers) {
  const auto items = py::reinterpret_borrow<py::dict>(object);
  py::list keys = py::reinterpret_steal<py::list>(PyDict_Keys(items.ptr()));
  if (PyList_Sort(keys.ptr()) != 0) {  // keys of different types cannot be compared
    PyErr_Clear();
    keys = py::module_::import("builtins")
               .attr("sorted")(keys, py::arg("key") = py::module_::import("builtins").attr("repr"));
  }
  Tree tree = container(Tree::Kind::dict, py::type::of(object), keys);
  for (const auto key : keys) tree.children.push_back(flatten(items[key], leaves, numbers));
  return tree;
}

Tree flatten_dataclass(py::handle object, std::vector<Array>& leaves, Numbers numbers) {
  py::list names;
  for (const auto field : py::module_::import("dataclasses").attr("fields")(object))
    names.append(field.attr("name"));
  Tree tree = container(Tree::Kind::dataclass, py::type::of(object), names);
  for (const auto name : names) tree.children.push_back(flatten(py::getattr(object, name), leaves, numbers));
  return tree;
}

Tree flatten_registered(py::handle object, std::vector<Array>& leaves, Numbers numbers) {
  const py::tuple functions = registry().classes[py::type::of(object)];
  const py::tuple parts = functions[0](object);
  Tree tree = container(Tree::Kind::registered, py::type::of(object), parts[1]);
  for (const auto child : py::tuple(parts[0])) tree.children.push_back(flatten(child, leaves, numbers));
  return tree;
}

Tree flatten_other(py::handle object, std::vector<Array>& leaves, Numbers numbers) {
  if (py::isinstance<random::Key>(object)) {
    leaves.push_back(object.cast<const random::Key&>().data);
    Tree tree = container(Tree::Kind::key, {}, {});
    tree.children.emplace_back().kind = Tree::Kind::array;
    return tree;
  }
  PyObject* raw = object.ptr();
  const bool is_number =
      PyBool_Check(raw) || PyLong_Check(raw) || PyFloat_CheckExact(raw) || PyComplex_CheckExact(raw);
  Value value;
  if ((numbers == Numbers::leaves || !is_number) && read_value(object, value)) {
    leaves.push_back(value.array);
    return {Tree::Kind::array, {}, {}, {}};
  }
  if (registry().classes.contains(py::type::of(object))) return flatten_registered(object, leaves, numbers);
  if (PyObject_HasAttrString(raw, "__dataclass_fields__") == 1 && !PyType_Check(raw))
    return flatten_dataclass(object, leaves, numbers);
  return container(Tree::Kind::other, {}, py::reinterpret_borrow<py::object>(object));
}

py::object rebuild_named(const Tree& tree, const py::list& children) {
  switch (tree.kind) {
    case Tree::Kind::dict: {
      py::dict items;
      std::size_t n = 0;
      for (const auto key : tree.names) items[key] = children[n++];
      return items;
    }
    case Tree::Kind::dataclass: {
      const py::object made = tree.type.attr("__new__")(tree.type);
      const py::object set =
          py::module_::import("builtins").attr("object").attr("__setattr__");  // works on frozen ones too
      std::size_t n = 0;
      for (const auto name : tree.names) set(made, name, children[n++]);
      return made;
    }
    case Tree::Kind::registered: {
      const py::tuple functions = registry().classes[tree.type];
      return functions[1](tree.names, py::tuple(children));
    }
    default: return tree.type(*py::tuple(children));  // a named tuple
  }
}

}  // namespace

bool Tree::has_only_arrays() const {
  if (kind == Kind::other) return false;
  for (const auto& child : children)
    if (!child.has_only_arrays()) return false;
  return true;
}

Tree flatten(py::handle object, std::vector<Array>& leaves, Numbers numbers) {
  if (const Array* array = array_in(object)) {
    leaves.push_back(*array);
    return {Tree::Kind::array, {}, {}, {}};
  }
  PyObject* raw = object.ptr();
  if (raw == Py_None) return {Tree::Kind::none, {}, {}, {}};
  const Deeper level;
  if (PyDict_Check(raw)) return flatten_dict(object, leaves, numbers);
  if (!PyTuple_Check(raw) && !PyList_Check(raw)) return flatten_other(object, leaves, numbers);
  const bool is_named = is_named_tuple(raw);
  Tree tree = container(is_named             ? Tree::Kind::named_tuple
                        : PyTuple_Check(raw) ? Tree::Kind::tuple
                                             : Tree::Kind::list,
                        is_named ? py::object(py::type::of(object)) : py::object(), {});
  const auto count = static_cast<std::size_t>(PySequence_Fast_GET_SIZE(raw));
  tree.children.reserve(count);
  for (std::size_t i = 0; i < count; ++i)
    tree.children.push_back(
        flatten(PySequence_Fast_GET_ITEM(raw, static_cast<py::ssize_t>(i)), leaves, numbers));
  return tree;
}

py::object rebuild(const Tree& tree, const std::function<py::object(std::size_t)>& leaf, std::size_t& next) {
  if (tree.kind == Tree::Kind::array) return leaf(next++);
  if (tree.kind == Tree::Kind::none) return py::none();
  if (tree.kind == Tree::Kind::other) return tree.names;
  if (tree.kind == Tree::Kind::key) {
    const py::object data = leaf(next++);
    const Array* array = array_in(data);
    return array != nullptr ? py::cast(random::Key{*array}) : data;
  }
  py::list children(tree.children.size());
  for (std::size_t i = 0; i < tree.children.size(); ++i) children[i] = rebuild(tree.children[i], leaf, next);
  if (tree.kind == Tree::Kind::list) return children;
  if (tree.kind == Tree::Kind::tuple) return py::tuple(children);
  return rebuild_named(tree, children);
}
py::object rebuild(const Tree& tree, const std::vector<Array>& leaves, std::size_t& next) {
  if (tree.kind == Tree::Kind::array) return py::cast(leaves[next++]);
  return rebuild(
      tree, [&](std::size_t n) { return py::cast(leaves[n]); }, next);
}
py::object rebuild(const Tree& tree, const std::vector<Array>& leaves) {
  std::size_t next = 0;
  return rebuild(tree, leaves, next);
}

detail::TreeShape shape_of(const Tree& tree) {
  detail::TreeShape shape;
  shape.is_leaf = tree.kind == Tree::Kind::array;
  for (const auto& child : tree.children) shape.children.push_back(shape_of(child));
  return shape;
}

void append_text(const Tree& tree, Text form, std::string& text) {
  if (tree.kind == Tree::Kind::array || tree.kind == Tree::Kind::none) {
    text += tree.kind == Tree::Kind::array ? "*" : "None";
    return;
  }
  if (tree.kind == Tree::Kind::key) text += "key";
  if (tree.kind == Tree::Kind::named_tuple || tree.kind == Tree::Kind::dataclass ||
      tree.kind == Tree::Kind::registered)
    text +=
        form == Text::exact ? number_of(tree.type) : py::cast<std::string>(tree.type.attr("__qualname__"));
  if (tree.kind == Tree::Kind::other || tree.kind == Tree::Kind::registered)
    text += "=" + (form == Text::exact ? number_of(py::make_tuple(py::type::of(tree.names), tree.names))
                                       : py::cast<std::string>(py::repr(tree.names)));
  if (tree.kind == Tree::Kind::other) return;
  const char open = tree.kind == Tree::Kind::list ? '[' : tree.kind == Tree::Kind::dict ? '{' : '(';
  text += open;
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    if (tree.kind == Tree::Kind::dict) text += py::cast<std::string>(py::repr(py::list(tree.names)[i])) + ":";
    append_text(tree.children[i], form, text);
    text += ',';
  }
  text += open == '[' ? ']' : open == '{' ? '}' : ')';
}
std::string text_of(const Tree& tree, Text form) {
  std::string text;
  append_text(tree, form, text);
  return text;
}

void append_leaf_names(const Tree& tree, const std::string& path, std::vector<std::string>& names) {
  if (tree.kind == Tree::Kind::array) {
    names.push_back(path);
    return;
  }
  for (std::size_t i = 0; i < tree.children.size(); ++i) {
    std::string step = "[" + std::to_string(i) + "]";
    if (tree.kind == Tree::Kind::dict)
      step = "[" + py::cast<std::string>(py::repr(py::list(tree.names)[i])) + "]";
    if (tree.kind == Tree::Kind::dataclass) step = "." + py::cast<std::string>(py::list(tree.names)[i]);
    append_leaf_names(tree.children[i], path + step, names);
  }
}

void Arguments::add(py::handle argument, Numbers numbers) {
  if (first_leaf.empty()) first_leaf.push_back(0);
  trees.push_back(flatten(argument, leaves, numbers));
  first_leaf.push_back(leaves.size());
}
py::tuple Arguments::rebuilt(const std::vector<Array>& with) const {
  std::size_t next = 0;
  py::tuple values(trees.size());
  for (std::size_t i = 0; i < trees.size(); ++i) values[i] = rebuild(trees[i], with, next);
  return values;
}

namespace {
std::size_t leaves_of(const Tree& tree) {
  std::vector<std::string> names;
  append_leaf_names(tree, "", names);
  return names.size();
}
}  // namespace

void bind_trees(py::module_& m) {
  py::module_ part = m.def_submodule("tree");
  py::class_<Tree>(part, "TreeDef")
      .def("unflatten",
           [](const Tree& tree, const std::vector<py::object>& leaves) {
             const auto count = leaves_of(tree);
             if (leaves.size() != count)
               throw py::value_error("the tree has " + std::to_string(count) + " leaves, and " +
                                     std::to_string(leaves.size()) + " were given");
             std::size_t next = 0;
             return rebuild(
                 tree, [&](std::size_t n) { return leaves[n]; }, next);
           })
      .def_property_readonly("num_leaves", &leaves_of)
      .def("__eq__",
           [](const Tree& a, const Tree& b) { return text_of(a, Text::exact) == text_of(b, Text::exact); })
      .def("__repr__", [](const Tree& tree) { return "TreeDef(" + text_of(tree) + ")"; });
  part.def("flatten", [](py::handle tree) {
    std::vector<Array> leaves;
    Tree definition = flatten(tree, leaves, Numbers::leaves);
    return py::make_tuple(leaves, std::move(definition));
  });
  part.def("register", [](py::type type, py::function flatten_function, py::function unflatten_function) {
    registry().classes[type] = py::make_tuple(flatten_function, unflatten_function);
  });
}

}  // namespace tessera::python
