"""What the NumPy and JAX cells of the tables are written with, over any module that has NumPy's functions."""
import numpy as np


def base(m):
    """The functions that both cells use, with m's arrays."""
    def identity_like(x): return m.eye(x.shape[-1], dtype=x.dtype)
    def regular(x): return x + 4 * identity_like(x)
    def hermitian(x): return x + m.conj(m.swapaxes(x, -1, -2))
    def definite(x): return m.matmul(x, m.conj(m.swapaxes(x, -1, -2))) + identity_like(x)
    def with_nan(x, column): return m.where(m.arange(x.shape[1]) == column, m.asarray(float("nan"), dtype=x.dtype), x)

    def parts_of_svd(x):
        u, s, vh = m.linalg.svd(x, full_matrices=False)
        return s, m.abs(u), m.real(m.matmul(u * s, vh))

    return {**locals(), "mask7": m.arange(7) % 3 != 1}


def updated(x, at, value, ufunc=None):
    y = x.copy()
    if ufunc is None:
        y[at] = value
    else:
        ufunc.at(y, at, value)
    return y


def changed(function, x, *arguments):
    y = x.copy()
    function(y, *arguments)
    return y


def with_diagonal(x, value): return changed(np.fill_diagonal, x, value)


def filled(values, size, fill=0):
    return np.concatenate([values, np.full((size,) + values.shape[1:], fill, values.dtype)])[:size]


def windows(function, x, window, strides=(1, 1), padding=((0, 0), (0, 0)), fill=0):
    view = np.lib.stride_tricks.sliding_window_view(np.pad(x, padding, constant_values=fill), window)
    return function(view[:: strides[0], :: strides[1]], (-1, -2))


def conv(x, kernel, strides, padding, dilation, groups=1):
    """NCHW, OIHW, term by term."""
    x = np.pad(x, [(0, 0), (0, 0)] + padding)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilation)]
    out = [(n - r) // s + 1 for n, r, s in zip(x.shape[2:], reach, strides)]
    y = np.zeros((x.shape[0], kernel.shape[0], *out))
    per_group, inputs = kernel.shape[0] // groups, kernel.shape[1]
    for o in range(kernel.shape[0]):
        for i in range(inputs):
            for at in np.ndindex(*kernel.shape[2:]):
                window = tuple(slice(a * d, a * d + (n - 1) * s + 1, s) for a, d, n, s in zip(at, dilation, out, strides))
                y[:, o] += kernel[(o, i, *at)] * x[(slice(None), o // per_group * inputs + i, *window)]
    return y


def attention(q, k, v, bias=0.0, mask=True, scale=None):
    """(batch, queries, heads, features), (batch, keys, kv_heads, features)."""
    from scipy import special
    repeats = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, repeats, 2), np.repeat(v, repeats, 2)
    scores = np.einsum("bqhf,bkhf->bhqk", q, k) * (scale or 1 / np.sqrt(q.shape[-1])) + bias
    return np.einsum("bhqk,bkhf->bqhf", special.softmax(np.where(mask, scores, -np.inf), -1), v)


def cross_entropy(x, p):
    from scipy import special
    return -(p * special.log_softmax(x, -1)).sum(-1)


def standard(x, axis): return (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + 1e-6)
def counted(histogram): return histogram[0].astype(int), *histogram[1:]
def rcond(x): return 1 / (np.linalg.norm(x, 1) * np.linalg.norm(np.linalg.inv(x), 1))


def looped(xs, c, step):
    ys = []
    for x in xs:
        c, y = step(c, x)
        ys.append(y)
    return c, np.array(ys)


def scanned(xs, c): return looped(xs, c, lambda c, v: (np.tanh(c * v + 0.5), np.tanh(c * v + 0.5).sum() * v))
def scanned_rows(xs, c): return looped(xs, c, lambda c, row: (c * 0.5 + row, c * row))
def chosen(a, b): return np.sin(a) * b if a.sum() > 0.1 else np.cos(b) - a


def associated(x):
    y = [x[0]]
    for row in x[1:]:
        y.append(y[-1] + row + y[-1] * row)
    return np.array(y)


def relaxed(v):
    for i in range(12):
        v = v * 0.5 + np.sin(v) / (i + 1)
    return v


def grown(v):
    while (v * v).sum() < 1000:
        v = v * 1.5
    return v


def banded(m, n):
    a = np.zeros((m, n))
    for i in range(m):
        for j in (i, 3 * i + 1, 5 * i + 2):
            a[i, j % n] += 8 + i % 3 if j == i else 0.5 + 0.25 * ((i + j) % 4)
    return a


def symmetric_banded(n): return banded(n, n) + banded(n, n).T
