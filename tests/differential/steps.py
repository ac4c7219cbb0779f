"""The steps of a random program: each takes a Builder and a Value and gives a new Value, or None where it does not apply."""
import numpy as np

import tessera as ts

SMOOTH = {  # bounded, so that chains of any length keep to the scale of 1
    "tanh": (ts.tanh, np.tanh), "sin": (ts.sin, np.sin), "cos": (ts.cos, np.cos), "abs": (ts.abs, np.abs),
    "negative": (ts.negative, np.negative), "square": (ts.square, np.square),
}
REDUCTIONS = {"sum": (ts.sum, np.sum), "mean": (ts.mean, np.mean), "max": (ts.max, np.max), "min": (ts.min, np.min)}


def is_half(value):
    return value.dtype in ("float16", "bfloat16")


def unary(b, x):
    name = b.pick(sorted(SMOOTH))
    if x.kind in "iub" and name not in ("abs", "negative", "square") or x.kind == "b" or x.kind == "c" and name in ("tanh", "sin", "cos"):
        return None
    if name in ("sin", "cos") and x.host.size > 0 and np.nanmax(np.abs(x.host)) > 100:
        return None  # a rounding of such an argument is as large as the result
    ours, numpys = SMOOTH[name]
    array = ours(x.array)
    host = numpys(*b.in_dtype_of(array, x.host)) if name != "abs" or x.kind != "c" else np.abs(x.host)
    return b.result(f"{name}({x.name})", array, host, [x])


def binary(b, x):
    """With an operand of the same shape, or one that is broadcast, of another dtype and layout."""
    if x.kind == "b":
        return None
    shape = tuple(n if b.draw.random() < 0.7 else 1 for n in x.host.shape)
    y = b.operand(shape, x.dtype if b.draw.random() < 0.7 or x.kind == "c" else b.dtype())
    name, ours, numpys = b.pick([("add", ts.add, np.add), ("subtract", ts.subtract, np.subtract), ("multiply", ts.multiply, np.multiply),
                                 ("maximum", ts.maximum, np.maximum), ("minimum", ts.minimum, np.minimum)])
    if (x.kind == "c" or y.kind == "c") and name in ("maximum", "minimum"):
        return None
    array = ours(x.array, y.array)
    with np.errstate(all="ignore"):
        host = numpys(*b.in_dtype_of(array, x.host, y.host))
    return b.result(f"{name}({x.name}, {y.name})", array, host, [x, y])


def scalar(b, x):
    if x.kind == "b":
        return None
    number = int(b.draw.integers(0, 4)) if x.kind in "iu" else float(np.round(b.draw.uniform(-1, 1), 2))
    name, ours, numpys = b.pick([("+", ts.add, np.add), ("*", ts.multiply, np.multiply)])
    array = ours(x.array, number)
    (host,) = b.in_dtype_of(array, x.host)
    with np.errstate(all="ignore"):
        rounded = np.asarray(number, str(array.dtype)).astype(host.dtype)  # a Python number takes the array's dtype first
        return b.result(f"{x.name} {name} {number}", array, numpys(host, rounded), [x])


def relu(b, x):
    if x.kind not in "fiu":
        return None
    array = ts.maximum(x.array, 0)
    return b.result(f"maximum({x.name}, 0)", array, np.maximum(x.host, np.asarray(0, x.host.dtype)), [x])


def where(b, x):
    if x.kind not in "iu":
        return None
    array = ts.where(x.array > 3, x.array, -x.array)
    with np.errstate(all="ignore"):
        return b.result(f"where({x.name} > 3, {x.name}, -{x.name})", array, np.where(x.host > 3, x.host, np.negative(x.host)), [x])


def sliced(b, x):
    """Odd starts and steps, also negative."""
    index = []
    for n in x.host.shape:
        start, stop = sorted(int(i) for i in b.draw.integers(0, n + 1, 2))
        step = b.pick([1, 1, 1, 2, 3, -1])
        index.append(slice(start, stop, step) if step > 0 else slice(None, None, -1))
    index = tuple(index[:int(b.draw.integers(1, len(index) + 1))]) if index else ()
    return b.result(f"{x.name}[{index}]", x.array[index], x.host[index], [x])


