"""Trees: lists, tuples, named tuples, dicts, None, dataclasses, keys and registered classes, with arrays as leaves."""
from . import _core

__all__ = ["tree_map", "tree_leaves", "tree_flatten", "tree_unflatten", "tree_structure", "tree_reduce", "tree_all", "register_pytree_node", "register_pytree_node_class",
           "register_dataclass", "Partial"]


def tree_flatten(tree):
    """(leaves, definition). Plain numbers are leaves."""
    return _core.tree.flatten(tree)


def tree_leaves(tree):
    """The arrays of a tree, in order."""
    return _core.tree.flatten(tree)[0]


def tree_structure(tree):
    """The structure of the tree, without its leaves."""
    return _core.tree.flatten(tree)[1]


def tree_unflatten(definition, leaves):
    """The tree with these leaves."""
    return definition.unflatten(list(leaves))


def tree_map(function, tree, *rest):
    """Applies function to every leaf, together with the corresponding leaves of the other trees."""
    leaves, definition = _core.tree.flatten(tree)
    others = []
    for other in rest:
        more, structure = _core.tree.flatten(other)
        if not structure == definition:
            raise ValueError(f"tree_map at {_core.here()}: the trees differ in structure: {definition} and {structure}")
        others.append(more)
    return definition.unflatten([function(*at) for at in zip(leaves, *others)])


def tree_reduce(function, tree, *initial):
    """functools.reduce over the leaves."""
    import functools
    return functools.reduce(function, tree_leaves(tree), *initial)


def tree_all(tree):
    """Whether all leaves are true. Collective: reads them."""
    return all(bool(leaf) for leaf in tree_leaves(tree))


def register_pytree_node(cls, flatten, unflatten):
    """Values of the class are inner nodes of trees: flatten(value) -> (children, aux); unflatten(aux, children) -> value."""
    _core.tree.register(cls, flatten, unflatten)


def register_pytree_node_class(cls):
    """A class with tree_flatten and tree_unflatten, as a decorator."""
    register_pytree_node(cls, lambda value: value.tree_flatten(), cls.tree_unflatten)
    return cls


def register_dataclass(cls, data_fields=None, meta_fields=()):
    """A dataclass some of whose fields are part of the structure."""
    import dataclasses
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
map, leaves, flatten, unflatten, structure, reduce = tree_map, tree_leaves, tree_flatten, tree_unflatten, tree_structure, tree_reduce  # noqa: A001
