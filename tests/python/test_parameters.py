"""Parameters of NumPy's functions, each beside NumPy on square and other shapes and on each layout: where an operand of fewer dims belongs shows on square ones alone."""
import unittest
import warnings

import numpy as np

import tessera as ts
from layouts import assert_same, shardings

_random = np.random.RandomState(28)
OPERANDS = {
    "s": _random.randn(5, 5), "r": _random.randn(7, 5), "v": _random.randn(5), "t": _random.randn(3, 4, 5), "w": np.arange(1.0, 6), "h": np.array([0.5, -1, 2, 2, np.nan]),
    "i": _random.randint(-4, 5, (5, 5)).astype(np.int32), "k": np.array([3, 0, 0, 4, 2], np.int32), "m": _random.rand(5, 5) > 0.5, "q": _random.rand(5) > 0.4,
    "c": _random.randn(5, 5) + 1j * _random.randn(5, 5), "o": np.sort(_random.rand(5)), "g": np.array([2, 2, 7, 1, 7, 2], np.int32), "z": np.zeros((0, 5)), "u": _random.randint(0, 256, (5, 4)).astype(np.uint8),
}
EXPRESSIONS = """
average(s, axis=0, weights=w)
average(s, axis=1, weights=w, keepdims=True)
average(t, axis=2, weights=v)
average(r, axis=0, weights=np.arange(7.0), returned=True)
average(s, weights=s * s, returned=True)
cov(s, fweights=k + 1)
cov(s, rowvar=False, aweights=w, ddof=0)
cov(v, w, fweights=k + 1, aweights=w)
cov(s, s, bias=True)
corrcoef(r, rowvar=False)
gradient(s, 0.5, edge_order=2)
gradient(s, o, axis=0, edge_order=2)
gradient(r, 2.0, o)
gradient(s[:2], axis=0)
gradient(i)
linspace(s, v, 4, axis=1)
linspace(v, 3, 4, endpoint=False, axis=-1)
linspace(s, 3, 1)
linspace(s, 3, 0)
linspace(v, w, 3, retstep=True)
linspace(-1.5, 2.5, 6, dtype=int)
logspace(v, 1, 4, base=2.0)
geomspace(w, w * 8, 4, axis=1)
geomspace(-1, -1000, 4)
cross(s[:3], s[:3] ** 2, axisa=0, axisb=0, axisc=0)
cross(s[:3], r[:5, :3], axisa=0)
cross(s[:3], s[:3] ** 2, axis=0)
eye(3, M=5, k=1)
tri(3, M=2, k=-1)
trapezoid(s, w, axis=0)
trapezoid(s, w, axis=1)
trapezoid(s, s + 1, axis=0)
trapezoid(r, dx=0.5, axis=0)
interp(s, o, w)
interp(v, o, w, left=-1, right=9)
interp(v, o, w, period=0.7)
interp(s, o[::-1], w, period=-0.3)
digitize(s, o)
digitize(s, o, right=True)
digitize(v, o[::-1])
searchsorted(o, s)
searchsorted(o, s, side="right")
searchsorted(v, o, sorter=argsort(v))
repeat(s, k, axis=0)
repeat(s, k, axis=1)
repeat(s, 2)
repeat(v, k)
tile(s, (2, 1, 2))
tile(v, (2, 2))
roll(s, (1, -2), axis=(0, 1))
roll(s, 3)
roll(t, (1, 2), axis=(0, 0))
rot90(t, 3, axes=(0, 2))
flip(t, (0, 2))
flip(t, ())
take(s, k, axis=0)
take(s, k, axis=1)
take(s, k)
take(s, [[7, -9]], axis=1, mode="wrap")
take(s, [[7, -9]], axis=0, mode="clip")
take_along_axis(s, i % 5, axis=0)
take_along_axis(s, i % 5, axis=1)
take_along_axis(s, argmax(s, axis=1, keepdims=True), axis=1)
compress(q, s, axis=0)
compress(q, s, axis=1)
compress(q[:3], s, axis=1)
extract(m, s)
delete(s, 1, axis=1)
delete(s, [0, -1], axis=0)
delete(s, [0, -1])
delete(s, slice(None, None, 2), axis=1)
insert(s, 2, w, axis=0)
insert(s, 2, w, axis=1)
insert(v, [1, 3], w[:2])
insert(r, -1, w, axis=0)
insert(r, 2, s[:2], axis=0)
insert(s, [0, 5], -1, axis=1)
append(s, r, axis=0)
append(s, v)
diff(s, 2, axis=0)
diff(s, prepend=0, axis=0)
diff(s, append=r[:5, :2], axis=1)
ediff1d(v, to_begin=-9, to_end=np.array([8.0, 9]))
cumsum(s)
cumsum(s, axis=0)
cumprod(t, axis=1)
nancumsum(h)
percentile(s, 30)
percentile(s, [10, 50.5], axis=0)
percentile(t, [10, 50.5], axis=(0, 2), keepdims=True)
quantile(s, 0.3, axis=1, method="nearest")
quantile(s, [0.25, 0.5], axis=1, method="hazen")
nanquantile(h, [0.1, 0.9])
median(t, axis=(0, 1))
std(t, axis=(0, 2), ddof=1, keepdims=True)
var(s, where=m)
mean(s, axis=0, where=m)
sum(s, axis=1, where=m, initial=5)
sum(s, where=q)
max(s, axis=0, initial=0.5, where=m)
min(t, axis=(1, 2), keepdims=True)
prod(s, axis=(), keepdims=True)
any(m, axis=0, where=q)
all(m, axis=1, keepdims=True)
count_nonzero(i, axis=(0, 1))
argmax(i, axis=0)
argmin(s, keepdims=True)
nanargmax(h)
ptp(t, axis=(0, 1))
histogram(s, 4)
histogram(s, 4, range=(-1, 1), density=True)
histogram(v, o, weights=w)
histogram(s, bins=np.array([-1, 0, 0.5, 2]), density=True)
histogram2d(v, w, 3)
histogram2d(v, w, [2, 3], range=[[-1, 1], [0, 6]], weights=w)
histogram_bin_edges(s, 3)
bincount(k, weights=w, minlength=7)
bincount(g)
unique(g)
unique(g, return_index=True, return_inverse=True, return_counts=True)
intersect1d(g, k)
union1d(g, k)
setdiff1d(g, k)
setxor1d(g, k)
isin(g, k)
isin(i, [1, 2], invert=True)
sort(s, axis=0)
sort(s, axis=None)
argsort(i, axis=0, kind="stable")
lexsort((k, g[:5]))
lexsort((i, m))
partition(s, 2, axis=0)[2]
sort_complex(c)
where(q, s, 0)
where(m, s, v)
select([s > 1, s > 0], [s, v], -1)
choose(k % 3, [v, w, o])
piecewise(s, [s < 0, s > 1], [-1, 5, 0])
clip(s, -v * v, w)
clip(s, None, 0.5)
nan_to_num(h, nan=7)
nan_to_num(np.array([np.inf, -np.inf, np.nan]), posinf=3, neginf=-3)
round(s, 2)
round(s * 100, -1)
around(c, 1)
pad(s, ((1, 2), (0, 3)), constant_values=((1, 2), (3, 4)))
pad(s, 2, mode="reflect")
pad(s, (1, 2), mode="wrap")
pad(s, 1, mode="edge")
pad(v, 3, mode="symmetric")
pad(v, (2, 1), mode="linear_ramp", end_values=(5, -4))
pad(s, 1, mode="maximum")
pad(s, 2, mode="mean")
trace(t, 1, 0, 2)
diagonal(t, -1, 1, 2)
diag(s, -2)
diag(v, 1)
diagflat(s, 1)
tril(t, -1)
triu(s, 2)
vander(v, 3)
vander(v, 4, increasing=True)
kron(s, v)
outer(s, v)
inner(s, v)
inner(t, v)
dot(t, v)
dot(v, s)
dot(t, s)
vdot(c, c * 2)
tensordot(t, s, axes=1)
tensordot(t, r, axes=([2], [1]))
einsum("ij,j->i", s, v)
einsum("ij,i->j", s, v)
einsum("ii->i", s)
einsum("...ij,jk", t, s)
einsum(s, [0, 1], v, [0], [1])
einsum(s, [0, 1], r, [2, 1])
einsum(t, [Ellipsis, 0], v, [0], [Ellipsis])
matmul(v, s)
matmul(t, v)
moveaxis(t, (0, 1), (-1, 0))
swapaxes(t, 0, 2)
transpose(t, (1, 0, 2))
expand_dims(s, (0, 3))
squeeze(t[:1], 0)
broadcast_to(v, (5, 5))
atleast_3d(s)
concatenate([s, r], axis=0)
concatenate([s, v], axis=None)
stack([s, s + 1], axis=1)
vstack([v, s])
hstack([v, w])
column_stack([v, s])
dstack([v, w])
block([[s, s], [s, s + 1]])
split(s, [1, 3], axis=1)
array_split(r, 3)
hsplit(s, [2])
vsplit(s, [2, 4])
resize(v, (2, 4))
reshape(t, (5, -1), order="F")
ravel(t, order="F")
reshape(t, -1, order="F")
reshape(t, (2, 5, 6), order="A")
unravel_index(k, (2, 3))
unravel_index(k, (2, 3), order="F")
ravel_multi_index((k % 3, k), (3, 5), mode="clip")
ravel_multi_index((k, k), (3, 3), mode="wrap")
ravel_multi_index((k % 3, k), (3, 5), order="F")
ix_(q, k)
meshgrid(v, w[:3], indexing="ij")
meshgrid(v, w[:3], sparse=True)
indices((2, 3))
tril_indices(4, -1, 5)
triu_indices_from(s, 1)
diag_indices(3)
nonzero(m)
flatnonzero(q)
argwhere(m)
packbits(m, axis=0)
packbits(m, axis=1, bitorder="little")
unpackbits(u, axis=0)
unpackbits(u, axis=1, count=11)
convolve(v, w[:3], "same")
convolve(v, w[:2], mode="valid")
correlate(c[0], c[1], "full")
polyfit(o, v, 2)
polyfit(o, s, 1, w=w)
polyfit(o, v, 1, w=w, cov="unscaled")
polyfit(o, v, 1, cov=True)
polyfit(o, s, 1, cov=True)
polyfit(o, v, 2, full=True)
polyfit(o, v, deg=1)
polyint(v, 2, [3, 4])
polyval(v, s)
polyadd(v, w[:2])
polymul(v, w[:2])
polyder(v, 2)
polyint(v, 1, 3)
polydiv(w, w[:2])
roots(np.array([1.0, -3, 2]))
unwrap(s * 4, axis=0)
unwrap(s * 4, period=4)
unwrap(v * 9, discont=5)
angle(c, deg=True)
heaviside(s, v)
copysign(s, v)
ldexp(s, i)
fmod(s, v)
divmod(i, 3)
gcd(i, k)
float_power(w, v)
logaddexp2(s, v)
hypot(s, v)
nextafter(s, v)
isclose(s, s + 1e-6, rtol=0, atol=1e-5)
isclose(h, h, equal_nan=True)
allclose(s, v)
array_equal(h, h, equal_nan=True)
array_equiv(s, s[0])
real_if_close(c)
apply_along_axis(lambda x: x[:2] * 2, 0, s)
apply_over_axes(sum, t, (0, 2))
fromfunction(lambda x, y: x + 2 * y, (3, 4))
full_like(s, 3, dtype=int)
zeros_like(i, dtype=float)
ones_like(s, shape=(2, 3))
arange(2, 9, 3)
arange(1.0, 0, -0.25)
linalg.norm(s, axis=0)
linalg.norm(s, ord=1)
linalg.norm(s, ord=-2)
linalg.norm(t, axis=(0, 2), ord="nuc")
linalg.norm(s, ord=np.inf, axis=1, keepdims=True)
linalg.norm(v, ord=0)
linalg.norm(v, 3)
linalg.cond(s, 1)
linalg.matrix_power(s, -2)
linalg.lstsq(r, np.arange(7.0), rcond=None)[0]
linalg.solve(s, v)
linalg.solve(s, s + 1)
linalg.tensorsolve(reshape(np.eye(6) + 1, (2, 3, 6)), np.ones((2, 3)))
linalg.tensorinv(reshape(np.eye(6) * 2, (6, 2, 3)), ind=1)
linalg.slogdet(s)
linalg.multi_dot([v, s, r.T])
linalg.eigvalsh(s, UPLO="U")
linalg.eigvalsh(s)
linalg.eigvalsh(c, "L")
linalg.eigh(c, "U")[0]
linalg.cholesky(s @ s.T + triu(s, 1))
linalg.cholesky(c @ conj(c.T))
linalg.svd(s + s.T, compute_uv=False, hermitian=True)
linalg.pinv(s + s.T, hermitian=True)
linalg.pinv(r, rcond=0.3)
linalg.matrix_rank(s[:, :1] * s[:1], hermitian=False)
linalg.matrix_rank(s, tol=1.5)
fft.fft(s, 7, axis=0)
fft.fft(s, 3, axis=1, norm="ortho")
fft.ifft(c, axis=0, norm="forward")
fft.rfft(s, 8)
fft.irfft(c, 7, axis=0)
fft.fft2(t, (4, 6))
fft.fftn(t, axes=(0, 2))
fft.rfftn(t, (3, 6), axes=(0, 2))
fft.irfftn(c, (4, 7))
fft.hfft(c, 6, axis=0)
fft.ihfft(s, norm="ortho")
fft.fftfreq(5, 0.5)
fft.fftshift(t, axes=(0, 2))
fft.ifftshift(s, 1)
""".strip().splitlines()