def moved(b, x):
    if x.host.ndim == 0:
        return None
    axis = int(b.draw.integers(x.host.ndim))
    way = b.pick(["flip", "roll", "transpose", "pad", "swapaxes", "concatenate"])
    if way == "flip":
        return b.result(f"flip({x.name}, axis={axis})", ts.flip(x.array, axis=axis), np.flip(x.host, axis), [x])
    if way == "roll":
        shift = int(b.draw.integers(-5, 6))
        return b.result(f"roll({x.name}, {shift}, axis={axis})", ts.roll(x.array, shift, axis=axis), np.roll(x.host, shift, axis), [x])
    if way == "transpose":
        order = tuple(int(d) for d in b.draw.permutation(x.host.ndim))
        return b.result(f"permute_dims({x.name}, {order})", ts.permute_dims(x.array, order), np.transpose(x.host, order), [x])
    if way == "swapaxes":
        return b.result(f"swapaxes({x.name}, {axis}, -1)", ts.swapaxes(x.array, axis, -1), np.swapaxes(x.host, axis, -1), [x])
    if way == "pad":
        widths = [(0, 0)] * x.host.ndim
        widths[axis] = (int(b.draw.integers(0, 4)), int(b.draw.integers(0, 4)))
        return b.result(f"pad({x.name}, {widths})", ts.pad(x.array, widths), np.pad(x.host, widths), [x])
    return b.result(f"concat([{x.name}, {x.name}], axis={axis})", ts.concat([x.array, x.array], axis=axis), np.concatenate([x.host, x.host], axis), [x])


def reshaped(b, x):
    if x.host.size == 0:
        return None
    shape = b.pick([(-1,), (x.host.size, 1), (1, *x.host.shape), (-1, x.host.shape[-1]) if x.host.ndim else (1,)])
    return b.result(f"reshape({x.name}, {shape})", ts.reshape(x.array, shape), np.reshape(x.host, shape), [x])


def cast(b, x):
    """Between kinds where the value fits; floats are scaled to the size of small integers first."""
    if x.kind == "c":
        return None
    to = b.pick(["float32", "float64", "float16", "int32", "int64"])
    if x.kind == "f" and to.startswith("int"):  # rounding on the way may take a value over an integer's edge
        return None
    if x.kind in "iu" and np.dtype(to).kind == "f" and x.host.size and np.max(np.abs(x.host.astype(float))) > 1000:
        return None
    with np.errstate(all="ignore"):
        return b.result(f"astype({x.name}, {to})", ts.astype(x.array, getattr(ts, to)), x.host.astype(to), [x])


def reduced(b, x):
    name = b.pick(sorted(REDUCTIONS))
    if x.kind not in "f" and name == "mean" or x.kind == "c" and name in ("max", "min") or x.kind == "b" or x.host.ndim == 0:
        return None
    axis = b.pick([None, *range(x.host.ndim)])
    if x.host.size == 0 and name != "sum":
        return None
    keepdims = bool(b.draw.integers(2))
    ours, numpys = REDUCTIONS[name]
    array = ours(x.array, axis=axis, keepdims=keepdims)
    host = x.host.astype("float64") if x.kind == "f" else x.host.astype(str(array.dtype)) if name == "sum" else x.host
    value = numpys(host, axis=axis, keepdims=keepdims, **({"dtype": str(array.dtype)} if name == "sum" and x.kind in "iu" else {}))
    made = b.result(f"{name}({x.name}, axis={axis}, keepdims={keepdims})", array, value, [x])
    count = x.host.size / max(1, np.size(value))
    if x.kind in "fc" and name == "sum" and count > 50:  # kept to the scale of 1, on which later steps are compared
        return b.result(f"{made.name} * {1 / count}", made.array * (1 / count), made.host * made.host.dtype.type(1 / count), [made])
    return made


