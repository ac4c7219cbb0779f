"""Zarr stores and netCDF files by name: those that xarray and zarr-python wrote, and ours read by them where they are installed."""
import importlib.util
import json
import os
import pathlib
import unittest

import numpy as np

import tessera as ts
from tessera._named import _unpacked
from layouts import assert_same, shardings, spread
from test_libraries import Folder

data = pathlib.Path(__file__).resolve().parent.parent / "io" / "data"
made = lambda n: (7 * np.arange(n) % 100 - 50).astype(np.float64)  # noqa: E731  tests/io/make_data.py
real = np.float32([[-2.5, -1, -0.5, 0], [0.25, 0.5, 1, 2.5], [3, -0.75, 0.125, -3.5], [1.5, 2, -2, 0.875], [4, -4, 0.3, 0.9]])


def has(name):
    return importlib.util.find_spec(name) is not None


class Named(unittest.TestCase):
    def test_what_xarray_wrote_has_names_and_is_read_when_asked(self):
        for store in ("xarray_v3.zarr", "xarray_v2.zarr"):
            opened = ts.open_zarr(str(data / store))
            self.assertEqual(opened["t2m"].dims, ("time", "lat", "lon"))
            self.assertEqual(opened["t2m"].attrs["units"], "K")
            self.assertEqual(opened.dims["lat"], 3)
            for sharding in shardings(3):
                assert_same(opened["t2m"].load(sharding), made(60).astype(np.float32).reshape(4, 3, 5))
            assert_same(opened["t2m"].isel(time=slice(1, 3)), made(60).astype(np.float32).reshape(4, 3, 5)[1:3])
            wanted = made(15) / 10
            wanted[0] = np.nan
            np.testing.assert_allclose(np.asarray(ts.device_get(opened["packed"].load())).ravel(), wanted, atol=1e-12)
        self.assertRaises(ValueError, lambda: opened["t2m"].isel(nowhere=slice(1)))
        for convert in (ts.asarray, np.asarray):
            with self.assertRaisesRegex(TypeError, r"test_stores.py:\d+: <NamedArray 't2m' .*; its load\(sharding\) reads all of it"):
                convert(opened["t2m"])

    def test_numbers_outside_the_valid_range_are_missing(self):
        for attrs, wanted in (({"valid_range": [1, 2]}, [np.nan, 1, 2, np.nan]), ({"valid_min": 1}, [np.nan, 1, 2, 3]), ({"valid_max": 2, "scale_factor": 0.5}, [0, 0.5, 1, np.nan])):
            x = _unpacked(ts.array([0, 1, 2, 3], dtype="int16"), attrs)
            self.assertEqual(str(x.dtype), "float64")
            np.testing.assert_array_equal(ts.device_get(x), wanted)

    def test_stored_numbers_may_be_declared_unsigned_and_have_several_missing_ones(self):
        for attrs, wanted in (({"_Unsigned": "true"}, [255, 1, 254]), ({"_Unsigned": "true", "_FillValue": -1, "scale_factor": 0.5}, [np.nan, 0.5, 127]), ({"missing_value": [-1, 1]}, [np.nan, np.nan, -2])):
            np.testing.assert_array_equal(ts.device_get(_unpacked(ts.array([-1, 1, -2], dtype="int8"), attrs)), wanted)

    def test_names_of_what_is_no_array_say_why(self):
        for opened, name, why in ((ts.open_netcdf(str(data / "netcdf4.nc")), "names", "holds texts"), (ts.open_zarr(str(data / "xarray_v3.zarr")), "t3m", "there are .*t2m")):
            self.assertNotIn(name, opened)
            self.assertIsNone(opened.get(name))
            with self.assertRaisesRegex(KeyError, why):
                opened[name]

    def test_netcdf(self):
        opened = ts.open_netcdf(str(data / "xarray.nc"))
        self.assertEqual(opened["t2m"].dims, ("time", "lat", "lon"))
        assert_same(opened["t2m"][1:3], made(60).astype(np.float32).reshape(4, 3, 5)[1:3])
        self.assertTrue(np.isnan(np.asarray(ts.device_get(opened["packed"].load()))[0, 0]))