# Methods, operators, indices, and NumPy's own functions, which find tessera's.
METHODS = """
s.mean(axis=0, dtype="float32")
s.std(ddof=1)
s.var(axis=1, keepdims=True, ddof=1)
s.sum(0, None, None, True)
s.sum(where=m, initial=2)
s.max(axis=1, initial=0.5, where=m)
s.ravel("F")
s.ravel(order="F")
s.flatten("F")
s.reshape(25, order="F")
s.reshape((5, -1))
s.reshape(1, 25)
t.reshape(5, 12, order="F")
t.transpose(1, 0, 2)
t.transpose((2, 0, 1))
t.transpose()
t.swapaxes(0, 2)
s.round(2)
s.clip(-0.5, w)
s.clip(min=0)
s.clip(max=0.5)
s.take(k, axis=1)
s.take([[1, 2]], 0)
s.repeat(k, axis=1)
s.repeat(2)
s.cumsum(axis=0, dtype="float32")
s.cumsum(0)
s.cumprod()
s.dot(v)
v.dot(s)
s.trace(1)
s.diagonal(-1)
t.diagonal(0, 1, 2)
o.searchsorted(v, side="right")
m.nonzero()
s.argmax(axis=1)
s.argmin(axis=0, keepdims=True)
s.argsort(axis=0)
k.argsort(kind="stable")
s.astype("int32")
s.astype(np.float32, copy=False)
s.astype(int)
s.astype(bool)
t[:1].squeeze(axis=0)
t[:1].squeeze(0)
s.prod(axis=(0, 1))
m.all(axis=1, keepdims=True)
m.any(0)
c.conj()
c.conjugate()
c.real
c.imag
s.T
s.copy()
s.compress(q, axis=1)
k.choose([v, w, o, v, w])
s.size
s.nbytes
s.itemsize
s.ndim
len(s)
float(s[0, 0])
int(k[0])
bool(m[0, 0])
complex(c[0, 0])
s[0].tolist()
s.item(3)
s.item(1, 2)
s.item((1, 2))
k[1:3].max().item()
list(k)
[x.sum() for x in s]
sum(v)
max(k)
sorted(v)
v[::-1].cumsum()
abs(s)
-s
+s
~m
s // 2
s % 0.7
divmod(i, 3)
2 ** v
v ** 2
1 / w
i << 1
i & 3
i ^ i.T
m | ~m
s @ s
s @ v
(s > 0) & (s < 1)
s == s.T
i != 3
s[1]
s[-1, ::2]
s[:, None, 1]
s[..., 0]
s[m]
s[k]
s[k, k]
s[k[:, None], k]
s[q]
s[:, q]
s[q, 1:]
t[0, k[:2], 1:3]
t[:, [0, 1], [1, 2]]
t[[0, 1], :, [1, 2]]
s[np.array([True, False, True, False, True])]
s[[0, 2]]
s[[True, False, True, False, True]]
s[()]
s[np.int64(2)]
s[slice(4, 0, -2)]
s[s.argmax(axis=0), np.arange(5)]
u.view(np.int8)
np.float32(2) * s
np.array([1, 2, 3, 4, 5]) + s
s + np.arange(5)
np.add(s, v)
np.sin(s)
np.concatenate([s, s])
np.sum(s, axis=0)
np.mean(s)
np.dot(s, v)
np.linalg.norm(s)
np.where(m, s, 0)
np.maximum(s, 0)
np.sqrt(abs(s))
np.stack([v, w])
np.allclose(s, s)
np.argsort(v)
np.average(s, axis=0, weights=w)
np.einsum("ij,j", s, v)
np.fft.fft(v)
np.linalg.solve(s, v)
np.percentile(s, 30, axis=0)
np.clip(s, 0, 1)
np.diff(s, axis=0)
np.cumsum(s)
np.unique(g)
np.tensordot(s, s, 1)
np.isnan(h)
np.nanmean(h)
np.round(s, 1)
np.outer(v, w)
np.histogram(v, 3)
np.gradient(s)
np.interp(v, o, w)
np.shape(s)
np.ndim(s)
np.size(s)
np.expand_dims(v, 0)
np.transpose(t)
np.median(s, axis=1)
np.cov(s)
np.kron(s, v)
np.apply_along_axis(sum, 0, s)
""".strip().splitlines()


