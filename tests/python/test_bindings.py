"""Every function that the public headers declare is bound, with the header's contract as its docstring."""
import pathlib
import re
import unittest

import tessera as ts

include = pathlib.Path(__file__).resolve().parents[2] / "include" / "tessera"
# What Python has under another name, or does not need, and why.
elsewhere = {
    "ops/elementwise.hpp": {}, "ops/contract.hpp": {"einsum_of": "ts.einsum"}, "ops/reduce.hpp": {"stddev": "ts.std"}, "ops/reshape.hpp": {"split_at": "ts.split"}, "ops/index.hpp": {},
    "linalg.hpp": {}, "fft.hpp": {}, "random.hpp": {"threefry": "a scope of C++", "key_data": "", "wrap_key_data": ""},
    "io.hpp": dict.fromkeys(("npz_info", "save_npz", "save_safetensors", "safetensors_info", "safetensors_metadata"), "maps of names are not bound yet"), "multihost.hpp": {"process_gather": "device_get"}, "control.hpp": {}, "collectives.hpp": {}, "maps.hpp": {"shard_map_rule": ""}, "grad.hpp": {"value_and_grad_aux": "has_aux=True"}, "jit.hpp": {},
}
rooms = {"linalg.hpp": ts.linalg, "fft.hpp": ts.fft, "random.hpp": ts.random, "io.hpp": ts.io, "multihost.hpp": ts.multihost, "control.hpp": ts.lax, "collectives.hpp": ts.lax}


def declared(path):
    """Names of functions at the beginning of a declaration; structs' members and detail left out."""
    text = re.sub(r"//[^\n]*", "", path.read_text()).replace("[[nodiscard]] ", "")
    text = re.sub(r"namespace detail \{.*?\}  *", "", text, flags=re.S) if "namespace detail" in text else text
    text = re.sub(r"(?:class|struct) \w+[^;{]*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\};", "", text)
    return set(re.findall(r"^(?:template <[^;{]*?>\s*)?(?:std::)?[A-Z\w][\w:<>, ]*?[ >]([a-z]\w*)\((?=const |std::|Array|Key|F |C |int |Shape|Operand|T |double|AxisName)", text, re.M))


class Bindings(unittest.TestCase):
    def test_every_declared_function_is_there(self):
        for header, known in elsewhere.items():
            names = declared(include / header)
            self.assertTrue(names, header)
            room = rooms.get(header, ts)
            missing = [n for n in sorted(names) if not hasattr(room, n) and n not in known and not n.endswith("_leaf") and n not in ("latest_step", "latest_whole_step", "save", "restore", "save_leaves", "restore_leaves", "reduced", "pairs_of_shuffle", "reduced_size")]
            self.assertEqual(missing, [], f"{header} declares what Python lacks")

    def test_docstrings_are_the_headers(self):
        self.assertIn("1.1 ulp", ts._core.power.__doc__)
        self.assertIn("Cholesky" if "Cholesky" in ts._core.linalg.cholesky.__doc__ else "positive definite", ts._core.linalg.cholesky.__doc__)
        self.assertIn("first of equal", ts.argmax.__doc__)

    def test_all_names_are_importable(self):
        for room in (ts, ts.lax, ts.linalg, ts.fft, ts.random, ts.nn, ts.io, ts.debug, ts.multihost, ts.tree_util):
            for name in getattr(room, "__all__", ()):
                self.assertTrue(hasattr(room, name), name)


if __name__ == "__main__":
    unittest.main()
