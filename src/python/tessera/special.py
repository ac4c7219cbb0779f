"""Special functions with SciPy's names, elementwise: those of the library, and compositions of them. Layout and communication are an elementwise op's."""
import math

from . import _core
from ._core import betainc, digamma, erf, erfc, exp2, expm1, i0, i0e, i1, i1e, log1p, log_softmax, polygamma, sinc, zeta  # noqa: F401
from ._core import cbrt, erf_inv as erfinv, igamma as gammainc, igammac as gammaincc, lgamma as gammaln, sigmoid as expit  # noqa: F401
from ._create import _array
from ._dtypes import result_type
from .nn import log_sigmoid as log_expit, logsumexp, softmax  # noqa: F401

psi = digamma


def _floating(*values):
    """The values as arrays of one floating dtype, which the functions here need."""
    arrays = [_array(v, *values) for v in values]
    dtype = result_type(*arrays, 1.0)
    return [_core.astype(a, dtype) for a in arrays]


def logit(p):
    """log(p / (1 - p))."""
    (p,) = _floating(p)
    return _core.subtract(_core.log(p), _core.log1p(_core.negative(p)))


def _finite_beside_zero(x, y, lowest, instead):
    """y, and `instead` where x is 0 and y is at most `lowest` or infinite. Elsewhere the slope by x stays the logarithm."""
    outside = _core.bitwise_or(_core.less_equal(y, lowest), _core.equal(y, math.inf))
    return _core.where(_core.bitwise_and(_core.equal(x, 0.0), outside), instead, y)


def xlogy(x, y):
    """x log(y), and 0 where x is 0."""
    x, y = _floating(x, y)
    return _core.multiply(x, _core.log(_finite_beside_zero(x, y, 0.0, 1.0)))


def xlog1py(x, y):
    """x log(1 + y), and 0 where x is 0."""
    x, y = _floating(x, y)
    return _core.multiply(x, _core.log1p(_finite_beside_zero(x, y, -1.0, 0.0)))


def entr(x):
    """-x log(x); 0 at 0, -inf below."""
    (x,) = _floating(x)
    return _core.where(_core.less(x, 0.0), -math.inf, _core.negative(xlogy(x, x)))


def rel_entr(p, q):
    """p log(p / q); 0 where p is 0 and q is not negative, inf where either is negative or q alone is 0."""
    p, q = _floating(p, q)
    both = _core.bitwise_and(_core.greater(p, 0.0), _core.greater(q, 0.0))
    none = _core.bitwise_and(_core.equal(p, 0.0), _core.greater_equal(q, 0.0))
    ratio = _core.divide(_core.where(both, p, 1.0), _core.where(both, q, 1.0))
    result = _core.where(both, _core.multiply(p, _core.log(ratio)), _core.where(none, 0.0, math.inf))
    return _core.where(_core.isnan(_core.add(p, q)), math.nan, result)


def kl_div(p, q):
    """rel_entr(p, q) - p + q."""
    p, q = _floating(p, q)
    return _core.add(_core.subtract(rel_entr(p, q), p), q)


# ---- the normal distribution ----
def ndtr(x):
    """The normal distribution function: erfc(-x / sqrt(2)) / 2."""
    (x,) = _floating(x)
    return _core.multiply(_core.erfc(_core.multiply(x, -math.sqrt(0.5))), 0.5)


def log_ndtr(x):
    """log(ndtr(x)); far below 0 by its asymptotic series, as in JAX."""
    (x,) = _floating(x)
    low = -20.0 if x.dtype.itemsize == 8 else -10.0
    far = _core.minimum(x, low)
    inverse = _core.divide(1.0, _core.square(far))
    series = _core.add(1.0, _core.multiply(inverse, _core.add(-1.0, _core.multiply(inverse, _core.add(3.0, _core.multiply(inverse, -15.0))))))
    tail = _core.subtract(_core.add(_core.multiply(_core.square(far), -0.5), _core.log(series)), _core.add(_core.log(_core.negative(far)), 0.5 * math.log(2 * math.pi)))
    positive = _core.greater(x, 0.0)
    middle = _core.log(ndtr(_core.maximum(_core.where(positive, 0.0, x), low)))
    above = log1p(_core.negative(ndtr(_core.negative(_core.maximum(x, 0.0)))))  # ndtr(x) itself rounds to 1
    return _core.where(_core.isnan(x), x, _core.where(positive, above, _core.where(_core.greater(x, low), middle, tail)))


