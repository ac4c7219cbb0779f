#!/usr/bin/env python3
"""stubs.py FOLDER: a .pyi beside each module of the package that is imported, for editors and type checkers.

Signatures of Python functions are their own; those of the bindings stand in the first lines of their docstrings, as
pybind11 writes them.
"""
import inspect
import pathlib
import re
import sys
import types

sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]  # whose tessera lacks its module
sys.path.insert(0, str(pathlib.Path(sys.argv[1]).resolve().parent))  # and not by PYTHONPATH, where pip lends NumPy to a build
import tessera  # noqa: E402

head = '''import builtins as _builtins
import os as _os
import typing as _typing
from typing import Any, Callable, Collection, ContextManager, Dict, Iterator, List, Mapping, Optional, Sequence, Set, Tuple, TypeVar, Union, overload
import numpy
{imports}
ArrayLike = _typing.Union[Array, numpy.ndarray, _builtins.bool, int, float, _builtins.complex]
DtypeLike = _typing.Union[dtype, str, type, numpy.dtype]
Shape = _typing.Union[int, Sequence[int]]
Axes = _typing.Union[None, int, Sequence[int]]
AxisName = _typing.Union[str, Sequence[str]]
PathLike = _typing.Union[str, bytes, "_os.PathLike[str]"]
_T = TypeVar("_T")
_S = TypeVar("_S")
'''
names_of_core = sorted(name for name, value in vars(tessera._core).items() if inspect.isclass(value) and not name.startswith("_") and value.__module__ != "tessera._at")
cpp_types = re.compile(r"tessera(?:\._core)?\.(?:\w+\.)?(\w+)")


def plain(text):
    """A signature that Python reads: pybind11's names of C++ types become the package's, defaults become `...`."""
    text = re.sub(r"<[^<>]*>", "...", cpp_types.sub(r"\1", text))
    text = re.sub(r"\(self: [^,)]*", "(self", text)
    text = re.sub(r"(?:std::|py::)?[\w]+::[\w:]+(?:<.*?>)?", "Any", text).replace("handle", "object").replace("capsule", "object").replace("buffer", "object")
    text = re.sub(r"= (?:\w+\.)?(?:float\d+|u?int\d+|array\(.*?\)|\.\.\.)", "= ...", text)
    text = re.sub(r": function\b", ": Callable[..., Any]", text).replace("-> object", "-> Any").replace("-> function", "-> Callable[..., Any]").replace("-> cpp_function", "-> Callable[..., Any]").replace("= ()", "= ...")
    text = re.sub(r"\b(?:JitFunction|MappedFunction|Pullback)\b", "Callable[..., Any]", text).replace("Block", "numpy.ndarray").replace("TreeDef", "object")
    return text.replace("*args", "*args: object").replace("**kwargs", "**kwargs: object")


def bound_signatures(name, value):
    """(signature, doc) for each overload of a binding."""
    doc = value.__doc__ or ""
    found = re.findall(rf"^(?:\d+\. )?{re.escape(name)}(\(.*\) -> .*)$", doc, re.M)
    words = re.sub(rf"^(?:\d+\. )?{re.escape(name)}\(.*$|^Overloaded function\.$", "", doc, flags=re.M).strip()
    return [(told(name, plain(signature)), words) for signature in found] or [(told(name, "(*args: object, **kwargs: object) -> Any"), words)]


array_pair, array_triple = "Tuple[Array, Array]", "Tuple[Array, Array, Array]"
file_info, solution = "Tuple[Tuple[int, ...], dtype, str]", "Tuple[Array, Array, Array, Array]"
# Of bindings that make a Python object: named tuples, NumPy's arrays, themselves.
bound_results = {
    "__format__": "str",
    **dict.fromkeys("eig eigh lu_factor slogdet schur polar".split(), array_pair), "qr_pivoted": array_triple, "histogram2d": array_triple, "unique_all": solution,
    **dict.fromkeys("npy_info matrix_market_info hdf5_info csv_info".split(), file_info), **dict.fromkeys("cg bicgstab gmres lobpcg lanczos".split(), solution),
    **dict.fromkeys("create_device_mesh process_gather process_allgather broadcast_one_to_all".split(), "numpy.ndarray"), "item": "Union[bool, int, float, complex]",
    **dict.fromkeys(("__int__", "__index__"), "int"), "block_until_ready": "Array", **dict.fromkeys(("forbid", "limit_bytes"), "Explanation"), 
    "__exit__": "None", "coords": "Optional[Tuple[int, ...]]", "__dlpack__": "object", "compute": "Any",
}


