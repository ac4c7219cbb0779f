"""lax's convolutions, windows and padding with interior elements, on tessera's conv and reduce_window."""
import itertools
import typing

from . import _core
from ._primitives import add, like, max as _max, min as _min, mul

__all__ = ["ConvDimensionNumbers", "conv_dimension_numbers", "conv_general_dilated", "conv", "conv_with_general_padding", "conv_transpose", "conv_general_dilated_patches", "pad",
           "padtype_to_pads", "reduce_window"]


class ConvDimensionNumbers(typing.NamedTuple):
    """The dims of images, kernels and results in the order (batch, features, spatial...); a kernel's are (out, in, spatial...)."""

    lhs_spec: tuple
    rhs_spec: tuple
    out_spec: tuple


def pad(x, padding_value, padding_config):
    """(low, high, interior) elements of a value before, behind and between those of each dim. Negative low and high cut off."""
    value = padding_value if isinstance(padding_value, _core.Array) else like(padding_value, x)
    for d, (low, high, gap) in enumerate(padding_config):
        x = _apart(x, d, gap, value)
        before, behind = -low if low < 0 else 0, -high if high < 0 else 0
        if before + behind > x.shape[d]:  # more is cut off at one end than there is: it eats into what the other end adds
            x = _core.broadcast_to(value, [*x.shape[:d], x.shape[d] + low + high if x.shape[d] + low + high > 0 else 0, *x.shape[d + 1:]])
            continue
        if before or behind:
            x = x[(slice(None),) * d + (slice(before, x.shape[d] - behind),)]
        if low > 0 or high > 0:
            more = lambda n: _core.broadcast_to(value, [*x.shape[:d], n if n > 0 else 0, *x.shape[d + 1:]])  # noqa: B023,E731
            x = _core.concatenate([more(low), x, more(high)], d)
    return x


def _apart(x, dim, gap, value):
    """gap elements of a value between neighbours along a dim."""
    n = x.shape[dim]
    if gap == 0 or n < 2:
        return x
    wide = _core.expand_dims(x, dim + 1)
    joined = _core.concatenate([wide, _core.broadcast_to(value, [*wide.shape[:dim + 1], gap, *wide.shape[dim + 2:]])], dim + 1)
    return _core.reshape(joined, [*x.shape[:dim], n * (gap + 1), *x.shape[dim + 1:]])[(slice(None),) * dim + (slice(0, n * (gap + 1) - gap),)]


