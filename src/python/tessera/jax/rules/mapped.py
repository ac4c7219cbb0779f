"""shard_map, and collectives by the names of mesh axes."""
from ... import _core as c
from .. import _layouts
from .._interpret import evaluate, refuse, rule
from .._values import number_like
from .arithmetic import is_complex

_c = c.collectives
_manual = []  # names of the axes of the shard_maps whose bodies are being evaluated, the outermost first


def manual_axes():
    """Names of the mesh's axes along which the body that is being evaluated has blocks."""
    return [name for names in _manual for name in names]


def _within(names, evaluated):
    def body(*blocks):
        _manual.append(names)
        try:
            return evaluated(*blocks)
        finally:
            _manual.pop()
    return body


@rule("shard_map")
def shard_map(*operands, jaxpr, mesh, in_specs=None, out_specs=None, check_vma=None, check_rep=None, manual_axes=None, newly_manual_axes=None, in_names=None, out_names=None, auto=None, **_):
    """tessera's own: JAX has checked already how results vary."""
    specs, results = _specs(in_specs, in_names, operands), _specs(out_specs, out_names, jaxpr.outvars)
    manual = manual_axes if manual_axes is not None else newly_manual_axes
    if manual is None and auto:
        manual = [n for n in mesh.axis_names if n not in auto]
    names = [] if manual is None or set(manual) == set(mesh.axis_names) else [n for n in mesh.axis_names if n in manual]
    axes = names or list(mesh.axis_names)
    if not operands:
        body = _within(axes, lambda _: tuple(evaluate(jaxpr)))
        return list(c.shard_map(body, _layouts.mesh_of(mesh), (c.PartitionSpec(),), tuple(results), False, names)(c.zeros((), "int32")))
    partial_in, partial_out = ([_layouts.unreduced_axes(s) for s in given or ()] for given in (in_specs, out_specs))

    def evaluated(*blocks):
        found = evaluate(jaxpr, *(map(_of_first, blocks, partial_in) if any(partial_in) else blocks))
        return tuple(_reduced("psum", x, over, None) if over else x for x, over in zip(found, partial_out)) if any(partial_out) else tuple(found)

    body = _within(axes, evaluated)
    return list(c.shard_map(body, _layouts.mesh_of(mesh), tuple(specs), tuple(results), False, names)(*operands))


def _of_first(block, axes):
    """Blocks whose sum over these axes is the array: that of the first device is it, all others are zeros."""
    if not axes:
        return block
    return c.where(c.equal(_c.axis_index(axes), 0), block, number_like(0, block))


def _specs(specs, names, values):
    if specs is not None:
        return [_layouts.spec_of(s) for s in specs]
    ndim = lambda v: v.ndim if hasattr(v, "ndim") else v.aval.ndim  # noqa: E731
    return [c.PartitionSpec(*[tuple(by_dim.get(d, ())) or None for d in range(ndim(v))]) for by_dim, v in zip(names, values)]


def _names(axes):
    axes = [axes] if isinstance(axes, str) else list(axes)
    return [str(a) for a in axes if not isinstance(a, int)]


def _groups(groups):
    return None if groups is None else [list(g) for g in groups]


def _over(name, leaf):
    def collective(*operands, axes, axis_index_groups=None, **_):
        names = _names(axes)
        places = [a for a in ([axes] if isinstance(axes, (str, int)) else axes) if isinstance(a, int)]
        results = list(operands)
        if places:
            inner = {"psum": c.sum, "pmax": c.max, "pmin": c.min}[leaf]
            results = [inner(x, places) for x in results]
        return [_reduced(leaf, x, names, axis_index_groups) for x in results] if names else results
    rule(name)(collective)


def _reduced(leaf, x, names, groups):
    if x.dtype.name == "bool":
        return c.astype(_reduced(leaf, c.astype(x, "int32"), names, groups), "bool")
    if is_complex(x) and leaf != "psum":
        refuse(f"{leaf} of complex numbers")
    return getattr(_c, leaf)(x, names, _groups(groups))


