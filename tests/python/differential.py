#!/usr/bin/env python3
"""differential.py FORMAT: mutants of files, read by tessera and by who defines the format (NumPy, h5py, netCDF4, zarr, the rules of safetensors).

What the other refuses, tessera refuses; what both take has the same shape, dtype and bits. tessera may refuse more. TESSERA_TEST_INPUTS: how many
mutants (300); TESSERA_TEST_FIRST: the first number (else the date), which is printed. Status 77: the other reader is not installed."""
import hashlib
import io
import json
import os
import pathlib
import pickle
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

batch = 2000


# ---- seeds ----
def npy_bytes(x, version=None):
    out = io.BytesIO()
    np.lib.format.write_array(out, x, version)
    return out.getvalue()


def npz_bytes(save):
    out = io.BytesIO()
    save(out, a=np.arange(12, dtype="<i4").reshape(3, 4), x=np.asfortranarray(np.arange(6.0).reshape(2, 3)) - 2.5)
    return out.getvalue()


def safetensors_bytes():
    header = {"__metadata__": {"by": "test"}, "x": {"dtype": "F64", "shape": [2, 3], "data_offsets": [0, 48]},
              "n": {"dtype": "I32", "shape": [2], "data_offsets": [48, 56]}}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + np.arange(6.0).tobytes() + np.arange(2, dtype="<i4").tobytes()


def hdf5_bytes():
    import h5py
    folder = tempfile.mkdtemp()
    name = os.path.join(folder, "x.h5")
    with h5py.File(name, "w") as file:
        file.create_dataset("x", data=np.arange(24.0).reshape(4, 6))
        file.create_dataset("g/y", data=np.arange(24.0).reshape(4, 6), chunks=(2, 3), compression="gzip", shuffle=True)
    data = pathlib.Path(name).read_bytes()
    os.unlink(name), os.rmdir(folder)
    return data


def netcdf_bytes():
    import netCDF4
    with tempfile.TemporaryDirectory() as folder:
        name = os.path.join(folder, "x.nc")
        with netCDF4.Dataset(name, "w") as file:
            file.createDimension("t", None), file.createDimension("y", 3)
            file.createVariable("t", "f8", ("t",))[:] = np.arange(5.0)
            x = file.createVariable("x", "i2", ("t", "y"), fill_value=-9, zlib=True, chunksizes=(2, 3))
            x.scale_factor, x.add_offset, x.units = 0.5, 100.0, "K"
            x.set_auto_maskandscale(False)
            x[:] = np.arange(-9, 6).reshape(5, 3)
        return pathlib.Path(name).read_bytes()


def zarr_writers():
    """What writes an array to a folder, a way each: zarr 3 writes both forms of the format, Debian 12's zarr 2 the older one."""
    import numcodecs
    import zarr
    if zarr.__version__.startswith("2."):
        for options in ({}, {"compressor": None, "fill_value": 7}, {"order": "F"}, {"compressor": numcodecs.Blosc("zstd"), "fill_value": float("nan")},
                        {"compressor": numcodecs.GZip()}, {"compressor": numcodecs.Zstd(), "order": "F"}):
            yield lambda folder, shape, dtype: zarr.open_array(folder, "w", shape=shape, dtype=dtype, chunks=(2, 4), **options)
        return
    for options in ({}, {"compressors": None, "fill_value": 7}, {"shards": (4, 4)}, {"compressors": zarr.codecs.BloscCodec(), "fill_value": float("nan")},
                    {"compressors": [zarr.codecs.GzipCodec(), zarr.codecs.Crc32cCodec()]}, {"zarr_format": 2}, {"zarr_format": 2, "order": "F", "compressors": None}):
        yield lambda folder, shape, dtype: zarr.create_array(folder, shape=shape, dtype=dtype, chunks=(2, 4), **options)


def zarr_bytes():
    """An array's document and one of its chunks."""
    x, found = np.arange(12, dtype="<f4").reshape(3, 4) - 5, []
    for write in zarr_writers():
        with tempfile.TemporaryDirectory() as folder:
            write(folder, x.shape, x.dtype)[...] = x
            files = [path for path in sorted(pathlib.Path(folder).rglob("*")) if path.is_file() and path.name != ".zattrs"]
            document = next(path for path in files if path.name in ("zarr.json", ".zarray"))
            files.remove(document)
            found.append(json.dumps(json.loads(document.read_bytes())).encode() + zarr_end + files[0].read_bytes())
    return found