def told(name, signature):
    if name == "__eq__":
        return "(self, other: object) -> bool"
    if name in ("assert_equal", "process_allgather", "broadcast_one_to_all"):
        signature = signature.replace("(x: object", "(x: ArrayLike")
    return signature.replace("-> Any", f"-> {bound_results[name]}") if name in bound_results else signature


# What the package's parameters are, by their names: one name means one thing everywhere.
parameter_types = {
    # lax, special, signal and linalg beyond NumPy
    **dict.fromkeys("A B C E arg1 arr c cases e fillvalue group_sizes in1 in2 init_value keys lhs lmbda matrices padding_value pred r rhs variance which z".split(), "ArrayLike"),
    **dict.fromkeys("approximate check_finite compute_expm eigvals_only exact indices_are_sorted is_stable overwrite_a overwrite_b return_sign simple symmetric transpose_kernel unique_indices".split(), "bool"),
    **dict.fromkeys("batch_group_count batch_size column_axis exponent_bits feature_group_count idx in_axis mantissa_bits num_keys out_axis reduction_dimension rounding_method".split(), "int"),
    **dict.fromkeys("base_dilation fft_lengths filter_shape in_shape lhs_dilation lhs_shape new_sizes rhs_dilation rhs_shape window_dilation window_dimensions window_shape window_strides".split(), "Sequence[int]"),
    **dict.fromkeys("computation flatten_with_keys func info_of is_leaf matvec per_platform solve tangent_solve transpose_solve".split(), "Callable[..., Any]"),
    **dict.fromkeys("distribution separator subscripts".split(), "str"), **dict.fromkeys("arg2 buffer dimension_numbers initial_guess inner_treedef kwds optimize outer_treedef precision prefix".split(), "object"),
    "c_and_lower": "Tuple[Array, bool]", "fft_type": "Union[int, str]", "file": "PathLike", "iterable": "Iterator[Any]", "number": "float", "padding": "Union[str, Sequence[Tuple[int, int]]]",
    "padding_config": "Sequence[Tuple[int, int, int]]", "preferred_element_type": "DtypeLike", "stddev": "float",
    **dict.fromkeys("x a b x1 x2 y p q xp fp values condition fill_value weights indices prepend append low high lo hi predicate update operand cotangent nan posinf neginf "
                    "default start_index index xs on_true on_false logits labels predictions targets numbers value sorter".split(), "ArrayLike"),
    **dict.fromkeys("arrays conditions choices operands".split(), "Sequence[ArrayLike]"),
    **dict.fromkeys("fun function f fn body_fun cond_fun true_fun false_fun fwd bwd rule loss init_fn activation callback".split(), "Callable[..., Any]"),
    **dict.fromkeys("keepdims descending stable invert copy endpoint include_initial reverse density rowvar bias equal_nan upper full_matrices compute_uv has_aux tiled check_vma "
                    "nesterov return_index return_inverse return_counts use_color staircase replace lower unit_diagonal keep_dims".split(), "bool"),
    **dict.fromkeys("n k num offset axis1 axis2 n_rows n_cols num_classes length minlength total_repeat_length concat_axis split_axis parts inputs outputs features batch examples "
                    "slice_size stride limit size unroll scatter_dimension".split(), "int"),
    **dict.fromkeys("rtol atol dx base d tol correction ddof rate momentum epsilon weight_decay keep_mean keep_square largest largest_norm negative_slope".split(), "float"),
    **dict.fromkeys("mode method side indexing kind expression axis_name path norm string title".split(), "str"),
    "axis": "Axes", "axes": "Axes", "dtype": "DtypeLike", "shape": "Shape", "s": "Sequence[int]", "device": "Union[Device, Sharding, PositionalSharding]",
    "sharding": "Sharding", "key": "Key", "mesh": "Mesh", "batch_spec": "PartitionSpec", "sizes": "Sequence[int]", "reps": "Shape", "tree": "_T",
    "shift": "Union[int, Sequence[int]]", "repeats": "Union[int, Sequence[int], ArrayLike]", "argnums": "Union[int, Sequence[int]]", "range": "Tuple[float, float]",
    "static_argnums": "Union[int, Sequence[int]]", "static_argnames": "Union[str, Sequence[str]]", "donate_argnums": "Union[int, Sequence[int]]", "perm": "Sequence[Tuple[int, int]]",
    **dict.fromkeys("start stop step constant_values end_values".split(), "Union[int, float, complex]"), **dict.fromkeys("min max spacing steps".split(), "ArrayLike"),
    "m": "int", "boundary": "str", "decimals": "int", "ndim": "int", "places": "Union[int, slice, Sequence[int]]", "functions": "Sequence[Union[Callable[..., Any], ArrayLike]]",
    "to_end": "ArrayLike", "to_begin": "ArrayLike", "discont": "float", "period": "float", "prevent_cse": "bool", "axis_size": "int", "bins": "Union[int, ArrayLike]", "from_": "Union[Array, DtypeLike]", "to": "DtypeLike", "digits": "int",
    "pad_width": "Union[int, Sequence[Union[int, Sequence[int]]]]", "devices": "Sequence[Device]", "where": "ArrayLike",
    "api_version": "str", "names": "Sequence[str]", "labels": "Sequence[str]", "parameters": "_T", "network": "Sequence[Dense]",
    "source": "Union[int, Sequence[int]]", "destination": "Union[int, Sequence[int]]", "init_val": "_T", "init": "_T",
    **dict.fromkeys("obj fill_value communicator definition value backend".split(), "object"), **dict.fromkeys("query scale shift weight table mask y".split(), "ArrayLike"),
    **dict.fromkeys("start_indices limit_indices strides dimensions broadcast_dimensions slice_sizes static_broadcasted_argnums nondiff_argnums".split(), "Sequence[int]"),
    **dict.fromkeys("key_block count seed dimension start_dimension stop_dimension".split(), "int"), **dict.fromkeys("is_causal strip_zeros on ordered".split(), "bool"),
    **dict.fromkeys("format trace_path signature".split(), "str"), "trans": "Union[int, str]", **dict.fromkeys("initializer flatten unflatten primitive pyfunc".split(), "Callable[..., Any]"), "alpha": "float",
    "elems": "_T", "other": "ArrayLike", "axis_index_groups": "Sequence[Sequence[int]]", "ord": "Union[int, float, str]", "index_dtype": "DtypeLike", "branches": "Sequence[Callable[..., Any]]", "excluded": "Collection[Union[int, str]]",
    "lists": "ArrayLike", "_": "object", "shapes": "Sequence[int]", "options": "object", "layout": "object", "args": "object", "kwargs": "object", "cls": "type", "data": "_T", "rows": "object",
    "data_fields": "Sequence[str]", "meta_fields": "Sequence[str]", "leaves": "Sequence[object]", "gradients": "_T", "state": "_S", "rest": "object", "initial": "object", "rules": "Callable[..., Any]",
    **dict.fromkeys("ndmin segments ind".split(), "int"), **dict.fromkeys("a_min a_max ids".split(), "ArrayLike"), **dict.fromkeys("assume_unique retstep sparse".split(), "bool"),
    "mask_func": "Callable[..., Any]", "trim": "str", "out": "None", "result": "_T", "types": "object", "ufunc": "object", "casting": "str", "wrap": "bool", "inplace": "bool", "rcond": "float", "bitorder": "str", "count": "int", "copy": "bool", "api_version": "str", "stream": "object", "max_version": "object",
    "dl_device": "object", "function": "Callable[..., Any]", "spec": "object", "name": "str", "unpack": "bool", "info": "object", "dims": "Sequence[str]", "attrs": "Dict[str, object]", "read": "Callable[..., Any]",
    "optimizer": "Union[Adam, Sgd]", "primals": "object", "shardings": "object", "in_shardings": "object", "out_shardings": "object", "in_axes": "object", "out_axes": "object", "in_specs": "object",
    "out_specs": "object", "self": "", "i": "int", "slices": "object", "places_": "object", "check_rep": "bool", "axis_names": "Sequence[str]", "largest_norm": "float", "targets": "ArrayLike",
    **dict.fromkeys("deg degrees returned full hermitian".split(), "bool"), **dict.fromkeys("axisa axisb axisc M edge_order degree".split(), "int"), **dict.fromkeys("order UPLO".split(), "str"),
    **dict.fromkeys("fweights aweights w".split(), "ArrayLike"), "cov": "Union[bool, str]",
}
# Where a name means something else.
parameters_of = {
    ("detrend", "type"): "str", ("truncated_normal", "lower"): "float", ("truncated_normal", "upper"): "float", ("standardize", "mean"): "ArrayLike", ("fromiter", "iterable"): "Sequence[object]", ("conv_transpose", "padding"): "Union[str, Sequence[Tuple[int, int]]]",
    **dict.fromkeys([("comb", "n"), ("comb", "k"), ("factorial", "n")], "ArrayLike"),
    ("load_safetensors", "tensor"): "None", ("dot_product_attention", "key"): "ArrayLike", ("dot_product_attention", "bias"): "ArrayLike", ("update", "name"): "str", ("update", "value"): "object", ("key", "seed"): "int",
    ("Dense.__init__", "bias"): "ArrayLike", ("LayerNorm.__init__", "shift"): "ArrayLike", ("finfo.__init__", "type"): "Union[DtypeLike, Array]", ("iinfo.__init__", "type"): "Union[DtypeLike, Array]",
    ("dtypes", "kind"): "Union[str, Tuple[str, ...]]", ("isdtype", "kind"): "Union[str, DtypeLike, Tuple[Union[str, DtypeLike], ...]]", ("ShapeDtypeStruct.__init__", "shape"): "Sequence[int]",
    ("result_type", "values"): "Union[ArrayLike, DtypeLike]", ("full", "value"): "ArrayLike", ("scan", "init"): "_T", ("switch", "operands"): "object", ("cond", "operands"): "object",
    ("Adam.__init__", "rate"): "Union[float, Callable[[Array], ArrayLike]]", ("Sgd.__init__", "rate"): "Union[float, Callable[[Array], ArrayLike]]", ("choice", "a"): "ArrayLike",
    **dict.fromkeys([("custom_op", name) for name in "kernel result vjp jvp batch".split()], "Optional[Callable[..., Any]]"), ("custom_op", "rule"): "Optional[str]",
    ("custom_op", "halo"): "Optional[Dict[str, Union[int, Tuple[int, int]]]]", ("custom_op", "boundary"): "Optional[str]", ("custom_op", "value"): "float",
    ("custom_op", "pass_index"): "bool", ("jit", "reproducible"): "bool", ("jit", "memory_limit_bytes"): "int", ("checkpoint_name", "x"): "_T", ("advise", "meshes"): "Union[Mesh, Sequence[Mesh], None]", ("advise", "memory_limit_bytes"): "int", ("advise", "keep"): "Sequence[int]", ("advise", "best"): "int",
    ("simulate", "trace_path"): "str", ("simulate", "trace_ranks"): "int", ("simulate", "most_messages"): "int", ("advise", "most_plans"): "int", ("device_put", "device"): "object", ("pshuffle", "perm"): "Sequence[int]", ("pswapaxes", "axis"): "int", ("all_gather", "axis"): "int", ("Partial.__init__", "args"): "object",
    ("ndindex", "shape"): "int", ("map", "xs"): "object", ("scan", "xs"): "object", ("tree_all", "tree"): "object", ("where", "condition"): "ArrayLike",
    ("vectorize", "signature"): "str", ("fromfunction", "options"): "object", ("piecewise", "args"): "object", ("put_along_axis", "indices"): "ArrayLike", ("einsum_path_text", "expression"): "str",
    ("fori_loop", "lower"): "Union[int, Array]", ("fori_loop", "upper"): "Union[int, Array]", ("split", "num"): "Union[int, Sequence[int]]", ("put", "mode"): "str", ("copyto", "where"): "ArrayLike",
    ("polydiv", "u"): "ArrayLike", ("polydiv", "v"): "ArrayLike", ("interp", "left"): "ArrayLike", ("interp", "right"): "ArrayLike", ("polyint", "coefficients"): "ArrayLike", ("polyfit", "deg"): "int",
}
functions_of_trees = {"device_put", "with_sharding_constraint", "block_until_ready", "stop_gradient", "psum", "pmean", "pmax", "pmin", "ppermute", "pbroadcast", "psum_scatter", "all_gather", "all_to_all", "pshuffle",
                      "pswapaxes"}