# Rational approximations of the inverse: S. L. Moshier, Cephes Math Library, ndtri.c.
_center = ((-5.99633501014107895267e1, 9.80010754185999661536e1, -5.66762857469070293439e1, 1.39312609387279679503e1, -1.23916583867381258016e0),
           (1.0, 1.95448858338141759834e0, 4.67627912898881538453e0, 8.63602421390890590575e1, -2.25462687854119370527e2, 2.00260212380060660359e2, -8.20372256168333339912e1,
            1.59056225126211695515e1, -1.18331621121330003142e0))
_near = ((4.05544892305962419923e0, 3.15251094599893866154e1, 5.71628192246421288162e1, 4.40805073893200834700e1, 1.46849561928858024014e1, 2.18663306850790267539e0,
          -1.40256079171354495875e-1, -3.50424626827848203418e-2, -8.57456785154685413611e-4),
         (1.0, 1.57799883256466749731e1, 4.53907635128879210584e1, 4.13172038254672030440e1, 1.50425385692907503408e1, 2.50464946208309415979e0, -1.42182922854787788574e-1,
          -3.80806407691578277194e-2, -9.33259480895457427372e-4))
_far = ((3.23774891776946035970e0, 6.91522889068984211695e0, 3.93881025292474443415e0, 1.33303460815807542389e0, 2.01485389549179081538e-1, 1.23716634817820021358e-2,
         3.01581553508235416007e-4, 2.65806974686737550832e-6, 6.23974539184983293730e-9),
        (1.0, 6.02427039364742014255e0, 3.67983563856160859403e0, 1.37702099489081330271e0, 2.16236993594496635890e-1, 1.34204006088543189037e-2, 3.28014464682127739104e-4,
         2.89247864745380683936e-6, 6.79019408009981274425e-9))


def _ratio(coefficients, x):
    above, below = (_core.multiply(x, 0.0) for _ in range(2))
    for a in coefficients[0]:
        above = _core.add(_core.multiply(above, x), a)
    for b in coefficients[1]:
        below = _core.add(_core.multiply(below, x), b)
    return _core.divide(above, below)


def ndtri(p):
    """The inverse of ndtr: -inf at 0, inf at 1, NaN outside of [0, 1]."""
    (p,) = _floating(p)
    edge = math.exp(-2.0)
    is_upper = _core.greater(p, 1.0 - edge)
    lower = _core.where(is_upper, _core.subtract(1.0, p), p)
    inside = _core.where(_core.bitwise_and(_core.greater(lower, 0.0), _core.less(lower, 1.0)), lower, 0.5)
    w = _core.subtract(inside, 0.5)
    square = _core.square(w)
    center = _core.multiply(_core.add(w, _core.multiply(_core.multiply(w, square), _ratio(_center, square))), -math.sqrt(2 * math.pi))
    z = _core.sqrt(_core.multiply(_core.log(_core.where(_core.greater(inside, edge), edge, inside)), -2.0))
    inverse = _core.divide(1.0, z)
    tail = _core.subtract(_core.subtract(z, _core.multiply(_core.log(z), inverse)),
                          _core.multiply(_core.where(_core.greater_equal(z, 8.0), _ratio(_far, inverse), _ratio(_near, inverse)), inverse))
    found = _core.where(_core.greater(inside, edge), center, tail)
    found = _core.where(is_upper, found, _core.negative(found))
    found = _core.where(_core.equal(p, 0.0), -math.inf, _core.where(_core.equal(p, 1.0), math.inf, found))
    return _core.where(_core.bitwise_and(_core.greater_equal(p, 0.0), _core.less_equal(p, 1.0)), found, math.nan)


