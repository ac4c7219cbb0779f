"""The arrays of the expressions in expressions.tsv, and what is compared of a result. The same for JAX, which wrote the values, and for tessera."""
import numpy as np


def inputs(array):
    """Name: array, made by array(host)."""
    f32, i32 = np.float32, np.int32
    hosts = {
        "f": f32([[1.5, -2.5, 0.5], [3.25, -0.75, 2.0]]), "g": f32([[0.5, 1.5, -2.0], [-1.25, 2.5, 0.3]]), "p": f32([0.1, 0.7, 0.9, 0.3]),
        "i": i32([-7, 5, 8, -3]), "j": i32([3, -2, 3, 2]), "u": np.uint8([7, 200, 3]), "b": np.array([True, False, True, True]), "c": np.complex64([1 + 2j, -3j, 0.5]),
        "v": f32([3, 1, 2, 1, 5]), "m": np.arange(24, dtype=f32).reshape(2, 3, 4), "sq": f32([[4, 1, 0.5], [1, 3, 0.2], [0.5, 0.2, 2]]),
        "img": np.arange(72, dtype=f32).reshape(2, 1, 6, 6) % 7, "ker": np.arange(27, dtype=f32).reshape(3, 1, 3, 3) % 5 - 2,
    }
    return {name: array(host) for name, host in hosts.items()}


def leaves(value, host_of=np.asarray):
    """A result as [dtype, shape, numbers] of each array, and texts of other values."""
    if isinstance(value, (list, tuple)):
        return [leaf for part in value for leaf in leaves(part, host_of)]
    if isinstance(value, dict):
        return [leaf for key in sorted(value) for leaf in leaves(value[key], host_of)]
    if value is None or isinstance(value, (str, bool, int)):
        return [repr(value)]
    host = host_of(value)
    if host.dtype.kind == "c":
        flat = [number for z in host.ravel().tolist() for number in (z.real, z.imag)]
    else:
        flat = host.astype(np.float64).ravel().tolist()
    return [[str(host.dtype), list(host.shape), [float(f"{x:.7g}") for x in flat]]]