# Results; what is not named here is one array in these modules, and unknown in the others.
array_modules = {f"tessera.{m}" for m in "_methods _numeric _derived _edits _indices _polynomials _segments _control _create _elementwise _shapes _reductions _searching _products _primitives _convolutions _matrices _at linalg fft nn lax random special signal".split()}
results = {
    **dict.fromkeys(("__str__", "__format__"), "str"), "__delattr__": "None",
    **dict.fromkeys("array_repr array_str keystr".split(), "str"), **dict.fromkeys("frombuffer fromiter index_take".split(), "Array"), **dict.fromkeys("issubdtype all_leaves".split(), "bool"),
    **dict.fromkeys("save savez register_pytree_with_keys".split(), "None"), "einsum_path": "Tuple[List[object], str]", "cho_factor": "Tuple[Array, bool]", "register_static": "type",
    **dict.fromkeys("approx_min_k sort_key_val qr_multiply".split(), array_pair), **dict.fromkeys("eigh_tridiagonal expm_frechet".split(), f"Union[Array, {array_pair}]"),
    **dict.fromkeys("tree_broadcast tree_transpose".split(), "object"), "tree_map_with_path": "_T", "tree_flatten_with_path": "Tuple[List[Tuple[Tuple[object, ...], object]], object]",
    "tree_leaves_with_path": "List[Tuple[Tuple[object, ...], object]]",
    "shape": "Tuple[int, ...]", "broadcast_shapes": "Tuple[int, ...]", **dict.fromkeys(("ndim", "size", "local_device_count"), "int"),
    **dict.fromkeys("is_array iscomplexobj can_cast isdtype tree_all".split(), "bool"), "allclose": "bool", "array_equal": "bool",
    **dict.fromkeys("broadcast_arrays meshgrid split array_split hsplit vsplit dsplit".split(), "List[Array]"),
    **dict.fromkeys("unstack nonzero tril_indices triu_indices".split(), "Tuple[Array, ...]"), **dict.fromkeys("divmod unique_counts unique_inverse histogram".split(), array_pair),
    "unique_all": "Tuple[Array, Array, Array, Array]", "unique": "Union[Array, Tuple[Array, ...]]", "gradient": "Union[Array, List[Array]]", "average": "Union[Array, Tuple[Array, Array]]", "polyfit": "Union[Array, Tuple[Array, ...]]", "where": "Union[Array, Tuple[Array, ...]]",
    "qr": array_pair, "lstsq": "Tuple[Array, Array, Array, Array]", **dict.fromkeys("put place putmask put_along_axis fill_diagonal copyto".split(), "Optional[Array]"), "unravel_index": "Tuple[Array, ...]", "svd": "Union[Array, Tuple[Array, Array, Array]]", "lu": "Tuple[Array, Array, Array]",
    **dict.fromkeys(("promote_types", "result_type"), "dtype"), "copy_to_numpy": "numpy.ndarray", "einsum_path_text": "str", "make_jaxpr_text": "str", "explain": "Explanation", "advise": "Advice", "simulate": "Simulation", "custom_op": "Callable[..., Any]", "reproducible": "ContextManager[None]",
    "dense": "Dense", "layer_norm": "LayerNorm", "embedding": "Embedding", "mlp": "List[Dense]", "split_in_pairs": "List[Dense]", "shuffled_batches": "Batches",
    **dict.fromkeys("grad value_and_grad jacrev jacfwd jacobian hessian jit vmap pmap shard_map checkpoint remat train_step".split(), "Callable[..., Any]"),
    **dict.fromkeys(functions_of_trees, "_T"), "tree_leaves": "List[Array]", "while_loop": "_T", "fori_loop": "_T",
    **dict.fromkeys("__iadd__ __isub__ __imul__ __itruediv__ __ifloordiv__ __imod__ __ipow__ __imatmul__ __iand__ __ior__ __ixor__ __ilshift__ __irshift__".split(), "Array"), "__format__": "str",
    "__reduce__": "Tuple[object, ...]", "checkpoint_name": "_T", "__array_function__": "object", "__array_ufunc__": "object", "all_devices": "object", "open_zarr": "object", "open_netcdf": "object", "follow": "None", "isel": "Array", "load": "Array", "ndim": "int", "device_of": "object", "placed": "Array", "gathering": "ContextManager[None]", "rows_of": "Iterator[Array]", "linked": "_T", "giving_views": "Callable[..., Any]", "refuse_out": "None",
    "isrealobj": "bool", "isscalar": "bool", "modf": array_pair, **dict.fromkeys("diag_indices diag_indices_from tril_indices_from triu_indices_from ix_".split(), "Tuple[Array, ...]"),
    "default_backend": "str", "tolist": "list", "__array__": "numpy.ndarray", "__iter__": "Iterator[Array]", "__contains__": "bool", "__divmod__": array_pair, "__rdivmod__": array_pair, "__len__": "int",
    "__dlpack_device__": "Tuple[int, int]", "__array_namespace__": "Any", "__dlpack__": "object", "__setitem__": "None", "linearize": "Tuple[Any, Callable[..., Any]]",
    "device_get": "Any", "vjp": "Tuple[Any, Callable[..., Any]]", "tree_map": "_T", "eval_shape": "Any", "__copy__": "Array", "__deepcopy__": "Array", "attach": "None",
    "make_jaxpr_text": "str", "callback": "None", "print": "None", "visualize_array_sharding": "None", "visualize_sharding": "None",
    "global_norm": "Array", "clip_by_global_norm": "_T", "plot": "None", "axis_size": "int", "__init__": "None", "__setattr__": "None",
    "iscomplexobj": "bool", "device_get": "Any", "split": "Union[List[Array], List[Key], Array]", "key": "Key", "PRNGKey": "Key", "cond": "Any", "switch": "Any", "map": "Any", "scan": "Tuple[_T, Any]",
    **dict.fromkeys("psum_scatter all_gather all_to_all pshuffle pswapaxes".split(), "_T"), "associative_scan": "_T", "polydiv": array_pair, "vectorize": "Callable[..., Any]",
    "default_device": "None", "devices": "List[Union[Device, None]]", "capabilities": "Dict[str, Union[bool, int]]", "default_dtypes": "Dict[str, dtype]", "dtypes": "Dict[str, dtype]",
    **dict.fromkeys("tree_structure structure".split(), "object"), "flatten": "Tuple[List[Array], object]", "leaves": "List[Array]", "tree_flatten": "Tuple[List[Array], object]",
    **dict.fromkeys("tree_unflatten unflatten tree_reduce reduce".split(), "Any"), "map_": "_T", "register_pytree_node": "None", "register_pytree_node_class": "type", "register_dataclass": "type",
    "profile": "ContextManager[Any]", "debug_nans": "ContextManager[None]", "defjvps": "None", "defvjp": "None", "defjvp": "Callable[..., Any]", "inspect_array_sharding": "None",
    "reshape": "Array", "copy": "Array", "__eq__": "bool", "__getnewargs__": "Tuple[object, ...]", "__hash__": "int", "__repr__": "str", "start": "_S", "update": "Tuple[_T, _S]", "__call__": "Any",
    "apply_over_axes": "Array", "is_main_process": "bool", "eval_shape": "Any",
}
# Of methods and functions whose name stands for something else elsewhere.
results_of = {
    **{f"_initializers.{n}": "Callable[..., Array]" for n in vars(tessera.nn.initializers) if n in tessera.nn.initializers.__all__ and n not in ("zeros", "ones")}, "_initializers.zeros": "Array",
    "_initializers.ones": "Array", "_primitives.reduce": "Array", "_primitives.sort": "Union[Array, Tuple[Array, ...]]", "_primitives.split": "List[Array]", "_numpys.load": "Union[Array, Dict[str, Array]]",
    "tree_util.all": "bool", **dict.fromkeys(("tree_util.broadcast", "tree_util.transpose"), "object"), "tree_util.map_with_path": "_T",
    "tree_util.flatten_with_path": "Tuple[List[Tuple[Tuple[object, ...], object]], object]", "tree_util.leaves_with_path": "List[Tuple[Tuple[object, ...], object]]",
    "AtIndexer.__getitem__": "At", "Key.__getitem__": "Key", "Key.__iter__": "Iterator[Key]",
    "Dense.__call__": "Array", "LayerNorm.__call__": "Array", "Embedding.__call__": "Array", "Batches.__getitem__": "Any", "config.update": "None", "padtype_to_pads": "List[Tuple[int, int]]", "conv_dimension_numbers": "Tuple[Tuple[int, ...], ...]", "tree_util.map": "_T", "Array.flatten": "Array",
    "_shapes.split": "List[Array]", "io.load_safetensors": "Dict[str, Array]", "Adam.start": "AdamState", "Sgd.start": "SgdState", "Adam.update": "Tuple[_T, AdamState]", "Sgd.update": "Tuple[_T, SgdState]", "random.split": "Key",
}


