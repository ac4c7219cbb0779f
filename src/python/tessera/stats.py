"""Probability distributions with SciPy's names: norm.logpdf(x, loc, scale) and its like, elementwise."""
import math
from types import SimpleNamespace as _Namespace

from . import _core, special as _s
from .linalg import solve_triangular


def _located(log_density, **functions):
    """A distribution by the logarithm of its density at (x - loc) / scale, and other functions there; `inverse` ones are scaled back."""
    def floating(x, shapes, loc, scale):
        shapes, loc, scale = _arguments(shapes, log_density, loc, scale)
        x, loc, scale, *shapes = _s._floating(x, loc, scale, *shapes)
        return x, shapes, loc, scale

    def logpdf(x, *shapes, loc=0, scale=1):
        x, shapes, loc, scale = floating(x, shapes, loc, scale)
        return _core.subtract(log_density(_core.divide(_core.subtract(x, loc), scale), *shapes), _core.log(scale))

    def at(function, inverse):
        def evaluated(x, *shapes, loc=0, scale=1):
            x, shapes, loc, scale = floating(x, shapes, loc, scale)
            if inverse:
                return _core.add(_core.multiply(function(x, *shapes), scale), loc)
            return function(_core.divide(_core.subtract(x, loc), scale), *shapes)
        evaluated.__name__, evaluated.__doc__ = function.__name__, function.__doc__
        return evaluated

    found = {"logpdf": logpdf, "pdf": lambda x, *shapes, loc=0, scale=1: _core.exp(logpdf(x, *shapes, loc=loc, scale=scale))}
    return _Namespace(**found, **{name: at(f, name in ("ppf", "isf")) for name, f in functions.items()})


def _arguments(values, log_density, loc, scale):
    """Shape parameters, and loc and scale behind them by position."""
    count = log_density.__code__.co_argcount - 1
    if len(values) > count + 2:
        raise TypeError(f"stats at {_core.here()}: {len(values)} parameters are given; there are {count} of the shape, loc and scale")
    rest = list(values[count:])
    return values[:count], rest[0] if rest else loc, rest[1] if len(rest) > 1 else scale


def _inside(x, low, value):
    """value where x is at least low, else -inf."""
    return _core.where(_core.greater_equal(x, low), value, -math.inf)


_half_log_2pi = 0.5 * math.log(2 * math.pi)
_negative, _log = _core.negative, _core.log

norm = _located(lambda z: _core.subtract(_core.multiply(_core.square(z), -0.5), _half_log_2pi), cdf=_s.ndtr, logcdf=_s.log_ndtr, ppf=_s.ndtri,
                sf=lambda z: _s.ndtr(_negative(z)), logsf=lambda z: _s.log_ndtr(_negative(z)), isf=lambda q: _negative(_s.ndtri(q)))
uniform = _located(lambda z: _core.where(_core.bitwise_and(_core.greater_equal(z, 0.0), _core.less_equal(z, 1.0)), 0.0, -math.inf), cdf=lambda z: _core.clip(z, 0.0, 1.0), ppf=lambda q: q)
expon = _located(lambda z: _inside(z, 0.0, _negative(z)), cdf=lambda z: _negative(_core.expm1(_negative(_core.maximum(z, 0.0)))),
                 sf=lambda z: _core.exp(_negative(_core.maximum(z, 0.0))), ppf=lambda q: _negative(_core.log1p(_negative(q))))
laplace = _located(lambda z: _core.subtract(_negative(_core.abs(z)), math.log(2.0)),
                   cdf=lambda z: _core.where(_core.less(z, 0.0), _core.multiply(_core.exp(_core.minimum(z, 0.0)), 0.5), _core.subtract(1.0, _core.multiply(_core.exp(_negative(_core.maximum(z, 0.0))), 0.5))))
logistic = _located(lambda z: _core.subtract(_negative(z), _core.multiply(_core.softplus(_negative(z)), 2.0)), cdf=_s.expit, sf=lambda z: _s.expit(_negative(z)), ppf=_s.logit)
cauchy = _located(lambda z: _negative(_core.add(_core.log1p(_core.square(z)), math.log(math.pi))), cdf=lambda z: _core.add(_core.multiply(_core.atan(z), 1 / math.pi), 0.5),
                  ppf=lambda q: _core.tan(_core.multiply(_core.subtract(q, 0.5), math.pi)))
gamma = _located(lambda z, a: _inside(z, 0.0, _core.subtract(_core.subtract(_s.xlogy(_core.subtract(a, 1.0), _core.maximum(z, 0.0)), z), _s.gammaln(a))),
                 cdf=lambda z, a: _s.gammainc(a, _core.maximum(z, 0.0)), sf=lambda z, a: _s.gammaincc(a, _core.maximum(z, 0.0)))