def product(b, x):
    """A matrix product, batched as x is, with what follows it: scale, bias, activation."""
    if x.host.ndim < 2 or x.host.size == 0 or x.kind not in "fc" or is_half(x):
        return None
    *batch, m, k = x.host.shape
    n = int(b.draw.integers(1, 1 + max(1, min(300, 3_000_000 // max(1, x.host.size // k)))))
    if m * k * n * int(np.prod(batch)) > 2e8:
        return None
    y = b.operand((*(batch if b.draw.random() < 0.6 else []), k, n), x.dtype)
    array = ts.matmul(x.array, y.array) * (1 / k)
    host = np.matmul(x.host, y.host) * x.host.dtype.type(1 / k)
    text = f"matmul({x.name}, {y.name}) * {1 / k}"
    operands = [x, y]
    if b.draw.random() < 0.5:
        bias = b.operand((n,) if b.draw.random() < 0.5 else host.shape, x.dtype)
        array, host, text = array + bias.array, host + bias.host, f"{text} + {bias.name}"
        operands.append(bias)
    if b.draw.random() < 0.5 and x.kind == "f":
        array, host, text = ts.maximum(array, 0), np.maximum(host, 0), f"maximum({text}, 0)"
    return b.result(text, array, host, operands)


def outer_product(b, x):
    """A batched product whose result is far larger than its operands, with an odd number of bytes a row."""
    if b.draw.random() > 0.08:
        return None
    dtype = b.pick(["float32", "float64"])
    m, k, n = int(b.draw.integers(900, 1600)), int(b.draw.integers(1, 70)), int(b.draw.integers(900, 1600))
    left, right = b.operand((2, m, k), dtype), b.operand((2, k, n), dtype)
    c = float(np.round(b.draw.uniform(-1, 1), 2))
    array = ts.matmul(left.array, right.array) * (1 / k) * 0.5 + c
    host = np.matmul(left.host, right.host) * left.host.dtype.type(0.5 / k) + left.host.dtype.type(c)
    text = f"matmul({left.name}, {right.name}) * {1 / k} * 0.5 + {c}"
    if b.draw.random() < 0.5:
        array, host, text = ts.maximum(array, 0), np.maximum(host, 0), f"maximum({text}, 0)"
    return b.result(text, array, host, [left, right])


def scanned(b, x):
    if x.host.ndim == 0 or x.kind in "bc" or is_half(x):
        return None
    axis = int(b.draw.integers(x.host.ndim))
    if x.kind in "iu":
        array = ts.cumsum(x.array, axis)
        with np.errstate(all="ignore"):
            return b.result(f"cumsum({x.name}, {axis})", array, np.cumsum(x.host.astype(str(array.dtype)), axis, dtype=str(array.dtype)), [x])
    if x.host.dtype == np.float32 and x.host.shape[axis] > 65536:  # float32's own rounding exceeds the tolerance
        return None
    scale = 1 / max(1, x.host.shape[axis])
    return b.result(f"cumsum({x.name}, {axis}) * {scale}", ts.cumsum(x.array, axis) * scale, np.cumsum(x.host.astype("float64"), axis) * scale, [x])


def ordered(b, x):
    if x.host.ndim == 0 or x.kind in "bc":
        return None
    axis = int(b.draw.integers(x.host.ndim))
    return b.result(f"sort({x.name}, axis={axis})", ts.sort(x.array, axis=axis), np.sort(x.host, axis), [x])


def taken(b, x):
    if x.host.ndim == 0 or x.host.size == 0:
        return None
    axis = int(b.draw.integers(x.host.ndim))
    index = b.draw.integers(0, x.host.shape[axis], int(b.draw.integers(1, 40))).astype("int32")
    return b.result(f"take({x.name}, {index.tolist()}, axis={axis})", ts.take(x.array, ts.asarray(index), axis=axis), np.take(x.host, index, axis), [x])


def updated(b, x):
    if x.host.ndim == 0 or x.host.size == 0 or x.kind == "b":
        return None
    at = slice(int(b.draw.integers(x.host.shape[0])), None)
    host = x.host.copy()
    host[at] = host.dtype.type(1)
    return b.result(f"{x.name}.at[{at}].set(1)", x.array.at[at].set(1), host, [x])


def transformed(b, x):
    if x.host.ndim == 0 or x.host.size == 0 or x.kind not in "fc" or is_half(x):
        return None
    axis = int(b.draw.integers(x.host.ndim))
    scale = 1 / x.host.shape[axis]
    return b.result(f"fft({x.name}, axis={axis}) * {scale}", ts.fft.fft(x.array, axis=axis) * scale, np.fft.fft(x.host, axis=axis) * scale, [x])


def jitted(b, x):
    """A chain in one compiled function, called twice; now and then the argument is donated, also where no result can take its memory."""
    if x.kind != "f" or is_half(x):
        return None
    donates, shrinks = b.draw.random() < 0.4, b.draw.random() < 0.4
    c = float(np.round(b.draw.uniform(-1, 1), 3))

    def chain(lib, v):
        y = lib.tanh(v * c + c) * v
        return lib.sum(y) * (1 / max(1, x.host.size)) if shrinks else y + 1

    fn = ts.jit(lambda v: chain(ts, v), **({"donate_argnums": 0} if donates else {}))
    view = np.asarray(ts.device_get(x.array)) if donates else None
    array = fn(x.array + 0 if donates else x.array)
    if not donates:
        array = fn(x.array)
    made = b.result(f"jit(tanh(v * {c} + {c}) * v, shrinks={shrinks}, donates={donates})({x.name})", array, chain(np, x.host.astype("float64")), [x])
    if view is not None and not np.array_equal(view, np.asarray(ts.device_get(x.array)), equal_nan=True):
        raise AssertionError(f"{x.name} changed while a copy of it was donated")
    return made


def evaluated(b, x):
    b.lines.append(f"block_until_ready({x.name})")
    ts.block_until_ready(x.array)


def resharded(b, x):
    sharding = b.sharding(x.host.ndim)
    if sharding is None:
        return None
    return b.result(f"device_put({x.name}, {sharding.spec})", ts.device_put(x.array, sharding), x.host, [x])


def dropped(b, x):
    """Handles go while later values still need the memory."""
    b.lines.append("drop the other handles")
    b.values[:] = [value for value in b.values if value is x or b.draw.random() < 0.5]
    ts.release_memory()


STEPS = [unary, unary, binary, binary, binary, scalar, scalar, relu, where, sliced, sliced, moved, moved, moved, reshaped, cast, reduced, product, product, outer_product,
         scanned, ordered, taken, updated, transformed, jitted, jitted, evaluated, resharded, resharded, dropped]