def typed(p, name):
    """A parameter with its type, and without a default that would need names."""
    is_tree = name in functions_of_trees and p.name == "x" or name == "clip_by_global_norm" and p.name == "gradients"
    kind = "_T" if is_tree else "object" if name.endswith("__eq__") else parameters_of.get((name, p.name)) or parameter_types.get(p.name, "Any")
    if p.default is None and kind not in ("Any", "Axes", "None", "object"):
        kind = f"Optional[{kind}]"
    if p.kind is p.VAR_POSITIONAL and p.name == "shape":
        kind = "Union[int, Sequence[int]]"
    if p.kind is p.VAR_POSITIONAL and p.name in ("arrays", "operands"):
        kind = "ArrayLike"
    if p.default is not p.empty and type(p.default) not in (int, float, str, bool, type(None)):
        p = p.replace(default=...)
    return p.replace(annotation=f"__{kind}__")


def own_signature(value, name):
    """Of a function of Python's."""
    parameters = [p if p.name == "self" else typed(p, name) for p in inspect.signature(value).parameters.values()]
    parameters = [p.replace(annotation=p.empty, default=p.default) if p.name == "self" else p for p in parameters]
    text = re.sub(r"'__(.*?)__'", r"\1", str(inspect.Signature(parameters))).replace("Ellipsis", "...")
    short, module = name.rpartition(".")[2], value.__module__.rpartition(".")[2]
    known = results_of.get(name) or results_of.get(f"{module}.{name}") or results.get(short)
    return f"{text} -> {known or ('Array' if value.__module__ in array_modules else 'Any')}"


