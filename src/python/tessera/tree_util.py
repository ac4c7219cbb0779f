"""Trees: lists, tuples, named tuples, dicts, None, dataclasses, keys and registered classes, with arrays as leaves."""
import builtins
import copy
import dataclasses
import functools
import typing

from . import _core

__all__ = ["tree_map", "tree_leaves", "tree_flatten", "tree_unflatten", "tree_structure", "tree_reduce", "tree_all", "tree_transpose", "tree_broadcast", "tree_flatten_with_path",
           "tree_leaves_with_path", "tree_map_with_path", "keystr", "all_leaves", "DictKey", "SequenceKey", "GetAttrKey", "FlattenedIndexKey", "register_pytree_node",
           "register_pytree_node_class", "register_pytree_with_keys", "register_dataclass", "register_static", "Partial"]

_registered = {}  # class: (flatten, unflatten), beside the binding's own table


@dataclasses.dataclass(frozen=True)
class DictKey:
    """The way to an entry of a dict."""

    key: typing.Any

    def __str__(self):
        return f"[{self.key!r}]"


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """The way to an element of a list or tuple."""

    idx: int

    def __str__(self):
        return f"[{self.idx}]"


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """The way to a field of a named tuple or dataclass."""

    name: str

    def __str__(self):
        return f".{self.name}"


@dataclasses.dataclass(frozen=True)
class FlattenedIndexKey:
    """The way to a child of a registered class."""

    key: int

    def __str__(self):
        return f"[<flat index {self.key}>]"


def _parts(node):
    """(keys, children, how to put new children together) of an inner node; None for a leaf."""
    kind = type(node)
    if node is None:
        return [], [], lambda _: None
    if kind in _registered:
        children, aux = _registered[kind][0](node)
        children = list(children)
        return [FlattenedIndexKey(n) for n in range(len(children))], children, lambda new: _registered[kind][1](aux, new)
    if isinstance(node, dict):
        keys = sorted(node)
        return [DictKey(k) for k in keys], [node[k] for k in keys], lambda new: _changed(node, dict.__setitem__, keys, new)
    if isinstance(node, tuple) and hasattr(node, "_fields"):
        return [GetAttrKey(n) for n in node._fields], list(node), lambda new: kind(*new)
    if isinstance(node, (list, tuple)):
        return [SequenceKey(n) for n in range(len(node))], list(node), kind
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        names = [f.name for f in dataclasses.fields(node)]
        return [GetAttrKey(n) for n in names], [getattr(node, n) for n in names], lambda new: _changed(node, object.__setattr__, names, new)
    return None


def _changed(node, change, names, values):
    """A copy of a dict or dataclass with other values."""
    made = copy.copy(node)
    for name, value in zip(names, values):
        change(made, name, value)
    return made


def _is_structure(node):
    """Whether a node that has no children is part of the structure, such as a string."""
    return not _core.tree.flatten(node)[0]


class _Structure:
    """The structure of a tree whose leaves may be nodes (is_leaf)."""

    def __init__(self, skeleton):
        self.skeleton = skeleton

    def unflatten(self, leaves):
        at = iter(leaves)
        return _rebuilt(self.skeleton, lambda _: next(at))

    def __eq__(self, other):
        return isinstance(other, _Structure) and self.skeleton == other.skeleton

    __hash__ = None

    @property
    def num_leaves(self):
        return len(tree_leaves(self.skeleton, lambda node: node is _leaf))

    def __repr__(self):
        return f"TreeDef({self.skeleton})"


class _Leaf:
    def __repr__(self):
        return "*"


_leaf = _Leaf()


def _rebuilt(tree, of_leaf, is_leaf=None):
    """The tree with of_leaf(leaf) in place of each leaf."""
    parts = None if tree is _leaf or is_leaf is not None and is_leaf(tree) else _parts(tree)
    return of_leaf(tree) if parts is None else parts[2]([_rebuilt(child, of_leaf, is_leaf) for child in parts[1]])


def tree_flatten(tree, is_leaf=None):
    """(leaves, definition). Plain numbers are leaves, and what is_leaf(node) says."""
    if is_leaf is None:
        return _core.tree.flatten(tree)
    leaves = []
    skeleton = _rebuilt(tree, lambda leaf: leaves.append(leaf) or _leaf, is_leaf)
    return leaves, _Structure(skeleton)


def tree_leaves(tree, is_leaf=None):
    """The leaves of a tree, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    """The structure of the tree, without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf)...], definition): a path is a tuple of keys."""
    pairs = []

    def walk(node, path):
        parts = None if is_leaf is not None and is_leaf(node) else _parts(node)
        if parts is None:
            if is_leaf is not None or not _is_structure(node):
                pairs.append((path, node))
            return
        for key, child in zip(parts[0], parts[1]):
            walk(child, (*path, key))

    walk(tree, ())
    return pairs, tree_structure(tree, is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf)...]."""
    return tree_flatten_with_path(tree, is_leaf)[0]


def tree_map_with_path(function, tree, *rest, is_leaf=None):
    """function(path, leaf, other leaves...) of every leaf."""
    paths = iter([path for path, _ in tree_leaves_with_path(tree, is_leaf)])
    return tree_map(lambda *leaves: function(next(paths), *leaves), tree, *rest, is_leaf=is_leaf)