def _parts(found):
    return [p for each in found for p in _parts(each)] if isinstance(found, (tuple, list)) else [found]


def numpys(module):
    return {n: getattr(module, n) for n in dir(module) if not n.startswith("_")} | {"np": np}


def compare(text, operands, theirs, ours):
    """Raises an AssertionError where the text does not give NumPy's values."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _parts(eval(text, theirs | OPERANDS))
        found = _parts(eval(text, ours | operands))
    assert len(found) == len(expected), f"{len(found)} results, NumPy has {len(expected)}"
    for f, e in zip(found, expected):
        if isinstance(f, ts.Array):
            assert_same(f, e, 1e-4, dtype=False)
        elif not np.allclose(f, e, equal_nan=True):
            raise AssertionError(f"{f} is not {e}")


class Parameters(unittest.TestCase):
    def on_each_layout(self, expressions, theirs, ours):
        layouts = {name: list(shardings(value.ndim)) for name, value in OPERANDS.items()}
        for n, text in enumerate(expressions):
            for turn in range(3):
                operands = {name: ts.asarray(value, sharding=layouts[name][(n + turn) % len(layouts[name])]) for name, value in OPERANDS.items()}
                with self.subTest(text, layout=turn):
                    compare(text, operands, theirs, ours)

    def test_functions(self):
        self.on_each_layout(EXPRESSIONS, {"trapezoid": getattr(np, "trapz", None)} | numpys(np), numpys(ts))

    def test_methods(self):
        self.on_each_layout(METHODS, {"np": np}, {"np": np})

    def test_options_that_are_not_there_are_named_with_the_line(self):
        x = ts.ones((2, 2))
        for call, text in ((lambda: x.reshape(4, order="Q"), r"order at test_parameters\.py:\d+ is 'Q'; it is 'C', 'F', 'A' or 'K'"),
                           (lambda: ts.linalg.eigh(x, UPLO="X"), r"UPLO at test_parameters\.py:\d+ is 'X'; it is 'L' or 'U'"),
                           (lambda: ts.ones(3).view("float64"), r"view at test_parameters\.py:\d+: the last dim of \(3,\) float32 is no multiple of the 8 bytes of float64"),
                           (lambda: ts.cov(x, aweights=np.ones(3)), r"cov at test_parameters\.py:\d+: weights of shape \(3,\) for 2 observations; there is one for each"),
                           (lambda: ts.polyint(ts.ones(2), 2, [1, 2, 3]), r"polyint at test_parameters\.py:\d+: 3 constants for 2 integrations")):
            with self.assertRaisesRegex(ValueError, text):
                call()


if __name__ == "__main__":
    unittest.main()
