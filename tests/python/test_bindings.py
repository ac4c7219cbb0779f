"""Every function that the public headers declare has its counterpart in Python, or a reason why not."""
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import tessera as ts
from tessera._create import words_of

root = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(root / "scripts"))
import headers  # noqa: E402

include = root / "include" / "tessera"
# Where a header's functions are looked for; the others' are the package's own.
rooms = {"linalg.hpp": [ts.linalg], "fft.hpp": [ts.fft], "random.hpp": [ts.random], "io.hpp": [ts.io, ts.io.checkpoint], "io/zarr.hpp": [ts.io], "io/netcdf.hpp": [ts.io], "io/stream.hpp": [ts.io], "multihost.hpp": [ts.multihost], "control.hpp": [ts.lax],
         "control/lax.hpp": [ts.lax], "checkpoint.hpp": [ts.io.checkpoint], "collectives.hpp": [ts.lax], "nn.hpp": [ts.nn], "optim.hpp": [ts.optim], "viz.hpp": [ts.viz], "debug.hpp": [ts.debug, ts], "visualize.hpp": [ts.debug],
         "tree.hpp": [ts.tree_util], "grad.hpp": [ts, ts.lax], "grad/policies.hpp": [ts, ts.checkpoint_policies], "jit.hpp": [ts, ts.debug], "jit/explain.hpp": [ts, ts.debug], "jit/stablehlo.hpp": [ts.stablehlo], "sparse.hpp": [ts.sparse], "sparse/krylov.hpp": [ts.sparse], "io/hdf5_writer.hpp": [ts.io]}
# What Python calls otherwise.
renamed = {
    "einsum_of": "einsum", "stddev": "std", "split_at": "split", "index": "Array.__getitem__", "switch_": "lax.switch", "sequential_map": "lax.map", "to_host": "device_get",
    "item": "Array.item", "to_string": "Array.__str__", "eval": "block_until_ready", "dtype_of": "dtype", "slice": "Array.__getitem__", "name": "dtype.name", "itemsize": "dtype.itemsize",
    "value_and_grad_aux": "value_and_grad", "process_gather": "device_get", "is_bool": "isdtype", "is_half": "isdtype", "is_integer": "isdtype", "is_floating": "isdtype", "is_complex": "isdtype",
    "is_inexact": "isdtype", "dtype_from_name": "dtype", "arange_of": "arange", "full_from_host": "full",
    "array_from_host": "array", "real_dtype": "finfo", "complex_dtype": "result_type", "wrap_key_data": "random.split", "key_data": "Key.data",
    "local": "Array.addressable_shards", "local_shape": "Sharding.shard_shape", "print": "debug.print", "to_vector": "Array.tolist", "to_bool_vector": "Array.tolist",
    "callback_values": "debug.callback", "print_values": "debug.print", "is_signed_integer": "isdtype", "is_unsigned_integer": "isdtype", "axes": "PartitionSpec",
    "stop_gradient": "lax.stop_gradient", "delete_": "delete", "erfinv": "erf_inv",
}
# What Python does not need, and why.
reasons = {
    "threefry": "a scope of C++: ts.config.update('jax_threefry_partitionable', ...)", "zeros_like_tree": "tree_map(zeros_like, tree)", "run": "the runtime runs as long as the process",
    "zarr_info": "open_zarr(path)[name] has shape, dtype and dims", "begin": "deleted, so that loops do not compile", "end": "as begin",
    "local_mdspan": "C++'s view of memory; numpy.asarray is Python's", "short_name": "str(dtype)",
}


