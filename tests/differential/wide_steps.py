"""More steps of random programs: what NumPy has by the same name, with its signs of remainders, its ties, its shapes of batches."""
import re

import numpy as np

import tessera as ts


# Lines of a program that round nothing.
EXACT = re.compile(r"^v\d+ = (operand|flip|roll|permute_dims|swapaxes|pad|concat|reshape|negative|abs|v\d+\[)")


def is_half(value):
    return value.dtype in ("float16", "bfloat16")


def text_of(value):
    return f"{value.name}: {value.dtype}{list(value.host.shape)}"


def remainders(b, x):
    """Signs of quotients and remainders: floor in tessera as in NumPy, toward zero in fmod."""
    if x.kind not in "iuf" or is_half(x):
        return None
    name = b.pick(["floor_divide", "remainder", "fmod"])
    divisor = b.numbers(x.host.shape, x.dtype)
    divisor = np.where(np.abs(divisor) < (1 if x.kind in "iu" else 0.1), np.asarray(3, divisor.dtype), divisor)
    if x.kind == "f":  # a quotient beside an integer is cut to either side by one rounding
        quotient = x.host / divisor
        if np.any(np.abs(quotient - np.round(quotient)) < 1e-3):
            return None
    array = getattr(ts, name)(x.array, ts.asarray(divisor))
    with np.errstate(all="ignore"):
        return b.result(f"{name}({x.name}, {divisor.dtype})", array, getattr(np, name)(x.host, divisor), [x])


def bits(b, x):
    if x.kind not in "iu":
        return None
    name = b.pick(["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift", "invert"])
    if name == "invert":
        return b.result(f"invert({x.name})", ~x.array, ~x.host, [x])
    other = b.numbers(x.host.shape, x.dtype)
    if "shift" in name:
        other = np.abs(other) % np.asarray(x.host.dtype.itemsize * 8, other.dtype)
        ours = {"left_shift": ts.bitwise_left_shift, "right_shift": ts.bitwise_right_shift}[name]
    else:
        ours = getattr(ts, name)
    return b.result(f"{name}({x.name}, other)", ours(x.array, ts.asarray(other)), getattr(np, name)(x.host, other), [x])


def compared(b, x):
    """Truth values, their count, and a choice by them."""
    if x.kind == "c" or is_half(x):
        return None
    y = b.operand(x.host.shape[-1:] if b.draw.random() < 0.5 else x.host.shape, x.dtype if x.kind != "b" else "int8")
    name = b.pick(["less", "less_equal", "greater", "equal", "not_equal"])
    mask, host = getattr(ts, name)(x.array, y.array), getattr(np, name)(x.host, y.host)
    way = b.pick(["mask", "count", "all", "any", "where"])
    if way == "mask":
        return b.result(f"{name}({x.name}, {y.name})", mask, host, [])
    if way == "where":
        array = ts.where(mask, x.array, y.array)
        return b.result(f"where({name}({x.name}, {y.name}), {x.name}, {y.name})", array, np.where(host, x.host, y.host), [x, y])
    axis = b.pick([None, *range(host.ndim)])
    ours, numpys = {"count": (ts.count_nonzero, np.count_nonzero), "all": (ts.all, np.all), "any": (ts.any, np.any)}[way]
    return b.result(f"{way}({name}({x.name}, {y.name}), axis={axis})", ours(mask, axis=axis), numpys(host, axis=axis), [])


def places(b, x):
    """Positions of extremes (the first of equal ones), and of a stable sort."""
    if x.host.ndim == 0 or x.host.size == 0 or x.kind in "bc":
        return None
    axis = int(b.draw.integers(x.host.ndim))
    name = b.pick(["argmax", "argmin", "argsort"])
    ours, numpys = getattr(ts, name), getattr(np, name)
    host = numpys(x.host, axis=axis, **({"kind": "stable"} if name == "argsort" else {}))
    if x.kind == "f" and not all(EXACT.search(line) for line in b.lines):  # a rounding on the way may choose another place
        return None
    return b.result(f"{name}({x.name}, axis={axis})", ours(x.array, axis=axis), host, [])


