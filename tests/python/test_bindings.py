"""Every function that the public headers declare has its counterpart in Python, or a reason why not."""
import pathlib
import re
import unittest

import tessera as ts

include = pathlib.Path(__file__).resolve().parents[2] / "include" / "tessera"
# Where a header's functions are looked for; the others' are the package's own.
rooms = {"linalg.hpp": [ts.linalg], "fft.hpp": [ts.fft], "random.hpp": [ts.random], "io.hpp": [ts.io, ts.io.checkpoint], "multihost.hpp": [ts.multihost], "control.hpp": [ts.lax],
         "control/lax.hpp": [ts.lax], "collectives.hpp": [ts.lax], "nn.hpp": [ts.nn], "optim.hpp": [ts.optim], "viz.hpp": [ts.viz], "debug.hpp": [ts.debug, ts], "visualize.hpp": [ts.debug],
         "tree.hpp": [ts.tree_util], "grad.hpp": [ts, ts.lax], "jit.hpp": [ts, ts.debug], "jit/explain.hpp": [ts, ts.debug], "sparse.hpp": [ts.sparse], "sparse/krylov.hpp": [ts.sparse], "io/hdf5_writer.hpp": [ts.io]}
# What Python calls otherwise.
renamed = {
    "einsum_of": "einsum", "stddev": "std", "split_at": "split", "index": "Array.__getitem__", "switch_": "lax.switch", "sequential_map": "lax.map", "to_host": "device_get",
    "item": "Array.item", "to_string": "Array.__str__", "eval": "block_until_ready", "dtype_of": "dtype", "slice": "Array.__getitem__", "name": "dtype.name", "itemsize": "dtype.itemsize",
    "value_and_grad_aux": "value_and_grad", "process_gather": "device_get", "is_bool": "isdtype", "is_integer": "isdtype", "is_floating": "isdtype", "is_complex": "isdtype",
    "is_signed": "isdtype", "is_inexact": "isdtype", "dtype_from_name": "dtype", "nprint": "debug.print", "mesh_from_devices": "Mesh", "arange_of": "arange", "full_from_host": "full",
    "array_from_host": "array", "local_device": "local_devices", "real_dtype": "finfo", "complex_dtype": "result_type", "wrap_key_data": "random.split", "key_data": "Key.data",
    "local": "Array.addressable_shards", "local_shape": "Sharding.shard_shape", "print": "debug.print", "to_vector": "Array.tolist", "to_bool_vector": "Array.tolist",
    "callback_values": "debug.callback", "print_values": "debug.print", "is_signed_integer": "isdtype", "is_unsigned_integer": "isdtype", "axes": "PartitionSpec",
    "tree_with_leaves": "tree_util.tree_unflatten", "num_devices": "device_count", "num_processes": "process_count", "stop_gradient": "lax.stop_gradient", "neighbours": "stencil",
}
# What Python does not need, and why.
reasons = {
    "threefry": "a scope of C++: ts.config.update('jax_threefry_partitionable', ...)", "shard_map_rule": "rules of ops are written in C++", "with_call": "the line is Python's own",
    "pairs_of_shuffle": "of the header's own templates", "reduced": "of the header's own templates", "reduced_size": "of the header's own templates", "operator": "an operator",
    "zeros_like_tree": "tree_map(zeros_like, tree)", "memory_of": "Array.nbytes", "run": "the runtime runs as long as the process", "initialize": "import does it", "finalize": "exit does it",
    "init": "import does it", "local_mdspan": "C++'s view of memory; numpy.asarray is Python's", "short_name": "str(dtype)", "bytes_as": "of the header's own templates", "local_shards": "Array.addressable_shards",
}


# Headers between tessera and other libraries of C++.
of_cpp = {"eigen.hpp", "mpi.hpp"}


def declared(path):
    """Names of functions at the beginning of a declaration; members of structs and what is in detail are left out."""
    text = path.read_text().replace("[[nodiscard]] ", "")
    text = re.sub(r"^namespace detail \{.*?^\}  // namespace detail", "", text, flags=re.S | re.M)
    text = re.sub(r"//[^\n]*", "", text)
    text = re.sub(r"^(?:template <[^;{]*?>\s*)?(?:class|struct) \w+[^;{]*\{.*?^\};", "", text, flags=re.S | re.M)
    found = re.findall(r"^(?:template <[^;{]*?>\s*)?(?:inline |constexpr )*(?!return|using|throw|else|if|for|while)[A-Za-z][\w:<>, ]*?[ >&]([a-z]\w*)\((?!\))", text, re.M)
    return {name for name in found if not name.endswith("_leaf") and not name.startswith("operator")}


def is_there(name, places):
    target = renamed.get(name, name)
    if "." in target:
        head, tail = target.split(".")
        return hasattr(getattr(ts, head), tail)
    return any(hasattr(place, target) for place in [*places, ts])


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

    def test_docstrings_are_the_headers(self):
        self.assertIn("1.1 ulp", ts._core.power.__doc__)
        self.assertIn("positive definite", ts._core.linalg.cholesky.__doc__)
        self.assertIn("first of equal", ts.argmax.__doc__)
        self.assertIn("row-major order", ts.nonzero.__doc__ + ts._core.nonzero.__doc__)

    def test_all_names_are_importable(self):
        for room in (ts, ts.lax, ts.linalg, ts.fft, ts.random, ts.nn, ts.optim, ts.viz, ts.io, ts.debug, ts.multihost, ts.tree_util):
            for name in getattr(room, "__all__", ()):
                self.assertTrue(hasattr(room, name), name)


if __name__ == "__main__":
    unittest.main()