# Headers between tessera and other libraries of C++.
of_cpp = {"eigen.hpp", "mpi.hpp", "dlpack.hpp"}
# Classes that Python calls otherwise, or says with a value of its own. Options of a call are its keyword arguments.
renamed_classes = {
    "At": "_core.At", "Advice": "_core.Advice", "Simulation": "_core.Simulation", "SimulatedCall": "_core.SimulatedCall", "SimulatedLink": "_core.SimulatedLink", "AdvisedLayout": "_core.AdvisedLayout", "CostAnalysis": "_core.CostAnalysis", "Dtype": "dtype", "IndexError": "TesseraIndexError", "Manager": "io.checkpoint.Manager", "MemoryAnalysis": "_core.MemoryAnalysis",
    "MemoryError": "TesseraMemoryError", "OnPreemption": "_core.OnPreemption", "PlannedCandidate": "_core.PlannedCandidate", "PlannedChoice": "_core.PlannedChoice",
    "PlannedCollective": "_core.PlannedCollective", "ChosenLayout": "_core.ChosenLayout", "KeptValue": "_core.KeptValue", "CheckpointPolicy": "_core.checkpoint_policies.CheckpointPolicy", "AutomaticSpec": "auto", "ShapeDtype": "ShapeDtypeStruct", "CustomOp": "_core.CustomOp", "CustomOpOptions": "custom_op", "Halo": "custom_op", "BlockKernel": "custom_op", "SystemError": "TesseraSystemError", "profile": "_core.debug.Profile", "Jitted": "_core.JitFunction",
    "Mapped": "_core.MappedFunction", "Linearized": "_core.Linearized", "CustomJvp": "custom_jvp", "Runtime": "attach", "ThreefryScope": "config.update", "Curve": "viz.plot",
}
numbers, named_tuple, pieces = "a number, or what NumPy makes one", "a named tuple", "a tuple, a list or a slice of Python's"
class_reasons = {
    "NetcdfVariable": "what open_netcdf gives by name", "NetcdfDim": "sizes in open_netcdf(path).dims",
    "Half": numbers, "Operand": numbers, "HostArray": "numpy.ndarray", "Initializer": "a function", "Rate": "a number or a function", "Axes": pieces, "AxisName": pieces, "AxesTree": pieces, "DrawShape": pieces,
    "Ellipsis": pieces, "IndexHere": pieces, "IndexPart": pieces, "DimSpec": pieces, "NdDevices": pieces, "NoneType": "None", "Range": pieces, "Shape": pieces, "ShardingTree": pieces, "Slice": pieces, "SliceBound": pieces,
    "SpecTree": pieces, "EinsumExpression": "a string", "Format": "a string", "Printed": "any value", "FileInfo": named_tuple, "Entries": named_tuple, "LU": named_tuple, "LuFactor": named_tuple,
    "QR": named_tuple, "SVD": named_tuple, "Eigh": named_tuple, "Eig": named_tuple, "Schur": named_tuple, "Polar": named_tuple, "PivotedQR": named_tuple, "SlogDet": named_tuple,
    "UniqueAll": named_tuple, "Histogram2d": named_tuple, "Solution": named_tuple, "Eigenpairs": named_tuple, "KeptValues": "C++'s view of memory; numpy.asarray is Python's", "LocalView": "C++'s view of memory; numpy.asarray is Python's",
    "StoredResult": "an item of io.store's dict", "BlockView": "a NumPy view of a block", "Blocks": "NumPy views of the blocks",
    "VarianceScaling": "keyword arguments of nn.variance_scaling", "ForwardJacobianOf": "what jacfwd gives", "Neighbours": "what a stencil's function is called with",
}
# Members by other names, or not for programs.
renamed_members = {"is_committed": "committed", "is_weakly_typed": "weak_type", "to_vector": "tolist", "size": "__len__"}
member_reasons = {
    "automatic": "tessera.auto", "is_automatic": "spec.is_automatic", "has_mesh_to_find": "of the library's own", "keeps": "of the library's own", "keeps_nothing": "of the library's own",
    "kind": "the type", "hash": "hash(x)", "identity": "of the library's own", "node": "of the library's own", "output": "of the library's own", "pattern": "of the library's own",
    "is_transposed": "of the library's own", "run": "a call", "axis_number": "axis_names.index(name)", "position": "of the library's own", "same_devices": "of the library's own",
    "results": "a call", "with_axes": "Mesh(mesh.devices.reshape(sizes), names)", "check_fits": "every call that takes a shape checks it", "dim_axes": "spec", "for_ndim": "of the library's own",
    "from_dim_axes": "NamedSharding", "local_box": "devices_indices_map", "replicated": "NamedSharding(mesh, P())", "dims": "tuple(spec)", "transposed": "a.T", "attach": "tessera.attach",
    "take": "C++ moves memory", "begin": "an iterator", "end": "an iterator", "names": "a string or a tuple of them",
}