def keystr(path, *, simple=False, separator=""):
    """A path as text: ['w'][0], or w and 0 joined by the separator if simple."""
    return separator.join(str(dataclasses.astuple(key)[0]) if simple else str(key) for key in path)


def all_leaves(values):
    """Whether none of the values is an inner node."""
    return builtins.all(_parts(value) is None for value in values)


def tree_transpose(outer_treedef, inner_treedef, tree):
    """A tree of trees turned inside out: the inner structure, with the outer one in place of each leaf. Without inner_treedef: a list."""
    leaves = tree_leaves(tree)
    count = len(leaves) // outer_treedef.num_leaves
    inner = inner_treedef if inner_treedef is not None else tree_structure(list(range(count)))
    return inner.unflatten([outer_treedef.unflatten(leaves[n::count]) for n in range(count)])


def tree_broadcast(prefix, tree, is_leaf=None):
    """The tree with each leaf of the prefix in place of all leaves below it."""
    parts = None if is_leaf is not None and is_leaf(prefix) else _parts(prefix)
    if parts is None:
        return tree_map(lambda _: prefix, tree)
    return _parts(tree)[2]([tree_broadcast(p, t, is_leaf) for p, t in zip(parts[1], _parts(tree)[1])])


def tree_unflatten(definition, leaves):
    """The tree with these leaves."""
    return definition.unflatten(list(leaves))


def tree_map(function, tree, *rest, is_leaf=None):
    """Applies function to every leaf, together with the corresponding leaves of the other trees; what is_leaf(node) says is a leaf, too."""
    if is_leaf is not None:
        others = [iter(_beside(tree, other, is_leaf)) for other in rest]
        return _rebuilt(tree, lambda leaf: function(leaf, *(next(o) for o in others)), is_leaf)
    leaves, definition = _core.tree.flatten(tree)
    others = []
    for other in rest:
        more, structure = _core.tree.flatten(other)
        if not structure == definition:
            raise ValueError(f"tree_map at {_core.here()}: the trees differ in structure: {definition} and {structure}")
        others.append(more)
    return definition.unflatten([function(*at) for at in zip(leaves, *others)])


def _beside(tree, other, is_leaf):
    """The parts of another tree where the leaves of the first are."""
    if is_leaf(tree) or _parts(tree) is None:
        return [other]
    mine, theirs = _parts(tree), _parts(other)
    if theirs is None or mine[0] != theirs[0]:
        raise ValueError(f"tree_map at {_core.here()}: the trees differ in structure: {tree_structure(tree, is_leaf)} and {tree_structure(other, is_leaf)}")
    return [part for a, b in zip(mine[1], theirs[1]) for part in _beside(a, b, is_leaf)]


def tree_reduce(function, tree, *initial, is_leaf=None):
    """functools.reduce over the leaves."""
    return functools.reduce(function, tree_leaves(tree, is_leaf), *initial)


def tree_all(tree, is_leaf=None):
    """Whether all leaves are true. Collective: reads them."""
    return builtins.all(bool(leaf) for leaf in tree_leaves(tree, is_leaf))


def register_pytree_node(cls, flatten, unflatten):
    """Values of the class are inner nodes of trees: flatten(value) -> (children, aux); unflatten(aux, children) -> value."""
    _core.tree.register(cls, flatten, unflatten)
    _registered[cls] = flatten, unflatten


def register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten=None):
    """register_pytree_node by a flatten_with_keys(value) -> ((key, child)..., aux)."""
    def children(value):
        pairs, aux = flatten_with_keys(value)
        return [child for _, child in pairs], aux
    register_pytree_node(cls, flatten or children, unflatten)


def register_static(cls):
    """Values of the class have no leaves: all of them is structure."""
    register_pytree_node(cls, lambda value: ((), value), lambda value, _: value)
    return cls


def register_pytree_node_class(cls):
    """A class with tree_flatten and tree_unflatten, as a decorator."""
    register_pytree_node(cls, lambda value: value.tree_flatten(), cls.tree_unflatten)
    return cls


def register_dataclass(cls, data_fields=None, meta_fields=()):
    """A dataclass some of whose fields are part of the structure."""
    data = [f.name for f in dataclasses.fields(cls) if f.name not in meta_fields] if data_fields is None else list(data_fields)

    def unflatten(aux, children):
        return cls(**dict(zip(data, children)), **dict(zip(meta_fields, aux)))

    register_pytree_node(cls, lambda value: ([getattr(value, n) for n in data], tuple(getattr(value, n) for n in meta_fields)), unflatten)
    return cls


class Partial:
    """functools.partial as a tree: its arguments are children."""

    def __init__(self, function, *args, **kwargs):
        self.function, self.args, self.kwargs = function, args, kwargs

    def __call__(self, *args, **kwargs):
        return self.function(*self.args, *args, **{**self.kwargs, **kwargs})


register_pytree_node(Partial, lambda p: ((p.args, p.kwargs), p.function), lambda function, parts: Partial(function, *parts[0], **parts[1]))


# jax.tree's names.
map, leaves, flatten, unflatten, structure, reduce, all = tree_map, tree_leaves, tree_flatten, tree_unflatten, tree_structure, tree_reduce, tree_all  # noqa: A001
transpose, broadcast, flatten_with_path, leaves_with_path, map_with_path = tree_transpose, tree_broadcast, tree_flatten_with_path, tree_leaves_with_path, tree_map_with_path