class OfVersion2(Folder):
    def test_the_missing_number_is_in_the_metadata(self):
        """xarray writes _FillValue as fill_value there; null and NaN mask nothing, and a store of others has a fill_value without that meaning."""
        cases = ((-999.0, True, [1, np.nan, 0]), (0, True, [1, -999, np.nan]), (None, True, [1, -999, 0]), ("NaN", True, [1, -999, 0]), (-999.0, False, [1, -999, 0]))
        for number, (fill, is_of_xarray, wanted) in enumerate(cases):
            store = pathlib.Path(self.path(f"{number}.zarr"))
            if ts.is_main_process():
                (store / "m").mkdir(parents=True)
                (store / ".zgroup").write_text('{"zarr_format": 2}')
                meta = {"zarr_format": 2, "shape": [3], "chunks": [3], "dtype": "<f8", "compressor": None, "fill_value": fill, "order": "C", "filters": None}
                (store / "m" / ".zarray").write_text(json.dumps(meta))
                (store / "m" / ".zattrs").write_text(json.dumps({"_ARRAY_DIMENSIONS": ["x"]} if is_of_xarray else {}))
                (store / "m" / "0").write_bytes(np.array([1.0, -999, 0]).tobytes())
            ts.multihost.sync_global_devices("made")
            np.testing.assert_array_equal(ts.device_get(ts.open_zarr(store)["m"].load()), wanted, str(fill))