for _name, _leaf in (("psum", "psum"), ("psum2", "psum"), ("psum_invariant", "psum"), ("unreduced_psum", "psum"), ("pmax", "pmax"), ("pmin", "pmin"),
                     ("psum_start", "psum"), ("psum_invariant_start", "psum"), ("unreduced_psum_start", "psum")):
    _over(_name, _leaf)


@rule("all_gather", "all_gather_invariant", "all_gather_reduced", "all_gather_start", "all_gather_reduced_start")
def all_gather(x, *, all_gather_dimension, axis_name, tiled, axis_index_groups=None, **_):
    return _c.all_gather(x, _names(axis_name), _groups(axis_index_groups), all_gather_dimension, bool(tiled))


@rule("reduce_scatter", "psum_scatter", "unreduced_reduce_scatter", "reduce_scatter_start", "unreduced_reduce_scatter_start")
def reduce_scatter(x, *, scatter_dimension, axis_name, tiled, axis_index_groups=None, **_):
    return _c.psum_scatter(x, _names(axis_name), scatter_dimension, _groups(axis_index_groups), bool(tiled))


@rule("all_to_all", "all_to_all_start")
def all_to_all(x, *, split_axis, concat_axis, axis_name, axis_index_groups=None, tiled=False, **_):
    return _c.all_to_all(x, _names(axis_name), split_axis, concat_axis, _groups(axis_index_groups), bool(tiled))


@rule("ppermute", "ppermute_start")
def ppermute(*operands, axis_name, perm, **_):
    return [_c.ppermute(x, _names(axis_name), [tuple(int(i) for i in p) for p in perm]) for x in operands]


@rule("pbroadcast", "pbroadcast_start")
def pbroadcast(*operands, axis_name=None, source=None, axes=None, **_):
    """In versions before 0.7 the marker of values that vary goes by this name, too."""
    return list(operands) if source is None else [_c.pbroadcast(x, _names(axis_name), source) for x in operands]


@rule("all_gather_done", "psum_done", "reduce_scatter_done", "all_to_all_done", "pbroadcast_done", "ppermute_done", "pcast", "preduced", "vary_unreduced_cast", "vary_unreduced_cast_p",
      "reduced_vary_cast", "pvary", "pbroadcast_invariant", "invarying")
def done(*operands, **_):
    return list(operands)


@rule("axis_index")
def axis_index(*, axis_name, **_):
    names = _names(axis_name)
    index = None
    for name in names:
        here = c.astype(_c.axis_index(name), "int32")
        index = here if index is None else c.add(c.multiply(index, number_like(_c.axis_size(name), index)), here)
    return index


@rule("axis_size")
def axis_size(*, axis_name, **_):
    return c.full((), _c.axis_size(_names(axis_name)), "int32")


@rule("ragged_all_to_all")
def ragged_all_to_all(operand, output, input_offsets, send_sizes, output_offsets, recv_sizes, *, axis_name, axis_index_groups=None, **_):
    """Every rank sees the others' operands and offsets, and takes the slices that are meant for it."""
    if axis_index_groups is not None:
        refuse("ragged_all_to_all with groups")
    names = _names(axis_name)
    gathered = [_c.all_gather(x, names, None, 0, False) for x in (operand, input_offsets, send_sizes, output_offsets)]
    me = axis_index(axis_name=names)
    rows = c.arange_integers(0, output.shape[0], 1, "int32")
    for rank in range(gathered[0].shape[0]):
        theirs = gathered[0][rank]
        start, size, at = (c.astype(c.take(g[rank], me, 0), "int32") for g in gathered[1:])
        place = c.add(c.subtract(rows, at), start)
        is_ours = c.bitwise_and(c.greater_equal(rows, at), c.less(rows, c.add(at, size)))
        taken = c.take(theirs, c.clip(place, 0, max(theirs.shape[0] - 1, 0)), 0)
        output = c.where(c.reshape(is_ours, [-1] + [1] * (output.ndim - 1)), taken, output)
    return output