def along(b, x):
    if x.host.ndim == 0 or x.host.size == 0:
        return None
    axis = int(b.draw.integers(x.host.ndim))
    shape = list(x.host.shape)
    shape[axis] = int(b.draw.integers(0, 9))
    index = b.draw.integers(-x.host.shape[axis], x.host.shape[axis], shape).astype("int32")
    array = ts.take_along_axis(x.array, ts.asarray(index), axis=axis)
    return b.result(f"take_along_axis({x.name}, int32{shape}, axis={axis})", array, np.take_along_axis(x.host, index, axis), [x])


def indexed(b, x):
    """Arrays of integers as index, beside slices, None and ...; negative ones count from the end."""
    if x.host.ndim < 2 or x.host.size == 0:
        return None
    rows = b.draw.integers(-x.host.shape[0], x.host.shape[0], int(b.draw.integers(0, 7))).astype("int64")
    columns = b.draw.integers(-x.host.shape[1], x.host.shape[1], rows.shape).astype("int64")
    key, hosts = b.pick([((ts.asarray(rows),), (rows,)), ((slice(None), ts.asarray(columns)), (slice(None), columns)),
                         ((ts.asarray(rows), ts.asarray(columns)), (rows, columns)), ((..., ts.asarray(rows % x.host.shape[-1])), (..., rows % x.host.shape[-1])),
                         ((0, None, slice(None, None, -2)), (0, None, slice(None, None, -2))), ((ts.asarray(rows), None), (rows, None))])
    return b.result(f"{x.name}[{hosts}]", x.array[key], x.host[hosts], [x])


def scattered(b, x):
    """Equal indices count each time."""
    if x.host.ndim == 0 or x.host.size == 0 or x.kind == "b" or is_half(x):
        return None
    index = b.draw.integers(0, x.host.shape[0], int(b.draw.integers(0, 30))).astype("int32")
    values = b.numbers((index.size, *x.host.shape[1:]), x.dtype)
    name = b.pick(["add", "max", "min"] if x.kind != "c" else ["add"])
    host = x.host.copy()
    with np.errstate(all="ignore"):
        {"add": np.add, "max": np.maximum, "min": np.minimum}[name].at(host, index, values)
    array = getattr(x.array.at[ts.asarray(index)], name)(ts.asarray(values))
    return b.result(f"{x.name}.at[{index.tolist()}].{name}(values)", array, host, [x])


def repeated(b, x):
    if x.host.size > 200_000:
        return None
    way = b.pick(["tile", "repeat", "stack", "broadcast", "diff", "rot90", "tril", "triu", "expand"])
    axis = int(b.draw.integers(max(1, x.host.ndim)))
    if way == "tile":
        times = tuple(int(n) for n in b.draw.integers(0, 4, int(b.draw.integers(1, x.host.ndim + 2))))
        return b.result(f"tile({x.name}, {times})", ts.tile(x.array, times), np.tile(x.host, times), [x])
    if way == "expand":
        return b.result(f"expand_dims({x.name}, {axis})", ts.expand_dims(x.array, axis=axis), np.expand_dims(x.host, axis), [x])
    if way == "broadcast":
        shape = (int(b.draw.integers(1, 5)), *x.host.shape)
        return b.result(f"broadcast_to({x.name}, {shape})", ts.broadcast_to(x.array, shape), np.broadcast_to(x.host, shape), [x])
    if way == "stack":
        return b.result(f"stack([{x.name}] * 3, {axis})", ts.stack([x.array] * 3, axis=axis), np.stack([x.host] * 3, axis), [x])
    if x.host.ndim == 0:
        return None
    if way == "repeat":
        times = int(b.draw.integers(0, 4))
        return b.result(f"repeat({x.name}, {times}, axis={axis})", ts.repeat(x.array, times, axis=axis), np.repeat(x.host, times, axis), [x])
    if way == "diff":
        if x.kind == "b":
            return None
        with np.errstate(all="ignore"):
            return b.result(f"diff({x.name}, axis={axis})", ts.diff(x.array, axis=axis), np.diff(x.host, axis=axis), [x])
    if x.host.ndim < 2:
        return None
    if way == "rot90":
        times = int(b.draw.integers(-3, 4))
        return b.result(f"rot90({x.name}, {times})", ts.rot90(x.array, times), np.rot90(x.host, times), [x])
    k = int(b.draw.integers(-4, 5))
    return b.result(f"{way}({x.name}, {k})", getattr(ts, way)(x.array, k=k), getattr(np, way)(x.host, k), [x])