class Streamed(Folder):
    def test_programs_on_files_run_slab_by_slab(self):
        values = np.linspace(1, 2, 60000).reshape(6000, 10)
        path = self.path("x.npy")
        ts.io.save_npy(path, values)
        x = ts.io.open(path)
        self.assertIsInstance(x, ts.Array)
        self.assertEqual((x.shape, x.path, x.chunks), ((6000, 10), path, ()))
        self.assertIn("float64(6000, 10) in", repr(x))
        np.testing.assert_array_equal(ts.device_get(x.part(slice(10, 20), slice(0, 3)).load()), values[10:20, :3])
        mean, spread = ts.io.compute([ts.mean(x, axis=0), ts.std(x, axis=0)], memory_limit=200000)
        np.testing.assert_allclose(ts.device_get(mean), values.mean(0))
        np.testing.assert_allclose(ts.device_get(spread), values.std(0))
        plan = ts.io.explain_store(self.path("y.npy"), (x - mean) / 2, memory_limit=200000)
        self.assertEqual((plan.passes, plan.bytes_read, plan.bytes_written, plan.bytes_spilled), (1, 480000, 480000, 0))
        self.assertLessEqual(plan.peak_bytes, 200000)
        self.assertIn("1 pass of", str(plan))
        ts.io.store(self.path("y.npy"), (x - mean) / 2, memory_limit=200000)
        np.testing.assert_allclose(ts.device_get(ts.io.load_npy(self.path("y.npy"))), (values - values.mean(0)) / 2)
        tree = ts.io.compute({"sums": (ts.sum(x, axis=0), [ts.max(x)]), "two": 2, "none": None}, memory_limit=200000)
        np.testing.assert_allclose(ts.device_get(tree["sums"][0]), values.sum(0))
        self.assertEqual((float(tree["sums"][1][0]), float(tree["two"]), tree["none"]), (values.max(), 2, None))
        self.assertEqual(ts.io.compute({}), {})
        ts.io.save_npy(self.path("square.npy"), values[:10])
        with self.assertRaisesRegex(ValueError, "no dim of the files can be streamed"):
            ts.io.compute(ts.linalg.cholesky(ts.io.open(self.path("square.npy"))))

    def test_selected_rows_are_read_alone(self):
        values = np.linspace(1, 2, 300000).reshape(3000, 100)
        ts.io.save_npy(self.path("x.npy"), values)
        x = ts.io.open(self.path("x.npy"))
        mask = np.arange(3000) % 1000 == 7
        for found, wanted in ((x[[3, 2999, -2999]], values[[3, 2999, -2999]]), (x[7], values[7]), (x[mask] * 2, values[mask] * 2),
                              (ts.take(x, ts.array([5, 2000]), axis=0), values[[5, 2000]]), (x[[1, 2], [3, -4]], values[[1, 2], [3, -4]]),
                              (x[::1000, 5], values[::1000, 5]), (ts.sqrt(x)[10:12], np.sqrt(values[10:12]))):
            self.assertLessEqual(ts.io.explain_compute(found).bytes_read, 3 * (800 + 32768))
            np.testing.assert_allclose(ts.device_get(ts.io.compute(found)), wanted)
        best, places = ts.lax.top_k(ts.reshape(ts.sin(x * 50), -1), 4)
        wave = np.sin(values * 50).ravel()
        found = ts.io.compute([best, places], memory_limit=400000)
        np.testing.assert_allclose(ts.device_get(found[0]), np.sort(wave)[:-5:-1])
        np.testing.assert_allclose(wave[ts.device_get(found[1])], np.sort(wave)[:-5:-1])

    def test_several_results_share_the_passes(self):
        values = np.linspace(1, 2, 60000).reshape(6000, 10)
        ts.io.save_npy(self.path("x.npy"), values)
        x = ts.io.open(self.path("x.npy"))
        results = {self.path("centred.npy"): x - ts.mean(x, axis=0), (self.path("std.h5"), "s"): ts.std(x, axis=0), self.path("y.zarr"): x * 2}
        self.assertEqual(ts.io.explain_store(results, memory_limit=400000).bytes_read, 2 * values.nbytes)
        ts.io.store(results, memory_limit=400000)
        np.testing.assert_allclose(ts.device_get(ts.io.load_npy(self.path("centred.npy"))), values - values.mean(0), atol=1e-15)
        np.testing.assert_allclose(ts.device_get(ts.io.load_hdf5(self.path("std.h5"), "s")), values.std(0))
        np.testing.assert_allclose(ts.device_get(ts.io.load_zarr(self.path("y.zarr"))), values * 2)
        with self.assertRaisesRegex(ValueError, "is given twice"):
            ts.io.store({self.path("a.zarr"): x, (self.path("a.zarr"), "x"): x})
        with self.assertRaisesRegex(TypeError, "the dict holds 'text'; its keys are paths"):
            ts.io.store({self.path("b.npy"): "text"})

    def test_the_format_is_told_by_the_bytes(self):
        """MATLAB writes HDF5 behind 512 bytes of its own; what cannot be streamed is named with a cure."""
        plain, behind = self.path("x.h5"), self.path("x.mat")
        ts.io.save_hdf5(plain, "A", ts.array(real))
        others = {b"PAR1": "pandas.read_parquet", b"GGUF": "safetensors", b"\x1f\x8b\x08": "gunzip", b"PK\x03\x04": "load_npz", b'{"version": 1}': "to_zarr", b"": "own function"}
        if ts.is_main_process():
            pathlib.Path(behind).write_bytes(b"MATLAB 7.3 MAT-file".ljust(512) + pathlib.Path(plain).read_bytes())
            for number, first in enumerate(others):
                pathlib.Path(self.path(str(number))).write_bytes(first)
        ts.multihost.sync_global_devices("written")
        np.testing.assert_allclose(ts.device_get(ts.io.compute(ts.sum(ts.io.open(behind, "A"), axis=0))), real.sum(0), rtol=1e-6)
        for number, cure in enumerate(others.values()):
            with self.assertRaisesRegex(OSError, cure):
                ts.io.open(self.path(str(number)))

    def test_paths_of_pathlib(self):
        folder = pathlib.Path(self.path(""))
        values = np.arange(12.0).reshape(3, 4)
        ts.io.save_npy(folder / "x.npy", values)
        x = ts.io.open(folder / "x.npy")
        ts.io.store(folder / "y.npy", x * 2)
        ts.io.save_zarr(folder / "z.zarr", values)
        ts.io.save_netcdf(folder / "n.nc", {"v": values}, {"v": ["a", "b"]})
        for found in (ts.io.load_npy(folder / "y.npy") / 2, ts.io.load_zarr(folder / "z.zarr"), ts.open_netcdf(folder / "n.nc")["v"].load(),
                      ts.open_zarr(folder / "z.zarr")[""].load(), ts.io.load_npy(os.fsencode(folder / "x.npy"))):
            np.testing.assert_array_equal(ts.device_get(found), values)
        self.assertEqual(ts.io.explain_store(folder / "y.npy", x * 2).bytes_written, 96)
        self.assertEqual([ts.io.explain_compute(v).bytes_read for v in (ts.sum(x), [ts.sum(x)])], [96, 96])  # one array, or a list
        with ts.io.Zarr(folder / "w.zarr") as out:
            out.write("v", values)
        ts.io.checkpoint.save(folder / "steps", 1, values)
        self.assertEqual(ts.io.checkpoint.latest_step(folder / "steps"), 1)
        with self.assertRaises(TypeError):
            ts.io.load_npy(3)

    def test_variables_that_xarray_wrote(self):
        for path in ("xarray.nc", "xarray_v3.zarr", "xarray_v2.zarr"):
            t2m = ts.io.open(str(data / path), name="t2m")
            wanted = made(60).astype(np.float32).reshape(4, 3, 5)
            np.testing.assert_allclose(ts.device_get(ts.io.compute(ts.mean(t2m, axis=0), slab=1)), wanted.mean(0), rtol=1e-6)
        packed = ts.io.open(str(data / "xarray.nc"), name="packed")
        stored = ts.io.open(str(data / "xarray.nc"), name="packed", unpack=False)
        self.assertNotEqual(packed.dtype, stored.dtype)
        unpacked = np.asarray(ts.device_get(ts.open_netcdf(str(data / "xarray.nc"))["packed"].load()))
        np.testing.assert_array_equal(ts.device_get(ts.io.compute(packed * 2, slab=2)), unpacked * 2)