# ---- gamma and its kin ----
def gammasgn(x):
    """The sign of the gamma function."""
    (x,) = _floating(x)
    down = _core.floor(x)
    is_odd = _core.not_equal(_core.remainder(down, 2.0), 0.0)
    sign = _core.where(_core.bitwise_and(_core.less(x, 0.0), is_odd), -1.0, 1.0)
    has_none = _core.bitwise_or(_core.isnan(x), _core.bitwise_and(_core.less(x, 0.0), _core.equal(x, down)))
    return _core.where(has_none, math.nan, _core.astype(sign, x.dtype))


def gamma(x):
    """The gamma function, by the logarithm of its size."""
    (x,) = _floating(x)
    return _core.multiply(gammasgn(x), _core.exp(gammaln(x)))


def betaln(a, b):
    """log(|beta(a, b)|)."""
    a, b = _floating(a, b)
    positive = _core.bitwise_and(_core.greater(a, 0.0), _core.greater(b, 0.0))
    inside = _core.betaln(_core.where(positive, a, 1.0), _core.where(positive, b, 1.0))
    return _core.where(positive, inside, _core.subtract(_core.add(gammaln(a), gammaln(b)), gammaln(_core.add(a, b))))


def beta(a, b):
    """gamma(a) gamma(b) / gamma(a + b)."""
    a, b = _floating(a, b)
    return _core.multiply(_core.multiply(gammasgn(a), _core.multiply(gammasgn(b), gammasgn(_core.add(a, b)))), _core.exp(betaln(a, b)))


def factorial(n, exact=False):
    """n!, as a floating-point number; 0 for negative n."""
    (n,) = _floating(n)
    return _core.where(_core.less(n, 0.0), 0.0, _core.exp(gammaln(_core.add(n, 1.0))))


def comb(n, k):
    """The number of choices of k among n."""
    n, k = _floating(n, k)
    inside = _core.bitwise_and(_core.greater_equal(k, 0.0), _core.less_equal(k, n))
    logarithm = _core.subtract(gammaln(_core.add(n, 1.0)), _core.add(gammaln(_core.add(k, 1.0)), gammaln(_core.add(_core.subtract(n, k), 1.0))))
    return _core.where(inside, _core.exp(logarithm), 0.0)


def poch(z, m):
    """gamma(z + m) / gamma(z)."""
    z, m = _floating(z, m)
    size = _core.exp(_core.subtract(gammaln(_core.add(z, m)), gammaln(z)))
    result = _core.multiply(_core.multiply(gammasgn(_core.add(z, m)), gammasgn(z)), size)
    return _core.where(_core.bitwise_and(_core.equal(m, 0.0), _core.isnan(size)), 1.0, result)


def multigammaln(a, d):
    """The logarithm of the multivariate gamma function of d dims."""
    (a,) = _floating(a)
    result = _core.add(_core.multiply(a, 0.0), 0.25 * d * (d - 1) * math.log(math.pi))
    for j in range(d):
        result = _core.add(result, gammaln(_core.subtract(a, 0.5 * j)))
    return result


def boxcox(x, lmbda):
    """(x^lmbda - 1) / lmbda, and log(x) for 0."""
    x, lmbda = _floating(x, lmbda)
    is_zero = _core.equal(lmbda, 0.0)
    return _core.where(is_zero, _core.log(x), _core.divide(_core.expm1(_core.multiply(lmbda, _core.log(x))), _core.where(is_zero, 1.0, lmbda)))


def boxcox1p(x, lmbda):
    """boxcox(1 + x, lmbda)."""
    x, lmbda = _floating(x, lmbda)
    is_zero = _core.equal(lmbda, 0.0)
    return _core.where(is_zero, _core.log1p(x), _core.divide(_core.expm1(_core.multiply(lmbda, _core.log1p(x))), _core.where(is_zero, 1.0, lmbda)))
