"""Arrays in files, by name: open_zarr and open_netcdf. Values are read on request, with the sharding given then."""
import base64
import collections.abc
import json
import os
import struct

from . import _core

_io = _core.io


class NamedArray:
    """An array in a file: name, shape, dtype, the names of its dims, and its attributes (attrs). Nothing is read before load() or []."""

    def __init__(self, name, info, dims, attrs, read):
        self.name, self.shape, self.dtype, self.dims, self.attrs = name, tuple(info.shape), info.dtype, tuple(dims), attrs
        self._read = read

    def load(self, sharding=None):
        """The values, committed to the sharding, each rank its own block; without one uncommitted, every rank all of them. Collective over all ranks."""
        return self._read(sharding, [])

    def isel(self, sharding=None, **slices):
        """A part of the values: a slice for each named dim, as in isel(time=slice(0, 10)). Only that part is read. Collective over all ranks."""
        unknown = set(slices) - set(self.dims)
        if unknown:
            raise ValueError(f"isel: '{self.name}' has no dim {', '.join(sorted(unknown))}; it has {', '.join(map(str, self.dims))}")
        return self._read(sharding, [slices.get(dim, slice(None)) for dim in self.dims])

    def __getitem__(self, key):
        """A part of the values by slices, uncommitted."""
        return self._read(None, list(key) if isinstance(key, tuple) else [key])

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __array__(self, dtype=None, copy=None):
        raise TypeError(f"at {_core.here()}: {self!r} is in a file; its load(sharding) reads all of it, and [0:10] a part")

    def __repr__(self):
        sizes = ", ".join(f"{dim}: {size}" for dim, size in zip(self.dims, self.shape))
        return f"<NamedArray '{self.name}' ({sizes}) {self.dtype}>"


class Dataset(collections.abc.Mapping):
    """The arrays of a store or a file by their names, its attributes (attrs), and the sizes of its dims (dims)."""

    def __init__(self, path, arrays, attrs, dims, info_of):
        self.path, self.attrs, self.dims, self._arrays, self._info_of = path, attrs, dims, arrays, info_of

    def __getitem__(self, name):
        if name in self._arrays:
            return self._arrays[name]
        try:
            self._info_of(name)  # why it is none of the arrays: a codec, texts
            reason = "is no array with dims"
        except (OSError, TypeError) as error:
            reason = f"cannot be read: {error}"
        raise KeyError(f"at {_core.here()}: {name!r} of '{self.path}' {reason}; there are {', '.join(map(repr, self._arrays))}")

    def __contains__(self, name):
        return name in self._arrays

    def __iter__(self):
        return iter(self._arrays)

    def __len__(self):
        return len(self._arrays)

    def __repr__(self):
        return "\n".join([f"<Dataset '{self.path}' ({', '.join(f'{dim}: {size}' for dim, size in self.dims.items())})", *(f"  {x!r}" for x in self.values())]) + ">"


def _fill_attribute(value, dtype):
    """xarray packs _FillValue of floating point numbers as base64 of a double."""
    if isinstance(value, str) and str(dtype).startswith(("float", "bfloat")):
        return struct.unpack("<d", base64.standard_b64decode(value))[0]
    return value


def _stored_fill(place):
    """The fill value of an array of version 2 if it is a number; None for null, which the form of version 3 cannot say, and for NaN."""
    with open(f"{place}/.zarray", encoding="utf-8") as file:
        fill = json.load(file).get("fill_value")
    return fill if isinstance(fill, (int, float)) and not isinstance(fill, bool) and fill == fill else None


def _valid_range(attrs):
    """The smallest and the largest valid stored number, None where there is none: valid_range, or valid_min and valid_max."""
    both = attrs.get("valid_range")
    least, most = both if isinstance(both, list) and len(both) == 2 else (attrs.get("valid_min"), attrs.get("valid_max"))
    return [number if isinstance(number, (int, float)) else None for number in (least, most)]


def _unpacked(x, attrs):
    """stored * scale_factor + add_offset, and NaN for _FillValue, missing_value, and outside valid_range or valid_min and valid_max, as CF has it."""
    from . import _standard as ts
    scale, offset = attrs.get("scale_factor"), attrs.get("add_offset")
    missing = [attrs[name] for name in ("_FillValue", "missing_value") if attrs.get(name) is not None]
    missing = [_fill_attribute(number, x.dtype) for given in missing for number in (given if isinstance(given, list) else [given])]
    missing = [number for number in missing if isinstance(number, (int, float)) and number == number]
    least, most = _valid_range(attrs)
    stored = x
    if attrs.get("_Unsigned") == "true" and str(x.dtype).startswith("int"):
        x = x.view("u" + str(x.dtype))
    if scale is None and offset is None and not missing and least is None and most is None:
        return x
    name = "float32" if str(x.dtype) == "float32" else "float64"
    values = ts.astype(x, name)
    if scale is not None:
        values = values * scale
    if offset is not None:
        values = values + offset
    for number in missing:
        values = ts.where(stored == number, float("nan"), values)
    if least is not None:
        values = ts.where(x < least, float("nan"), values)
    if most is not None:
        values = ts.where(x > most, float("nan"), values)
    return values


def open_zarr(path, unpack=True):
    """The arrays of a Zarr store (version 2 or 3), with their dims and attributes; the values are read later. With `unpack`, what CF calls packed becomes numbers:
    scale_factor, add_offset, and NaN for _FillValue, missing_value and numbers outside the valid range. Not collective; reading is."""
    path, arrays, dims = os.fspath(path), {}, {}
    for name, info in _io.zarr_arrays(path).items():
        place = f"{path}/{name}" if name else path
        attrs = json.loads(_io.zarr_attributes_json(place))
        names = [dim or f"dim_{d}" for d, dim in enumerate(_io.zarr_dims(place) or [""] * len(info.shape))]
        is_of_xarray = attrs.pop("_ARRAY_DIMENSIONS", None) is not None
        if info.detail.startswith("zarr 2") and is_of_xarray and "_FillValue" not in attrs:
            fill = _stored_fill(place)  # where xarray keeps it in this version
            if fill is not None:
                attrs["_FillValue"] = fill

        def read(sharding, slices, place=place, attrs=attrs):
            x = _io.load_zarr(place, slices=slices) if sharding is None else _io.load_zarr(place, sharding, slices=slices)
            return _unpacked(x, attrs) if unpack else x

        arrays[name] = NamedArray(name, info, names, attrs, read)
        dims.update(zip(names, arrays[name].shape))
    return Dataset(path, arrays, json.loads(_io.zarr_attributes_json(path)), dims, lambda name: _io.zarr_dims(f"{path}/{name}"))


def open_netcdf(path, unpack=True):
    """The variables of a netCDF-4 file, with their dims and attributes; the values are read later, unpacked as load_netcdf does. Not collective; reading is."""
    path, arrays = os.fspath(path), {}
    for name, (info, names) in _io.netcdf_variables(path).items():

        def read(sharding, slices, name=name):
            if sharding is None:
                return _io.load_netcdf(path, name, unpack=unpack, slices=slices)
            return _io.load_netcdf(path, name, sharding, unpack=unpack, slices=slices)

        arrays[name] = NamedArray(name, info, names, _io.netcdf_attributes(path, name), read)
    sizes = {name: size for name, (size, _) in _io.netcdf_dims(path).items()}
    return Dataset(path, arrays, _io.netcdf_attributes(path), sizes, lambda name: _io.hdf5_info(path, name))