def spread_of(b, x):
    """Statistics of rows."""
    if x.host.ndim == 0 or x.host.size == 0 or x.kind != "f" or is_half(x):
        return None
    axis = b.pick([None, *range(x.host.ndim)])
    name = b.pick(["var", "std", "median", "nanmean", "nanmax", "quantile", "ptp", "prod"])
    ours = getattr(ts, name)
    if name == "quantile":
        q = float(np.round(b.draw.uniform(0, 1), 3))
        return b.result(f"quantile({x.name}, {q}, axis={axis})", ours(x.array, q, axis=axis), np.quantile(x.host.astype("float64"), q, axis=axis), [x])
    factors = np.maximum(np.abs(x.host.astype("float64")), 1)
    if name == "prod" and (x.host.size > 500 or np.log(factors).sum() > np.log(np.finfo(x.host.dtype).max)):
        return None  # the ranks' partial products may overflow, and infinity times another rank's 0 is NaN
    return b.result(f"{name}({x.name}, axis={axis})", ours(x.array, axis=axis), getattr(np, name)(x.host.astype("float64"), axis=axis), [x])


def contracted(b, x):
    """Sums over letters: batches, outer dims, a diagonal, two operands that share some."""
    if x.kind not in "fiu" or is_half(x) or not 0 < x.host.size < 20_000 or x.host.ndim not in (2, 3):
        return None
    letters = "ijk"[:x.host.ndim]
    other = b.pick([letters, letters[::-1], letters[1:] + "z", "z" + letters[:1], letters[:1]])
    sizes = {**dict(zip(letters, x.host.shape)), "z": int(b.draw.integers(1, 9))}
    y = b.operand(tuple(sizes[c] for c in other), x.dtype)
    every = sorted(set(letters + other))
    kept = [c for c in every if b.draw.random() < 0.6]
    b.draw.shuffle(kept)
    expression = f"{letters},{other}->{''.join(kept)}"
    summed = int(np.prod([sizes[c] for c in every if c not in kept]))
    if np.prod([float(sizes[c]) for c in kept]) > 2e6 or np.prod([float(sizes[c]) for c in every]) > 3e7:
        return None
    array = ts.einsum(expression, x.array, y.array)
    if x.kind in "iu":
        with np.errstate(all="ignore"):
            return b.result(f"einsum({expression!r}, {x.name}, {y.name})", array, np.einsum(expression, x.host, y.host), [x, y])
    scale = 1 / max(1, summed)
    return b.result(f"einsum({expression!r}, {x.name}, {y.name}) * {scale}", array * scale,
                    np.einsum(expression, x.host.astype("float64"), y.host.astype("float64")) * scale, [x, y])


def solved(b, x):
    """A batch of well-conditioned systems, factored or solved, and put together again."""
    if x.host.ndim < 2 or x.kind not in "fc" or is_half(x) or not 0 < x.host.size < 40_000:
        return None
    n = int(min(x.host.shape[-2:]))
    if n > 150:
        return None
    host = x.host[..., :n, :n]
    if not np.all(np.isfinite(host)) or np.max(np.abs(host)) > 10:
        return None
    array = x.array[..., :n, :n] + ts.eye(n, dtype=getattr(ts, x.dtype)) * (12 * n)
    host = host + np.eye(n, dtype=host.dtype) * (12 * n)
    way = b.pick(["solve", "inv", "det", "cholesky", "qr", "eigvalsh", "svdvals"])
    if way == "solve":
        y = b.operand((*host.shape[:-1], int(b.draw.integers(1, 5))), x.dtype)
        return b.result(f"solve({x.name} + {12 * n}, {y.name})", ts.linalg.solve(array, y.array), np.linalg.solve(host, y.host), [x, y])
    if way == "inv":
        return b.result(f"inv({x.name} + {12 * n})", ts.linalg.inv(array), np.linalg.inv(host), [x])
    if way == "det":
        return b.result(f"slogdet({x.name} + {12 * n})[1]", ts.linalg.slogdet(array)[1], np.linalg.slogdet(host)[1], [x])
    if way == "qr":
        q, r = ts.linalg.qr(array)
        return b.result(f"q @ r of {x.name} + {12 * n}", ts.matmul(q, r), host, [x])
    if way == "svdvals":
        return b.result(f"svdvals({x.name} + {12 * n})", ts.linalg.svdvals(array), np.linalg.svd(host, compute_uv=False), [x])
    array, host = (array + ts.conj(ts.matrix_transpose(array))) / 2, (host + np.conj(np.swapaxes(host, -1, -2))) / 2
    if way == "cholesky":
        return b.result(f"cholesky(of {x.name} + {12 * n})", ts.linalg.cholesky(array), np.linalg.cholesky(host), [x])
    return b.result(f"eigvalsh(of {x.name} + {12 * n})", ts.linalg.eigvalsh(array), np.linalg.eigvalsh(host), [x])