# As an editor sees it.
typed_program = """
import tessera as ts

mesh = ts.make_mesh((4,), ("x",))
x: ts.Array = ts.device_put(ts.ones((8, 8)), ts.NamedSharding(mesh, ts.P("x")))
y: ts.Array = ts.sum(x, axis=0) + 1
n: int = mesh.axis_size("x")
u, s, vh = ts.linalg.svd(ts.nn.relu(x @ y))
total: ts.Array = ts.lax.psum(u, "x")
state: ts.optim.AdamState = ts.optim.Adam().start({"w": x})
peak: int = ts.explain(lambda a: a, x).memory.peak_bytes
with ts.checkpoint.Manager("steps", keep=2) as saves, ts.MatmulScope("whole"):
    saved: bool = ts.io.checkpoint.Manager("others").save(3, {"x": x})
gradient = ts.grad(ts.checkpoint(lambda a: ts.sum(a)))(x)
"""
# Their results are what a caller's function, tree or container holds.
any_tree = set("cond switch map scan vjp linearize jvp eval_shape eval compute device_get tree_map tree_unflatten unflatten tree_reduce reduce checkpointed with_own_backward with_own_forward apply "
               "restore __call__ __getitem__ __getattr__ __enter__ __get__ __array_namespace__ profile grad value_and_grad jacrev jacfwd hessian while_loop fori_loop call_leaves".split())


def declared(path):
    """Names of functions; members of classes and what is in detail are left out."""
    return {d.name for d in headers.functions(path) if d.name[0].islower() and not d.name.endswith("_leaf")}


def declared_classes(path):
    """Name -> public member functions of the classes of a header."""
    return {name: {d.name for d in members if d.is_function and re.fullmatch(r"(?!operator)[a-z]\w*", d.name) and not d.name.endswith("_") and d.name != name}
            for name, members in headers.classes(path).items()}


def at(name, places):
    """What goes by this name in one of these places, or None."""
    for place in places:
        for part in name.split("."):
            place = getattr(place, part, None)
        if place is not None:
            return place
    return None


def is_there(name, places):
    return at(renamed.get(name, name), [*places, ts]) is not None