class Written(Folder):
    def test_a_store_that_stays_open(self):
        for x in spread(real):
            path = self.path("run.zarr")
            with ts.io.Zarr(path, mode="replace") as out:
                out.append("group/rows", x, chunks=[2, 3], dims=["y", "x"])
                out.append("group/rows", x)
                out.attribute("group/rows", "units", "m")
            assert_same(ts.io.load_zarr(path + "/group/rows"), np.concatenate([real, real]))
            self.assertEqual(ts.open_zarr(path)["group/rows"].attrs, {"units": "m"})
            ts.multihost.sync_global_devices("read")

    @unittest.skipUnless(has("zarr") and has("xarray"), "zarr and xarray are not installed")
    def test_xarray_and_zarr_python_read_what_is_written(self):
        import xarray
        import zarr
        for number, x in enumerate(spread(real)):
            path = self.path(f"x{number}")
            ts.io.save_zarr(path + ".zarr", {"t": x}, chunks=[2, 3], shards=[4, 3], compression="blosc", dims=["y", "x"])
            with ts.io.Netcdf(path + ".nc", mode="replace") as out:
                out.append("t", x, ["y", "x"])
            ts.multihost.sync_global_devices("written")
            np.testing.assert_array_equal(zarr.open_group(path + ".zarr", mode="r")["t"][...], real)
            opened = xarray.open_zarr(path + ".zarr")
            self.assertEqual(opened["t"].dims, ("y", "x"))
            np.testing.assert_array_equal(opened["t"].values, real)
            if has("netCDF4") or has("h5netcdf"):
                np.testing.assert_array_equal(xarray.open_dataset(path + ".nc")["t"].values, real)
            ts.multihost.sync_global_devices("read")


