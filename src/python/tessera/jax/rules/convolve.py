"""Convolution in JAX's own form: tessera's conv of images (batch, features, spatial...)."""
from ... import _core as c
from .._interpret import refuse, rule
from .._values import dtype, number_like
from .shapes import interior, pad


@rule("conv_general_dilated")
def conv_general_dilated(x, kernel, window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, feature_group_count=1, batch_group_count=1,
                         preferred_element_type=None, **_):
    numbers = dimension_numbers
    x, kernel = c.transpose(x, list(numbers.lhs_spec)), c.transpose(kernel, list(numbers.rhs_spec))
    to = x.dtype if preferred_element_type is None else dtype(preferred_element_type)
    if to != x.dtype:
        x, kernel = c.astype(x, to), c.astype(kernel, to)
    zero = number_like(0, x)
    for d, gap in enumerate(lhs_dilation):
        x = interior(x, d + 2, gap - 1, zero)
    if any(low < 0 or high < 0 for low, high in padding):
        x = pad(x, zero, [(0, 0, 0), (0, 0, 0)] + [(min(low, 0), min(high, 0), 0) for low, high in padding])
    padding = [(max(low, 0), max(high, 0)) for low, high in padding]
    result = _convolved(x, kernel, list(window_strides), padding, list(rhs_dilation), feature_group_count, batch_group_count)
    back = [0] * result.ndim
    for n, d in enumerate(numbers.out_spec):
        back[d] = n
    return c.transpose(result, back)


def _convolved(x, kernel, strides, padding, dilation, groups, batch_groups):
    extents = [(n + low + high - ((k - 1) * d + 1)) // s + 1 for n, k, s, (low, high), d in zip(x.shape[2:], kernel.shape[2:], strides, padding, dilation)]
    if min(extents, default=1) <= 0 or 0 in x.shape or 0 in kernel.shape:
        return c.zeros([x.shape[0] // batch_groups, kernel.shape[0], *[max(n, 0) for n in extents]], x.dtype)
    if not strides:  # no spatial dims: a product
        return _without_space(x, kernel, groups, batch_groups)
    options = dict(strides=strides, padding=padding, dilation=dilation)
    if batch_groups == 1:
        return c.conv(x, kernel, groups=groups, **options)
    if groups != 1:
        refuse("a convolution with groups of features and of the batch")
    # The batch's groups become groups of channels: image i of group g has the channels g.
    parts, images = batch_groups, x.shape[0] // batch_groups
    spatial = x.shape[2:]
    wide = c.reshape(x, [parts, images, x.shape[1], *spatial])
    wide = c.reshape(c.moveaxis(wide, 0, 1), [images, parts * x.shape[1], *spatial])
    return c.conv(wide, kernel, groups=parts, **options)


def _without_space(x, kernel, groups, batch_groups):
    wide = lambda a: c.expand_dims(a, 2)  # noqa: E731
    return c.squeeze(_convolved(wide(x), wide(kernel), [1], [(0, 0)], [1], groups, batch_groups), [2])
