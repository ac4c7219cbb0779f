#!/usr/bin/env python3
"""make_data.py FOLDER: the stores and files of tests/io/data, as zarr-python 3, xarray and netCDF4 write them (all from PyPI).

Every array holds f(i) = (7 i mod 100) - 50 at its flat index i, shifted into what its dtype can hold, so that the tests know the values.
"""
import pathlib
import shutil
import sys

import numpy as np
import zarr
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec, GzipCodec, ShardingCodec, TransposeCodec, ZstdCodec


def values(shape, dtype):
    flat = (7 * np.arange(int(np.prod(shape)), dtype=np.int64)) % 100 - 50
    if np.dtype(dtype).kind == "u":
        flat += 50
    if np.dtype(dtype).kind == "b":
        flat = flat > 0
    if np.dtype(dtype).kind == "c":
        flat = flat + 1j * flat[::-1]
    return flat.astype(dtype).reshape(shape)


def put(store, name, shape, chunks, dtype, fill=0, **options):
    array = store.create_array(name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill, **options)
    if np.prod(shape) > 0:
        array[...] = values(shape, dtype)
    return array


def version_3(path):
    store = zarr.open_group(path, mode="w", zarr_format=3, attributes={"title": "Größe \u00b5", "levels": [1, 2, 3], "nested": {"a": [True, None]}})
    plain = {"compressors": None, "filters": None}
    put(store, "plain", (7, 5), (3, 2), "float64", **plain)
    put(store, "big_endian", (7, 5), (3, 2), "float32", serializer=BytesCodec(endian="big"), compressors=None)
    put(store, "turned", (4, 5, 3), (2, 3, 2), "int32", filters=[TransposeCodec(order=(2, 0, 1))], compressors=None)
    put(store, "zstd", (9, 4), (4, 4), "int16", compressors=[ZstdCodec(level=3)])
    put(store, "gzip", (9, 4), (4, 3), "uint8", compressors=[GzipCodec(level=6)])
    for cname in ("lz4", "zstd", "zlib", "blosclz", "lz4hc"):
        put(store, f"blosc/{cname}", (40, 5), (16, 5), "float32", compressors=[BloscCodec(cname=cname, clevel=5, shuffle="bitshuffle" if cname == "zstd" else "shuffle", typesize=4)])
    put(store, "summed", (6,), (4,), "uint16", compressors=[ZstdCodec(level=1), Crc32cCodec()])
    put(store, "sharded", (10, 9), (2, 3), "float32", shards=(4, 6), compressors=[ZstdCodec(level=1)])
    put(store, "sharded_start", (10, 9), (2, 3), "complex64", compressors=None,
        serializer=ShardingCodec(chunk_shape=(1, 3), codecs=[TransposeCodec(order=(1, 0)), BytesCodec(endian="big"), Crc32cCodec()], index_location="start"))
    put(store, "dots", (5, 5), (2, 2), "int64", chunk_key_encoding={"name": "default", "separator": "."}, **plain)
    put(store, "v2_keys", (5, 5), (2, 2), "int8", chunk_key_encoding={"name": "v2", "separator": "."}, **plain)
    put(store, "scalar", (), (), "float64")
    put(store, "empty", (0, 4), (1, 4), "float32")
    for dtype in ("bool", "uint32", "uint64", "float16", "complex128"):
        put(store, f"types/{dtype}", (6,), (4,), dtype)
    missing = store.create_array("missing", shape=(6, 4), chunks=(2, 2), dtype="float32", fill_value=float("nan"), dimension_names=("y", None), compressors=None)
    missing[2:4, 2:4] = values((2, 2), "float32")
    missing.attrs["units"] = "K"
    missing.attrs["valid_max"] = float("inf")
    store.create_array("below", shape=(3,), chunks=(2,), dtype="int16", fill_value=-7)
    store.create_array("infinite", shape=(3,), chunks=(2,), dtype="float64", fill_value=float("-inf"))
    zarr.consolidate_metadata(path)