zarr_end = b"\n\n"
seeds = {
    "netcdf": lambda: [netcdf_bytes()],
    "zarr": zarr_bytes,
    "npy": lambda: [npy_bytes(np.arange(12, dtype="<f8").reshape(3, 4)), npy_bytes(np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))),
                    npy_bytes(np.array([True, False])), npy_bytes(np.array(2.5 + 1j)), npy_bytes(np.zeros((0, 3), "<u2"), (2, 0))],
    "npz": lambda: [npz_bytes(np.savez), npz_bytes(np.savez_compressed)],
    "safetensors": lambda: [safetensors_bytes()],
    "csv": lambda: [b"1,2.5\n-3,4e5\n0.125,nan\n", b"time,value\n0,1\n1,inf\n2,-7.5\n", b"NA,2\n3,\n,\n", b" 1 , 2\r\n\r\n+3,.5\r\n"],
    "hdf5": lambda: [hdf5_bytes()],
}
words = {
    "netcdf": [b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0", b"FRHP", b"OHDR", b"BTHD", b"_FillValue", b"DIMENSION_LIST"],
    "zarr": [b'"float32"', b'"<f8"', b'"int64"', b"[", b"]", b"{", b"}", b"-1", b"0", b"3", b"1e1", b'"NaN"', b"null", b"true", b'"bytes"', b'"zstd"', b'"big"', b'"C"',
             b'"shape"', b'"fill_value"', b'","', b",", b":", b'"', b"\xff\xff\xff\xff", b"\0\0"],
    "npy": [b"'descr'", b"'<f8'", b"'>f4'", b"True", b"False", b"(3, 4)", b"(", b")", b",", b"-1", b"0", b"9999999999999999999", b" ", b"'", b"|b1", b"<i8"],
    "npz": [b"PK\x01\x02", b"PK\x03\x04", b"PK\x05\x06", b"\xff\xff\xff\xff", b"\0\0", b"x.npy", b"\x08\0"],
    "safetensors": [b'"x"', b'"dtype"', b'"F32"', b'"I64"', b'"shape"', b"[", b"]", b"{", b"}", b"48", b"0", b"-1", b"1e1", b"2.0", b"true", b"null", b'"', b",", b":"],
    "csv": [b"\n", b",", b"NA", b"nan", b"-inf", b"1e5", b"+", b"-", b".", b"1_0", b"0x1", b" ", b"\t", b"x", b"1e400", b"infinity", b"null", b"\r", b"d"],
    "hdf5": [b"\xff\xff\xff\xff\xff\xff\xff\xff", b"\0\0\0\0", b"TREE", b"SNOD", b"HEAP"],
}


def mutant(form, number, whole):
    chance = random.Random(number)
    data = bytearray(chance.choice(whole))
    for _ in range(chance.randint(1, 3)):
        at, length = chance.randrange(len(data) + 1), chance.randrange(9)
        kind = chance.randrange(8)
        if kind <= 2 and at < len(data):
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 3:
            del data[at:at + length]
        elif kind == 4:
            data[at:at] = data[at:at + length]
        elif kind == 5:
            data[at:at] = chance.choice(words[form])
        elif kind == 6:
            data[at:at + length] = chance.choice(words[form])
        elif chance.randrange(4) == 0:
            del data[at:]
    return bytes(data)


# ---- readers: (dtype, shape, bytes); any exception is a refusal ----
def shown(x):
    x = np.ascontiguousarray(x).astype(x.dtype.newbyteorder("="), copy=False)
    if x.dtype.kind in "fc":
        x = np.where(np.isnan(x), np.array(np.nan, x.dtype), x)
    if x.dtype == bool:
        x = x.astype("u1") != 0
    return str(x.dtype), x.shape, hashlib.sha256(x.tobytes()).hexdigest(), repr(x.ravel()[:20])


def npz_other(path):
    with np.load(path, allow_pickle=False) as file:
        return file["x"]


def safetensors_other(path):
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    if length > 100_000_000 or length + 8 > len(data) or data[8:9] != b"{":
        raise ValueError("header")
    header, rest = json.loads(data[8:8 + length].decode("utf-8")), data[8 + length:]
    sizes = {"F64": ("<f8", 8), "F32": ("<f4", 4), "I64": ("<i8", 8), "I32": ("<i4", 4), "I16": ("<i2", 2), "I8": ("i1", 1), "U8": ("u1", 1), "BOOL": ("?", 1),
             "U16": ("<u2", 2), "U32": ("<u4", 4), "U64": ("<u8", 8), "F16": ("<f2", 2), "BF16": (None, 2)}
    if not all(isinstance(key, str) and isinstance(word, str) for key, word in header.pop("__metadata__", {}).items()):
        raise ValueError("metadata")
    at, tensors = 0, {}
    for name, facts in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        code, size = sizes[facts["dtype"]]
        begin, end = facts["data_offsets"]
        numbers = [begin, end, *facts["shape"]]
        if any(type(n) is not int or n < 0 for n in numbers) or begin != at or end - begin != size * int(np.prod(facts["shape"], dtype=object)):
            raise ValueError(name)
        at, tensors[name] = end, (code, facts["shape"], rest[begin:end])
    if at != len(rest):
        raise ValueError("coverage")
    code, shape, values = tensors["x"]
    return np.frombuffer(values, code).reshape(shape)


def csv_other(path):
    """genfromtxt knows no headers: a first line of names is left out here, and what is a name is what it makes NaN without a reason."""
    text = pathlib.Path(path).read_bytes().decode("latin-1").replace("\r\n", "\n")
    if '"' in text or "#" in text or "\r" in text or "\x00" in text or any(c in text for c in "\x0b\x0c\x1c\x1d\x1e\x85\xa0"):
        return None  # genfromtxt reads these in its own way
    lines = [line for line in text.split("\n") if line.strip(" \t")]
    if not lines:
        return None
    missing = {"", "NA", "N/A", "n/a", "#N/A", "null", "NULL"}
    fields = [[field.strip(" \t") for field in line.split(",")] for line in lines]
    if any(len(row) != len(fields[0]) for row in fields):
        raise ValueError("rows of different lengths")

    def value(field):
        if field in missing:
            return float("nan")
        number = float(field)
        if "_" in field:
            raise ValueError(field)
        return number

    def is_value(field):
        try:
            value(field)
        except ValueError:
            return False
        return field != ""
    has_names = any(not is_value(field) and field != "" for field in fields[0])
    if has_names and any(is_value(field) for field in fields[0]):
        raise ValueError("names and values")
    rows = [[value(field) for field in row] for row in fields[has_names:]]
    return np.array(rows, float).reshape(len(rows), len(fields[0]))


def hdf5_other(path):
    import h5py
    with h5py.File(path, "r") as file:
        return file["x"][...] if int(pathlib.Path(path).stem) % 2 else file["g/y"][...]


def netcdf_other(path):
    import h5py
    import netCDF4
    try:
        with netCDF4.Dataset(path) as file:
            file["x"].set_auto_mask(False)
            x = file["x"][...]
            stored = [getattr(file["x"], name) for name in ("_FillValue", "missing_value") if name in file["x"].ncattrs()]
            file["x"].set_auto_scale(False)
            raw = file["x"][...]
    except (OSError, RuntimeError):
        with h5py.File(path, "r") as file:
            file["x"][...]
        return None  # it refuses the file for another object than x
    missing = np.isin(raw, stored) if stored else np.zeros(raw.shape, bool)
    return np.where(missing, np.nan, x.astype(float)) if missing.any() else np.asarray(x, float)


def zarr_store(path):
    """The folder that the document and the chunk stand for; both versions' names of the first chunk."""
    document, _, chunk = pathlib.Path(path).read_bytes().partition(zarr_end)
    folder = pathlib.Path(path + ".zarr")
    (folder / "c/0").mkdir(parents=True, exist_ok=True)
    for name in ("c/0/0", "0.0"):
        (folder / name).write_bytes(chunk)
    (folder / (".zarray" if b'"zarr_format": 2' in document else "zarr.json")).write_bytes(document)
    return str(folder)


def zarr_other(path):
    import zarr
    x = zarr.open_array(zarr_store(path), mode="r")
    return None if x.size > 1 << 20 else x[...]


other = {"netcdf": netcdf_other, "zarr": zarr_other, "npy": lambda path: np.load(path, allow_pickle=False), "npz": npz_other, "safetensors": safetensors_other, "csv": csv_other, "hdf5": hdf5_other}


def ours(form, path):
    import tessera as ts
    dataset = "x" if int(pathlib.Path(path).stem) % 2 else "g/y"
    if form == "netcdf":
        return np.asarray(ts.io.load_netcdf(path, "x")).astype(float)
    if form == "zarr" and not os.path.exists(path + ".zarr"):
        return None
    x = {"zarr": lambda: ts.io.load_zarr(path + ".zarr"), "npy": lambda: ts.io.load_npy(path), "npz": lambda: ts.io.load_npz(path, "x"), "safetensors": lambda: ts.io.load_safetensors(path, "x"),
         "csv": lambda: ts.io.load_csv(path), "hdf5": lambda: ts.io.load_hdf5(path, dataset)}[form]()
    return np.asarray(x)


def outcome(read):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = read()
    except MemoryError:
        return "refused", "memory"
    except Exception as error:  # noqa: BLE001: each reader has its own kinds
        return "refused", f"{type(error).__name__}: {error}"[:300]
    return ("skipped", "") if x is None else ("read", shown(x))


def outcome_in_a_child(read):
    """The HDF5 library may end the process, or never end."""
    receive, send = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        try:
            os.write(send, pickle.dumps(outcome(read))[:60000])
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        data = pipe.read()
    ended_by = os.WTERMSIG(os.waitpid(child, 0)[1])
    if ended_by == signal.SIGALRM:
        return "endless", ""
    return pickle.loads(data) if data else ("refused", "the library ended the process")


def read_all(who, form, folder):
    if who == "ours":
        import tessera  # noqa: F401: before the first fork
    judge = outcome_in_a_child if form in ("hdf5", "netcdf") else outcome
    results = {}
    for path in sorted(folder.glob("*.in")):
        read = (lambda: ours(form, str(path))) if who == "ours" else (lambda: other[form](str(path)))
        results[path.stem] = judge(read)
    (folder / f"{who}.results").write_bytes(pickle.dumps(results))


def compare(form, first, count, whole):
    """Mutants by what became of them; complaints."""
    tally, complaints = {}, []
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as name:
        folder = pathlib.Path(name)
        for number in range(first, first + count):
            (folder / f"{number}.in").write_bytes(mutant(form, number, whole))
        for who in ("other", "ours"):
            done = subprocess.run([sys.executable, __file__, form, who, name], capture_output=True, text=True, env=os.environ | {"TESSERA_LOG": "error"})
            if done.returncode != 0:
                return {}, [f"the reader {who!r} ends with {done.returncode}: {done.stderr[-2000:]}"]
        results = [pickle.loads((folder / f"{who}.results").read_bytes()) for who in ("other", "ours")]
        for number, (theirs, what) in results[0].items():
            mine, mine_what = results[1][number]
            tally[theirs, mine] = tally.get((theirs, mine), 0) + 1
            if mine == "endless" or mine == "read" and (theirs == "refused" or (theirs == "read" and what[:3] != mine_what[:3])):
                complaints.append(f"{form} number {number}: {theirs} {what}; tessera {mine} {mine_what}")
    return tally, complaints


def main():
    form = sys.argv[1]
    if len(sys.argv) > 2:
        return read_all(sys.argv[2], form, pathlib.Path(sys.argv[3]))
    try:
        whole = seeds[form]()
    except ImportError as error:
        print(error)
        return 77
    first = int(os.environ.get("TESSERA_TEST_FIRST", time.strftime("%Y%m%d000000", time.gmtime())))
    count = int(os.environ.get("TESSERA_TEST_INPUTS", "300"))
    print(f"TESSERA_TEST_FIRST={first}")
    total, complaints = {}, []
    for start in range(first, first + count, batch):
        tally, found = compare(form, start, min(batch, first + count - start), whole)
        complaints += found
        for key, n in tally.items():
            total[key] = total.get(key, 0) + n
    print(f"{form}: " + ", ".join(f"{theirs} there and {mine} here {n}" for (theirs, mine), n in sorted(total.items())))
    for complaint in complaints[:40]:
        print(complaint)
    if not total.get(("read", "read")) or not total.get(("refused", "refused")):
        complaints.append("the mutants say little")
        print(complaints[-1])
    return 1 if complaints else 0


sys.exit(main())