# Functions of Python's that take what a binding takes, and more.
extended = {tessera.io.load_safetensors: tessera._core.io.load_safetensors}


def function_lines(name, value, indent="", owner=""):
    value = inspect.unwrap(value)  # with the signatures of the binding that it stands for
    is_own = isinstance(value, types.FunctionType)
    signatures = [(own_signature(value, owner + name), inspect.getdoc(value) or "")] if is_own else bound_signatures(value.__name__, value)
    if is_own and value in extended:
        signatures = bound_signatures(name, extended[value]) + signatures
    signatures = list({signature: (signature, doc) for signature, doc in reversed(signatures)}.values())[::-1]
    for signature, doc in signatures:
        if len(signatures) > 1:
            yield f"{indent}@overload"
        result = "None" if name == "__init__" else None
        other = "  # type: ignore[override]" if name in ("__eq__", "__ne__") and signature.endswith("-> Array") else ""
        other = "  # type: ignore[overload-cannot-match]" if name == "histogram" else other  # the shorter one of C++
        yield f"{indent}def {name}{re.sub(r' -> .*$', f' -> {result}', signature) if result else signature}:{other}"
        yield f'{indent}    {doc!r}' if doc else f"{indent}    ..."


# Of properties that are Python's, or whose binding gives a Python object.
property_types = {"at": "AtIndexer", "device": "object", "ndim": "int", "mT": "Array", "real": "Array", "imag": "Array", "T": "Array", "shape": "Tuple[int, ...]", "dtype": "numpy.dtype", "addressable_shards": "List[Shard]", "axis_names": "Tuple[str, ...]", "axis_sizes": "Tuple[int, ...]", "chunks": "Tuple[int, ...]", "devices": "numpy.ndarray", "index": "Tuple[slice, ...]"}