class Bindings(unittest.TestCase):
    maxDiff = None

    def test_every_declared_function_is_there(self):
        missing, seen = [], 0
        for path in sorted(include.rglob("*.hpp")):
            header = str(path.relative_to(include))
            if header.startswith("detail/") or header in of_cpp:
                continue
            names = declared(path)
            seen += len(names)
            missing += [f"{header}: {n}" for n in sorted(names) if n not in reasons and not is_there(n, rooms.get(header, [ts]))]
        self.assertGreater(seen, 500)
        self.assertEqual(missing, [])

    def test_every_class_and_its_members_are_there(self):
        missing, seen = [], 0
        for path in sorted(include.rglob("*.hpp")):
            header = str(path.relative_to(include))
            if header.startswith("detail/") or header in of_cpp:
                continue
            for name, members in declared_classes(path).items():
                if name.endswith("Options") or name in class_reasons:
                    continue
                found = at(renamed_classes.get(name, name), [*rooms.get(header, []), ts])
                seen += 1
                if found is None:
                    missing.append(f"{header}: {name}")
                elif isinstance(found, type) and not issubclass(found, Exception):
                    missing += [f"{header}: {name}.{m}" for m in sorted(members - set(member_reasons)) if not (hasattr(found, m) or hasattr(found, renamed_members.get(m, m)))]
        self.assertGreater(seen, 40)
        self.assertEqual(missing, [])

    def test_no_exception_is_kept_for_nothing(self):
        names = set().union(*(declared(p) for p in include.rglob("*.hpp")))
        classes = [declared_classes(p) for p in include.rglob("*.hpp")]
        self.assertEqual(sorted(name for name in {*renamed, *reasons} if name not in names), [])
        self.assertEqual(sorted(name for name in {*renamed_classes, *class_reasons} if not any(name in c for c in classes)), [])
        self.assertEqual(sorted(m for m in {*renamed_members, *member_reasons} if not any(m in members for c in classes for members in c.values())), [])

    def test_all_that_is_public_says_what_it_does(self):
        silent = []
        for room in (ts, ts.lax, ts.linalg, ts.fft, ts.random, ts.nn, ts.optim, ts.viz, ts.io, ts.io.checkpoint, ts.debug, ts.multihost, ts.sparse, ts.stablehlo, ts.tree_util):
            for name, value in vars(room).items():
                if not name.startswith("_") and callable(value) and not (isinstance(value, type) and issubclass(value, Exception)) and not words_of(value):
                    silent.append(f"{room.__name__}.{name}")
        self.assertEqual(silent, [])

    def test_members_say_what_the_headers_say(self):
        self.assertIn("n-d grid of devices", ts.Mesh.__doc__)
        self.assertIn("unknown name", ts.Mesh.axis_size.__doc__)
        self.assertIn("in axis order", ts.Mesh.axis_names.__doc__)
        self.assertIn("received from other ranks", ts._core.CostAnalysis.communication_bytes.__doc__)

    def test_docstrings_are_the_headers(self):
        self.assertIn("1.1 ulp", ts._core.power.__doc__)
        self.assertIn("positive definite", ts._core.linalg.cholesky.__doc__)
        self.assertIn("first of ties", ts.argmax.__doc__)
        self.assertIn("row-major order", ts.nonzero.__doc__ + ts._core.nonzero.__doc__)

    def test_stubs_tell_types_where_there_is_one(self):
        stubs = sorted(pathlib.Path(ts._core.__file__).parent.glob("*.pyi"))
        self.assertGreater(len(stubs), 10)
        untold = set()
        for stub in stubs:
            for name, signature in re.findall(r"^ *def (\w+)(\(.*)", stub.read_text(), re.M):
                if name not in any_tree and re.search(r"\bAny\b", signature.replace("Callable[..., Any]", "")):
                    untold.add(f"{stub.name}: {name}{signature}")
        self.assertEqual(sorted(untold), [])

    @unittest.skipUnless(importlib.util.find_spec("mypy") and ts.process_count() == 1, "no mypy here, or several processes")
    def test_a_type_checker_reads_the_stubs(self):
        with tempfile.TemporaryDirectory() as folder:
            package = pathlib.Path(folder, "tessera")
            package.mkdir()
            for stub in pathlib.Path(ts._core.__file__).parent.glob("*.pyi"):
                (package / stub.name).write_text(stub.read_text())
            pathlib.Path(folder, "program.py").write_text(typed_program)
            done = subprocess.run([sys.executable, "-m", "mypy", "--no-incremental", "tessera", "program.py"], cwd=folder, capture_output=True, text=True)
        self.assertIn("no issues found", done.stdout, done.stdout)

    def test_all_names_are_importable(self):
        for room in (ts, ts.lax, ts.linalg, ts.fft, ts.random, ts.nn, ts.optim, ts.viz, ts.io, ts.debug, ts.multihost, ts.sparse, ts.stablehlo, ts.tree_util):
            for name in getattr(room, "__all__", ()):
                self.assertTrue(hasattr(room, name), name)


if __name__ == "__main__":
    unittest.main()