def version_2(path):
    import numcodecs
    store = zarr.open_group(path, mode="w", zarr_format=2, attributes={"title": "old"})
    for name, order, dtype, compressor, separator in (("c", "C", "<f8", numcodecs.Blosc(cname="lz4", clevel=5, shuffle=1), "."), ("f", "F", ">f4", numcodecs.Zlib(level=1), "/"),
                                                      ("plain", "C", ">i2", None, "."), ("gzip", "F", "<c16", numcodecs.GZip(level=1), "."), ("zstd", "C", "|b1", numcodecs.Zstd(level=1), ".")):
        array = store.create_array(name, shape=(5, 7), chunks=(2, 3), dtype=dtype, fill_value=None if name == "plain" else 0, order=order, filters=None, compressors=compressor,
                                   chunk_key_encoding={"name": "v2", "separator": separator})
        array[...] = values((5, 7), dtype)
    array.attrs["_ARRAY_DIMENSIONS"] = ["y", "x"]
    zarr.consolidate_metadata(path)


def of_xarray(folder):
    import xarray as xr
    time = np.arange("2026-01-01", "2026-01-05", dtype="datetime64[D]").astype("datetime64[ns]")
    data = xr.Dataset({"t2m": (("time", "lat", "lon"), values((4, 3, 5), "float32"), {"units": "K", "long_name": "Temperatur in 2 m Höhe"}),
                       "packed": (("lat", "lon"), np.where(values((3, 5), "float64") == -50, np.nan, values((3, 5), "float64") / 10))},
                      coords={"time": time, "lat": np.linspace(-10, 10, 3), "lon": np.arange(5.0)}, attrs={"Conventions": "CF-1.8"})
    packing = {"packed": {"dtype": "int16", "scale_factor": 0.1, "add_offset": 2.0, "_FillValue": -32768}}
    data.to_zarr(folder / "xarray_v3.zarr", mode="w", zarr_format=3, encoding=packing, consolidated=True)
    data.to_zarr(folder / "xarray_v2.zarr", mode="w", zarr_format=2, encoding=packing, consolidated=True)
    data.to_netcdf(folder / "xarray.nc", engine="netcdf4", encoding=packing, unlimited_dims=["time"])


def with_coordinates(path):
    """A coordinate of two dims, whose names netCDF-C keeps as numbers; a variable with one dim twice."""
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("x", 3), ("y", 4), ("t", None)):
            file.createDimension(name, size)
        file.createVariable("x", "f8", ("x", "y"))[:] = np.arange(12).reshape(3, 4)
        file.createVariable("z", "f4", ("t", "y", "x"))[0:2] = np.arange(24).reshape(2, 4, 3)
        file.createVariable("square", "f4", ("y", "y"))[:] = np.arange(16).reshape(4, 4)


def of_netcdf4(path):
    import netCDF4
    with netCDF4.Dataset(path, "w") as file:
        file.title = "packed, masked, grouped"
        file.createDimension("time", None)
        file.createDimension("x", 5)
        x = file.createVariable("x", "f4", ("x",))
        x[:] = np.arange(5)
        x.units = "m"
        packed = file.createVariable("packed", "i2", ("time", "x"), zlib=True, chunksizes=(2, 3), fill_value=-99)
        packed.scale_factor, packed.add_offset = np.float32(0.5), np.float32(10)
        packed[:] = np.ma.masked_equal(values((3, 5), "float32"), -50)
        small = file.createVariable("small", "u1", ("x",))
        small.missing_value = np.uint8(7)
        small[:] = values((5,), "uint8")
        number = file.createVariable("number", "f8", ())
        number[...] = 2.5
        inner = file.createGroup("inner")
        inner.createDimension("z", 4)
        z = inner.createVariable("field", "f8", ("z", "x"))
        z[:] = values((4, 5), "float64")
        file.createVariable("names", str, ("x",))[:] = np.array(["a", "b", "c", "d", "e"], dtype=object)


def of_newer_hdf5(path):
    """A dataset that HDF5 1.10 lists and cannot open: the chunk index of the newest format."""
    import h5py
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("packed", data=values((5, 3), "float64"), chunks=(2, 2), compression="gzip")
        file["plain"] = values((5, 3), "float64")


def main():
    folder = pathlib.Path(sys.argv[1])
    for name in ("v3.zarr", "v2.zarr", "xarray_v3.zarr", "xarray_v2.zarr"):
        shutil.rmtree(folder / name, ignore_errors=True)
    version_3(folder / "v3.zarr")
    version_2(folder / "v2.zarr")
    of_xarray(folder)
    of_netcdf4(folder / "netcdf4.nc")
    with_coordinates(folder / "coordinates.nc")
    of_newer_hdf5(folder / "newer.h5")


if __name__ == "__main__":
    main()