def transformed_more(b, x):
    if x.host.ndim == 0 or x.host.size == 0 or x.kind not in "fc" or is_half(x):
        return None
    axis = int(b.draw.integers(x.host.ndim))
    n = int(b.draw.integers(1, 2 * x.host.shape[axis] + 2)) if b.draw.random() < 0.4 else None
    if (n or 1) * x.host.size > 2e6:
        return None
    name = b.pick(["rfft", "ifft", "irfft", "fftn", "hfft", "fftshift"] if x.kind == "f" else ["ifft", "irfft", "fftn", "fftshift"])
    if name in ("fftn", "fftshift"):
        array, host = getattr(ts.fft, name)(x.array), getattr(np.fft, name)(x.host)
        scale = 1 / x.host.size if name == "fftn" else 1
    else:
        if name in ("irfft", "hfft") and x.host.shape[axis] < 2 and n is None:
            return None
        array, host = getattr(ts.fft, name)(x.array, n=n, axis=axis), getattr(np.fft, name)(x.host, n=n, axis=axis)
        scale = 1 / (n or x.host.shape[axis]) if name in ("rfft", "hfft") else 1
    return b.result(f"fft.{name}({x.name}, n={n}, axis={axis}) * {scale}", array * scale, host * scale, [x])


def differentiated(b, x):
    """A gradient of a chain with a view and a product in it, beside the derivative by hand."""
    if x.kind != "f" or is_half(x) or x.host.ndim == 0 or x.host.size == 0:
        return None
    c = float(np.round(b.draw.uniform(-1, 1), 2))
    gradient = ts.grad(lambda v: ts.sum(ts.tanh(v[::-1] * c) * v[::-1]))(x.array)
    wide = x.host.astype("float64")
    host = np.tanh(wide * c) + wide * c / np.cosh(np.clip(wide * c, -300, 300)) ** 2
    return b.result(f"grad(sum(tanh(v[::-1] * {c}) * v[::-1]))({x.name})", gradient, host, [x])


def looped(b, x):
    """Three rounds of a loop, and a map over the first dim."""
    if x.kind != "f" or is_half(x) or x.host.ndim == 0 or x.host.size == 0:
        return None
    c = float(np.round(b.draw.uniform(-0.9, 0.9), 2))
    if b.draw.random() < 0.5:
        host = x.host
        for i in range(3):
            host = np.tanh(host * host.dtype.type(c)) + host.dtype.type(i)
        array = ts.lax.fori_loop(0, 3, lambda i, v: ts.tanh(v * c) + ts.astype(i, v.dtype), x.array)
        return b.result(f"fori_loop(0, 3, tanh(v * {c}) + i, {x.name})", array, host, [x])
    c /= max(1, x.host.size // x.host.shape[0])  # sums stay near 1: differences of large ones would be roundings
    array = ts.vmap(lambda row: ts.cumsum(ts.reshape(row, (-1,))) * c - ts.max(row))(x.array)
    rows = x.host.astype("float64").reshape(x.host.shape[0], -1)
    return b.result(f"vmap(cumsum(row) * {c} - max(row))({x.name})", array, np.cumsum(rows, 1) * c - rows.max(1, keepdims=True), [x])


STEPS = [remainders, bits, compared, places, along, indexed, scattered, repeated, repeated, spread_of, contracted, solved, transformed_more, differentiated, looped]
