"""Convolutions and trends with SciPy's names."""
from . import _core, fft as _fft
from ._create import _array, axis_of
from ._numeric import convolve as _lines, correlate as _correlated_lines

_modes = ("full", "same", "valid")


def _checked(name, mode):
    if mode not in _modes:
        raise _core.errors.ArgumentError(f"{name} at {_core.here()}: there is no mode '{mode}'; the modes are {', '.join(_modes)}")


def _cut(full, shape, other, mode):
    """The part of a full convolution that a mode keeps."""
    if mode == "full":
        return full
    extents = [n if mode == "same" else (n - k if n > k else k - n) + 1 for n, k in zip(shape, other)]
    starts = [(f - e) // 2 for f, e in zip(full.shape, extents)]
    return full[tuple(slice(s, s + e) for s, e in zip(starts, extents))]


def _quick_length(n):
    """The least product of twos, threes and fives that is at least n: transforms of it take few steps."""
    odd = [3**i * 5**j for i in range(n.bit_length()) for j in range(n.bit_length()) if 3**i * 5**j < 2 * n]
    return min((k << max(-(-n // k) - 1, 0).bit_length() for k in odd), default=n)


def fftconvolve(in1, in2, mode="full", axes=None):
    """The convolution by transforms, over all dims or these axes, which both arrays have."""
    _checked("fftconvolve", mode)
    a, b = _array(in1, in2), _array(in2, in1)
    over = list(range(a.ndim)) if axes is None else [axis_of(d, a.ndim, "fftconvolve") for d in ([axes] if isinstance(axes, int) else axes)]
    lengths = [a.shape[d] + b.shape[d] - 1 for d in over]
    is_complex = "c" in (a.dtype.kind, b.dtype.kind)
    forward, back = (_fft.fftn, _fft.ifftn) if is_complex else (_fft.rfftn, _fft.irfftn)
    quick = [_quick_length(n) for n in lengths]
    full = back(_core.multiply(forward(a, s=quick, axes=over), forward(b, s=quick, axes=over)), s=quick, axes=over)
    full = full[tuple(slice(lengths[over.index(d)]) if d in over else slice(None) for d in range(full.ndim))]
    keep = lambda shape: [n if d in over else full.shape[d] for d, n in enumerate(shape)]  # noqa: E731
    return _cut(full, keep(a.shape), [n if d in over else 1 for d, n in enumerate(b.shape)], mode)


def convolve(in1, in2, mode="full", method="auto"):
    """The convolution: of vectors directly, of other arrays by taps, or by transforms with method="fft"."""
    _checked("convolve", mode)
    a, b = _array(in1, in2), _array(in2, in1)
    if method == "fft":
        return fftconvolve(a, b, mode)
    if a.ndim == 1 and mode != "same":
        return _lines(a, b, mode)
    return _direct(a, b, mode)


def _direct(a, b, mode):
    """Over all dims by tessera's conv, one image of one channel."""
    if mode == "valid" and all(n <= k for n, k in zip(a.shape, b.shape)):
        a, b = b, a
    flat = lambda x: _core.reshape(x, [1, 1, *x.shape])  # noqa: E731
    padding = [(0, 0) if mode == "valid" else (k - 1, k - 1) for k in b.shape]
    dtype = (_core.add(a.reshape(-1)[:1], b.reshape(-1)[:1])).dtype
    full = _core.conv(flat(_core.astype(a, dtype)), flat(_core.flip(_core.astype(b, dtype), list(range(b.ndim)))), padding=padding)
    full = _core.reshape(full, full.shape[2:])
    return _cut(full, a.shape, b.shape, "same") if mode == "same" else full


def correlate(in1, in2, mode="full", method="auto"):
    """The cross-correlation: the convolution with in2 reversed and conjugated."""
    _checked("correlate", mode)
    a, b = _array(in1, in2), _array(in2, in1)
    if a.ndim == 1 and mode != "same" and a.shape[0] >= b.shape[0]:
        return _correlated_lines(a, b, mode)
    return convolve(a, _core.conj(_core.flip(b, list(range(b.ndim)))), mode, method)


def _filled(name, in1, in2, mode, boundary, fillvalue):
    _checked(name, mode)
    if boundary != "fill" or fillvalue != 0:
        raise _core.errors.ArgumentError(f"{name} at {_core.here()}: beyond the border are zeros; pad the first array for others: tessera.pad(x, widths, mode=...)")
    a, b = _array(in1, in2), _array(in2, in1)
    if a.ndim != 2 or b.ndim != 2:
        raise _core.errors.ShapeError(f"{name} at {_core.here()}: the arrays have {a.ndim} and {b.ndim} dimensions; it takes matrices")
    return a, b


def convolve2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """The convolution of two matrices, with zeros beyond their borders."""
    return convolve(*_filled("convolve2d", in1, in2, mode, boundary, fillvalue), mode)


def correlate2d(in1, in2, mode="full", boundary="fill", fillvalue=0):
    """The cross-correlation of two matrices, with zeros beyond their borders."""
    a, b = _filled("correlate2d", in1, in2, mode, boundary, fillvalue)
    if mode == "same":  # SciPy's middle is that of the reversed arrays
        return _core.flip(convolve(_core.flip(a, [0, 1]), _core.conj(b), mode), [0, 1])
    return convolve(a, _core.conj(_core.flip(b, [0, 1])), mode)


def detrend(data, axis=-1, type="linear"):
    """The data without their mean, or without their straight line of least squares, along an axis."""
    data = _array(data)
    n = data.shape[axis]
    rest = _core.subtract(data, _core.mean(data, axis, True))
    if type == "constant":
        return rest
    if type != "linear":
        raise _core.errors.ArgumentError(f"detrend at {_core.here()}: there is no type '{type}'; the types are linear and constant")
    times = _core.subtract(_core.arange_floats(0, n, 1, rest.dtype), (n - 1) / 2)
    times = _core.reshape(times, [n if d == axis % data.ndim else 1 for d in range(data.ndim)])
    slope = _core.divide(_core.sum(_core.multiply(rest, times), axis, True), n * (n * n - 1) / 12)
    return _core.subtract(rest, _core.multiply(slope, times))