def property_type(member, what):
    signature = re.search(r"\) -> (.+)", what.fget.__doc__ or "") if not isinstance(what.fget, types.FunctionType) else None
    found = plain(signature.group(1)) if signature else "Any"
    return property_types.get(member, "Any") if found.lower() in ("any", "object", "tuple", "handle", "list[any]") else found


def class_lines(name, value):
    base = "Exception" if issubclass(value, Exception) else "Array" if issubclass(value, tessera.Array) and value is not tessera.Array else ""
    yield f"class {name}{f'({base})' if base else ''}:"
    yield f"    {(value.__doc__ or '').strip()!r}"
    for member, what in sorted(vars(value).items()):
        if member.startswith("_") and not (member.startswith("__") and callable(what) and member not in ("__new__", "__class__", "__repr__", "__hash__", "__doc__", "__init_subclass__", "__buffer__", "__release_buffer__", "__replace__")):
            continue
        if isinstance(what, property):
            yield f"    @property\n    def {member}(self) -> {property_type(member, what)}: ..."
        elif callable(what) and inspect.isroutine(what):
            try:
                yield from function_lines(member, what, "    ", name + ".")
            except (TypeError, ValueError):
                yield f"    def {member}(self, *args: object, **kwargs: object) -> Any: ..."


def checkpoint_lines():
    """A transformation of functions, and the files of that name."""
    yield "from . import _checkpoint\nclass _Checkpoint:\n    Manager = _checkpoint.Manager"
    for name in ("save", "restore", "latest_step", "latest_whole_step"):
        yield f"    {name} = staticmethod(_checkpoint.{name})"
    yield f"    def __call__{own_signature(tessera.checkpoint, 'checkpoint').replace('(', '(self, ', 1)}:\n        {tessera.checkpoint.__doc__!r}"
    yield "checkpoint: _Checkpoint"


