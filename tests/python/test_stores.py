"""Zarr stores and netCDF files by name: those that xarray and zarr-python wrote, and ours read by them where they are installed."""
import importlib.util
import pathlib
import unittest

import numpy as np

import tessera as ts
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

    def test_netcdf(self):
        opened = ts.open_netcdf(str(data / "xarray.nc"))
        self.assertEqual(opened["t2m"].dims, ("time", "lat", "lon"))
        assert_same(opened["t2m"][1:3], made(60).astype(np.float32).reshape(4, 3, 5)[1:3])
        self.assertTrue(np.isnan(np.asarray(ts.device_get(opened["packed"].load()))[0, 0]))


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


if __name__ == "__main__":
    unittest.main()