beta = _located(lambda z, a, b: _core.where(_core.bitwise_and(_core.greater_equal(z, 0.0), _core.less_equal(z, 1.0)), _core.subtract(
    _core.add(_s.xlogy(_core.subtract(a, 1.0), _core.clip(z, 0.0, 1.0)), _s.xlog1py(_core.subtract(b, 1.0), _negative(_core.clip(z, 0.0, 1.0)))), _s.betaln(a, b)), -math.inf),
    cdf=lambda z, a, b: _s.betainc(a, b, _core.clip(z, 0.0, 1.0)))
chi2 = _located(lambda z, df: _inside(z, 0.0, _core.subtract(_core.subtract(_s.xlogy(_core.subtract(_core.multiply(df, 0.5), 1.0), _core.maximum(z, 0.0)), _core.multiply(z, 0.5)), _core.add(
    _s.gammaln(_core.multiply(df, 0.5)), _core.multiply(df, 0.5 * math.log(2.0))))), cdf=lambda z, df: _s.gammainc(_core.multiply(df, 0.5), _core.multiply(_core.maximum(z, 0.0), 0.5)))
t = _located(lambda z, df: _core.subtract(_core.subtract(_s.gammaln(_core.multiply(_core.add(df, 1.0), 0.5)), _s.gammaln(_core.multiply(df, 0.5))), _core.add(
    _core.multiply(_log(_core.multiply(df, math.pi)), 0.5), _core.multiply(_core.multiply(_core.add(df, 1.0), 0.5), _core.log1p(_core.divide(_core.square(z), df))))))


def _counted(logpmf, **functions):
    """A distribution on integers, by the logarithm of its mass at k - loc."""
    def at(function):
        def evaluated(k, *shapes, loc=0):
            k, loc, *shapes = _s._floating(k, loc, *shapes)
            return function(_core.subtract(k, loc), *shapes)
        return evaluated
    log_mass = at(logpmf)
    return _Namespace(logpmf=log_mass, pmf=lambda k, *shapes, loc=0: _core.exp(log_mass(k, *shapes, loc=loc)), **{name: at(f) for name, f in functions.items()})


def _whole(k, value):
    return _core.where(_core.bitwise_and(_core.greater_equal(k, 0.0), _core.equal(k, _core.floor(k))), value, -math.inf)


poisson = _counted(lambda k, mu: _whole(k, _core.subtract(_core.subtract(_s.xlogy(k, mu), _s.gammaln(_core.add(_core.maximum(k, 0.0), 1.0))), mu)),
                   cdf=lambda k, mu: _core.where(_core.less(k, 0.0), 0.0, _s.gammaincc(_core.add(_core.floor(_core.maximum(k, 0.0)), 1.0), mu)))
bernoulli = _counted(lambda k, p: _core.where(_core.equal(k, 0.0), _core.log1p(_negative(p)), _core.where(_core.equal(k, 1.0), _log(p), -math.inf)),
                     cdf=lambda k, p: _core.where(_core.less(k, 0.0), 0.0, _core.where(_core.less(k, 1.0), _core.subtract(1.0, p), 1.0)))
geom = _counted(lambda k, p: _core.where(_core.greater_equal(k, 1.0), _whole(k, _core.add(_s.xlog1py(_core.subtract(k, 1.0), _negative(p)), _log(p))), -math.inf))
binom = _counted(lambda k, n, p: _core.where(_core.less_equal(k, n), _whole(k, _core.add(_core.subtract(_s.gammaln(_core.add(n, 1.0)), _core.add(_s.gammaln(_core.add(_core.maximum(k, 0.0), 1.0)), _s.gammaln(
    _core.add(_core.maximum(_core.subtract(n, k), 0.0), 1.0)))), _core.add(_s.xlogy(k, p), _s.xlog1py(_core.subtract(n, k), _negative(p))))), -math.inf))


def _logpdf_of_many(x, mean, cov):
    """The normal density of vectors, along x's last dim; cov is a number, variances, or a matrix that a Cholesky factorization takes."""
    x, mean, cov = _s._floating(x, mean, cov)
    centred = _core.subtract(x, mean)
    if cov.ndim < 2:
        total = _core.sum(_core.divide(_core.square(centred), cov), -1, False)
        logdet = _core.sum(_core.broadcast_to(_log(cov), [centred.shape[-1]]), -1, False)
    else:
        factor = _core.linalg.cholesky(cov)
        columns = _core.swapaxes(centred, -1, -2) if centred.ndim > 1 else _core.expand_dims(centred, -1)
        total = _core.sum(_core.square(solve_triangular(factor, columns, lower=True)), -2, False)
        total = total if centred.ndim > 1 else _core.squeeze(total, -1)
        logdet = _core.multiply(_core.sum(_log(_core.diagonal(factor)), -1, False), 2.0)
    return _core.multiply(_core.add(_core.add(total, logdet), centred.shape[-1] * 2 * _half_log_2pi), -0.5)


multivariate_normal = _Namespace(logpdf=_logpdf_of_many, pdf=lambda x, mean, cov: _core.exp(_logpdf_of_many(x, mean, cov)))