def with_builtins(line):
    """Python's own types, in modules whose names hide them."""
    return re.sub(r"(?<=[ \[])(bool|complex|slice)\b(?=[\],):= ]|$)", r"_builtins.\1", line) if re.match(r" *def ", line) else line


def module_lines(module):
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") and not name.startswith("__array"):
            continue
        if isinstance(value, types.ModuleType):
            if value is tessera._core.checkpoint:
                yield "from . import _checkpoint\ncheckpoint = _checkpoint"
            elif value.__name__.startswith("tessera") and module is not tessera._core:
                yield f"from . import {value.__name__.split('.')[-1]} as {name}"
        elif inspect.isclass(value):
            is_bound_here = value.__module__.startswith("tessera._core.") and module is not tessera
            if module is tessera._core or value.__module__ == module.__name__ or is_bound_here or issubclass(value, Exception):
                yield from class_lines(name, value)
            else:
                yield f"{name} = {value.__name__}" if name != value.__name__ else ""
        elif value is tessera.checkpoint:
            yield from checkpoint_lines() if name == "checkpoint" else [f"{name} = checkpoint"]
        elif inspect.isroutine(value):
            yield from function_lines(name, value)
        else:
            yield f"{name}: {'dtype' if type(value).__name__ == 'dtype' else type(value).__name__ if isinstance(value, (int, float, str)) else 'Any'}"


def main():
    folder = pathlib.Path(sys.argv[1])
    modules = {"__init__": tessera, "_core": tessera._core, "_checkpoint": tessera._core.checkpoint}
    modules.update({m.__name__.split(".")[-1]: m for m in vars(tessera).values() if isinstance(m, types.ModuleType) and m.__name__.startswith("tessera.") and m is not tessera._core})
    for name, module in modules.items():
        imports = "" if name == "_core" else f"from ._core import {', '.join(f'{n} as {n}' for n in names_of_core)}"
        text = head.format(imports=imports) if name != "_core" else head.format(imports="")
        text += "\n".join(with_builtins(line) for lines in module_lines(module) if lines for line in lines.split("\n")) + "\n"
        compile(text, f"{name}.pyi", "exec")
        path = folder / f"{name}.pyi"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


main()
