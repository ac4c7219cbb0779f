"""The standard's fft extension, NumPy's functions, convolutions."""
from . import _core
from ._core.fft import convolve, correlate, dct, dctn, dst, idct, idctn, idst  # noqa: F401
from ._create import words_of
from ._place import device_put as _device_put

_f = _core.fft


def _one(name):
    function = getattr(_f, name)

    def transform(x, /, n=None, axis=-1, norm=None, **layout):
        norm = norm or "backward"
        return function(x, axes=[axis], norm=norm, **layout) if n is None else function(x, n, axes=[axis], norm=norm, **layout)
    transform.__name__, transform.__doc__ = name, words_of(function)
    return transform


def _several(name):
    function = getattr(_f, name)

    def transform(x, /, s=None, axes=None, norm=None, **layout):
        norm = norm or "backward"
        if s is not None and axes is None:
            axes = range(-len(s), 0)
        options = {} if axes is None else {"axes": list(axes)}
        return function(x, norm=norm, **options, **layout, **({} if s is None else {"s": list(s)}))
    transform.__name__, transform.__doc__ = name, words_of(function)
    return transform


fft, ifft, rfft, irfft, hfft, ihfft = (_one(n) for n in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"))
fft2, ifft2, rfft2, irfft2, fftn, ifftn, rfftn, irfftn = (_several(n) for n in ("fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"))


def _frequencies(name):
    function = getattr(_f, name)

    def frequencies(n, /, d=1.0, *, dtype=None, device=None):
        made = function(n, float(d)) if dtype is None else function(n, float(d), dtype)
        return made if device is None else _device_put(made, device)
    frequencies.__name__, frequencies.__doc__ = name, words_of(function)
    return frequencies


fftfreq, rfftfreq = _frequencies("fftfreq"), _frequencies("rfftfreq")


def fftshift(x, /, axes=None):
    """Moves frequency 0 to the middle of the axes, or of all."""
    return _f.fftshift(x, axes)


def ifftshift(x, /, axes=None):
    """The inverse of fftshift."""
    return _f.ifftshift(x, axes)