@unittest.skipUnless(has("scipy"), "SciPy is not installed")
class Sparse(Folder):
    def test_matrices_of_scipy_are_read_and_ours_by_it(self):
        import scipy.sparse
        dense = np.where(np.arange(24 * 18).reshape(24, 18) % 5 == 2, np.arange(24 * 18).reshape(24, 18) - 200, 0)
        dense[4:9] = 0
        sharding = ts.NamedSharding(ts.make_mesh((ts.device_count(),), ("x",)), ts.P("x"))
        for kind in ("csr", "csc", "coo", "bsr"):
            for dtype in ("float32", "int64", "bool", "complex128"):
                path = self.path(f"{kind}-{dtype}.npz")
                if ts.is_main_process():
                    scipy.sparse.save_npz(path, scipy.sparse.coo_matrix(dense.astype(dtype)).asformat(kind), compressed=dtype != "bool")
                ts.multihost.sync_global_devices("written")
                a = ts.sparse.load_npz(path, sharding)
                np.testing.assert_array_equal(ts.device_get(ts.sparse.to_dense(a)), dense.astype(dtype))
                opened, x = ts.sparse.open(path), np.arange(36.).reshape(18, 2)
                for slab in (7, 100000):
                    found = ts.io.compute([opened @ ts.asarray(x), opened.T @ ts.asarray(np.arange(24.))], slab=slab)
                    np.testing.assert_allclose(ts.device_get(found[0]), dense.astype(dtype) @ x)
                    np.testing.assert_allclose(ts.device_get(found[1]), np.arange(24.) @ dense.astype(dtype))
        # What SciPy refuses (or should: it reads beside its arrays) is refused, and what no memory holds.
        for path in sorted((pathlib.Path(__file__).parent.parent / "fuzz/corpus/sparse_npz").glob("*.npz")):
            if path.stem == "of_no_rows":
                self.assertEqual(ts.sparse.load_npz(path, sharding).shape, (0, 0))
                continue
            with self.assertRaises((OSError, MemoryError), msg=path.stem):
                ts.sparse.load_npz(path, sharding)
        for name, x in (("a", a), ("t", a.T)):
            ts.sparse.save_npz(self.path(name + ".npz"), x)
            back = scipy.sparse.load_npz(self.path(name + ".npz"))
            back.check_format()
            np.testing.assert_array_equal(back.toarray(), ts.device_get(ts.sparse.to_dense(x)))
            self.assertTrue(back.has_sorted_indices)

    def test_packed_matrices_are_unpacked_to_nameless_files_or_refused(self):
        """A damaged member, one that is cut short, and blocks at places that are none."""
        import scipy.sparse
        blocks = scipy.sparse.random(4000, 3000, 0.02, "coo", random_state=0).tobsr((2, 3))
        bytes_of = lambda: pathlib.Path(self.path("a.npz")).read_bytes()  # noqa: E731
        def put(bytes):
            ts.multihost.sync_global_devices("read")
            if ts.is_main_process():
                pathlib.Path(self.path("a.npz")).write_bytes(bytes)
            ts.multihost.sync_global_devices("written")
        def save(**arrays):
            if ts.is_main_process():
                np.savez_compressed(self.path("a.npz"), **({"format": b"bsr", "shape": blocks.shape, "data": blocks.data, "indices": blocks.indices, "indptr": blocks.indptr} | arrays))
            ts.multihost.sync_global_devices("written")
        save()
        product = ts.sparse.open(self.path("a.npz")) @ ts.ones((3000,), "float64")
        plan = ts.io.explain_compute([product], memory_limit=1 << 20)
        self.assertGreater(plan.slabs, 1)
        np.testing.assert_allclose(ts.device_get(ts.io.compute(product, memory_limit=1 << 20)), blocks @ np.ones(3000))
        self.assertEqual([p.name for p in pathlib.Path(".").glob(".tessera-spill-*")], [])
        whole = bytes_of()
        at = whole.index(b"data.npy") + len(whole) // 3
        put(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1:])
        self.assertRaisesRegex(OSError, "a.npz' has a damaged member '\\w+.npy'", lambda: ts.sparse.open(self.path("a.npz")))
        put(whole[:len(whole) // 2])
        self.assertRaisesRegex(OSError, "a.npz' is no whole zip archive", lambda: ts.sparse.open(self.path("a.npz")))
        save(indices=np.where(blocks.indices == 5, -1, blocks.indices))
        self.assertRaisesRegex(OSError, "has -1 as element \\d+ of 'indices'", lambda: ts.io.compute(ts.sparse.open(self.path("a.npz")) @ ts.ones((3000,), "float64")))
        save(data=np.zeros((len(blocks.data), 2, 7)))
        self.assertRaisesRegex(OSError, "blocks of 2 x 7, which do not divide", lambda: ts.io.compute(ts.sparse.open(self.path("a.npz")) @ ts.ones((3000,), "float64")))


if __name__ == "__main__":
    unittest.main()