def padtype_to_pads(in_shape, window_shape, window_strides, padding):
    """(low, high) of each dim for "SAME", "SAME_LOWER" or "VALID"."""
    if padding == "VALID":
        return [(0, 0)] * len(window_shape)
    if padding not in ("SAME", "SAME_LOWER"):
        raise _core.errors.ArgumentError(f"padding at {_core.here()}: there is no padding '{padding}'; take SAME, SAME_LOWER, VALID or pairs (low, high)")
    pads = []
    for n, k, s in zip(in_shape, window_shape, window_strides):
        missing = (-(-n // s) - 1) * s + k - n
        missing = missing if missing > 0 else 0
        pads.append((missing // 2, missing - missing // 2) if padding == "SAME" else (missing - missing // 2, missing // 2))
    return pads


def _spec(letters, first, second):
    """The positions of two letters, then of the others, "0", "1" ... or "D", "H", "W" in the order of `letters`."""
    return (letters.index(first), letters.index(second), *[n for n, a in enumerate(letters) if a not in (first, second)])


def conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers):
    """ConvDimensionNumbers of ("NHWC", "HWIO", "NHWC") and its like; None: (batch, features, spatial...), (out, in, spatial...)."""
    if hasattr(dimension_numbers, "lhs_spec"):
        return dimension_numbers
    if dimension_numbers is None:
        return ConvDimensionNumbers(*[tuple(range(len(lhs_shape)))] * 3)
    images, kernels, results = dimension_numbers
    if not all(isinstance(d, str) for d in dimension_numbers):
        return ConvDimensionNumbers(tuple(images), tuple(kernels), tuple(results))
    spatial = [a for a in images if a not in "NC"]
    by_name = lambda letters, spec: (*spec[:2], *[letters.index(a) for a in spatial])  # noqa: E731  the images' order of spatial dims
    return ConvDimensionNumbers(_spec(images, "N", "C"), by_name(kernels, _spec(kernels, "O", "I")), by_name(results, _spec(results, "N", "C")))


def conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, feature_group_count=1, batch_group_count=1,
                         precision=None, preferred_element_type=None, **_):
    """The convolution of networks, a correlation, with JAX's dims, dilations of images and kernels, and groups of features or of the batch. Communication and errors: tessera.conv's."""
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    x, kernel = _core.transpose(lhs, list(numbers.lhs_spec)), _core.transpose(rhs, list(numbers.rhs_spec))
    if preferred_element_type is not None:
        x, kernel = _core.astype(x, preferred_element_type), _core.astype(kernel, preferred_element_type)
    spatial = x.ndim - 2
    strides, apart, dilation = list(window_strides), list(lhs_dilation or [1] * spatial), list(rhs_dilation or [1] * spatial)
    if isinstance(padding, str):
        padding = padtype_to_pads([(n - 1) * d + 1 if n else 0 for n, d in zip(x.shape[2:], apart)], [(k - 1) * d + 1 for k, d in zip(kernel.shape[2:], dilation)], strides, padding.upper())
    x = pad(x, like(0, x), [(0, 0, 0), (0, 0, 0), *[(low if low < 0 else 0, high if high < 0 else 0, d - 1) for (low, high), d in zip(padding, apart)]])
    result = _convolved(x, kernel, strides, [(low if low > 0 else 0, high if high > 0 else 0) for low, high in padding], dilation, feature_group_count, batch_group_count)
    back = sorted(range(result.ndim), key=lambda d: numbers.out_spec[d])
    return _core.transpose(result, back)


def _convolved(x, kernel, strides, padding, dilation, groups, batch_groups):
    extents = [(n + low + high - ((k - 1) * d + 1)) // s + 1 for n, k, s, (low, high), d in zip(x.shape[2:], kernel.shape[2:], strides, padding, dilation)]
    if any(n <= 0 for n in extents) or 0 in x.shape or 0 in kernel.shape:
        return _core.zeros([x.shape[0] // batch_groups, kernel.shape[0], *[n if n > 0 else 0 for n in extents]], x.dtype)
    if not strides:  # no spatial dims: a product
        return _without_space(x, kernel, groups, batch_groups)
    options = dict(strides=strides, padding=padding, dilation=dilation)
    if batch_groups == 1:
        return _core.conv(x, kernel, groups=groups, **options)
    if groups != 1:
        raise _core.errors.ArgumentError(f"conv_general_dilated at {_core.here()}: a convolution has groups of features or of the batch, not both")
    # The batch's groups become groups of channels: image i of group g has the channels g.
    parts, images = batch_groups, x.shape[0] // batch_groups
    spatial = x.shape[2:]
    wide = _core.reshape(x, [parts, images, x.shape[1], *spatial])
    wide = _core.reshape(_core.moveaxis(wide, 0, 1), [images, parts * x.shape[1], *spatial])
    return _core.conv(wide, kernel, groups=parts, **options)


def _without_space(x, kernel, groups, batch_groups):
    wide = lambda a: _core.expand_dims(a, 2)  # noqa: E731
    return _core.squeeze(_convolved(wide(x), wide(kernel), [1], [(0, 0)], [1], groups, batch_groups), [2])


def conv(lhs, rhs, window_strides, padding, precision=None, preferred_element_type=None):
    """conv_general_dilated of (batch, features, spatial...) and (out, in, spatial...)."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, preferred_element_type=preferred_element_type)


def conv_with_general_padding(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, precision=None, preferred_element_type=None):
    """conv_general_dilated of (batch, features, spatial...) and (out, in, spatial...)."""
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation, preferred_element_type=preferred_element_type)


def conv_transpose(lhs, rhs, strides, padding, rhs_dilation=None, dimension_numbers=None, transpose_kernel=False, precision=None, preferred_element_type=None, **_):
    """The convolution of images with strides - 1 zeros between their elements. Without dimension_numbers, images are (batch, spatial..., features) and kernels (spatial..., in, out)."""
    spatial = lhs.ndim - 2
    if dimension_numbers is None:
        last = spatial + 1
        dimension_numbers = ConvDimensionNumbers((0, last, *range(1, last)), (last, spatial, *range(spatial)), (0, last, *range(1, last)))
    numbers = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    dilation = list(rhs_dilation or [1] * spatial)
    if isinstance(padding, str):
        extents = [(rhs.shape[d] - 1) * e + 1 for d, e in zip(numbers.rhs_spec[2:], dilation)]
        padding = [_transposed_padding(k, s, padding.upper()) for k, s in zip(extents, strides)]
    if transpose_kernel:
        rhs = _core.swapaxes(_core.flip(rhs, list(numbers.rhs_spec[2:])), numbers.rhs_spec[0], numbers.rhs_spec[1])
    return conv_general_dilated(lhs, rhs, [1] * spatial, padding, list(strides), dilation, numbers, preferred_element_type=preferred_element_type)


def _transposed_padding(k, s, padding):
    if padding not in ("SAME", "VALID"):
        raise _core.errors.ArgumentError(f"conv_transpose at {_core.here()}: there is no padding '{padding}'; take SAME, VALID or pairs (low, high)")
    if padding == "VALID":
        return k - 1, k + s - 2 + (k - s if k > s else 0) - (k - 1)
    before = k - 1 if s > k - 1 else -(-(k + s - 2) // 2)
    return before, k + s - 2 - before


def conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation=None, rhs_dilation=None, dimension_numbers=None, **_):
    """The elements of each window as features: feature f's first, in the windows' row-major order."""
    numbers = conv_dimension_numbers(lhs.shape, lhs.shape, dimension_numbers)
    channels, taps = lhs.shape[numbers.lhs_spec[1]], 1
    for k in filter_shape:
        taps *= k
    one_of_each = _core.tile(_core.reshape(_core.eye(taps, dtype=lhs.dtype), [taps, 1, *filter_shape]), [channels, *[1] * (len(filter_shape) + 1)])
    kernel = _core.transpose(one_of_each, sorted(range(one_of_each.ndim), key=lambda d: numbers.rhs_spec[d]))
    return conv_general_dilated(lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation, numbers, feature_group_count=channels)


_kinds = {add: "sum", mul: "prod", _max: "max", _min: "min"}


def reduce_window(operand, init_value, computation, window_dimensions=None, window_strides=None, padding="VALID", base_dilation=None, window_dilation=None):
    """The reduction of each window by lax.add, mul, max or min, or by a function of two arrays. tessera's own form is reduce_window(x, "sum", window, strides, padding)."""
    if isinstance(init_value, str):
        return _core.reduce_window(operand, init_value, computation, window_dimensions, window_strides)
    ndim = operand.ndim
    window, strides = list(window_dimensions), list(window_strides or [1] * ndim)
    apart, dilation = list(base_dilation or [1] * ndim), list(window_dilation or [1] * ndim)
    if isinstance(padding, str):
        padding = padtype_to_pads([(n - 1) * d + 1 if n else 0 for n, d in zip(operand.shape, apart)], [(k - 1) * d + 1 for k, d in zip(window, dilation)], strides, padding.upper())
    value = init_value if isinstance(init_value, _core.Array) else like(init_value, operand)
    padded = pad(operand, value, [(low, high, d - 1) for (low, high), d in zip(padding, apart)])
    counts = [(n - ((k - 1) * d + 1)) // s + 1 if n >= (k - 1) * d + 1 else 0 for n, k, d, s in zip(padded.shape, window, dilation, strides)]
    if 0 in counts:
        return _core.zeros(counts, operand.dtype)
    if computation in _kinds and all(d == 1 for d in dilation) and operand.dtype.kind not in "bc":
        return _core.astype(computation(_core.reduce_window(padded, _kinds[computation], window, strides), value), operand.dtype)
    result = _core.broadcast_to(value, counts)
    for place in itertools.product(*[range(k) for k in window]):
        cut = padded[tuple(slice(p * d, p * d + (n - 1) * s + 1, s) for p, d, n, s in zip(place, dilation, counts, strides))]
        result = computation(result, cut)
    return result
