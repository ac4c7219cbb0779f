"""Whole programs in small: fluids, sampling, filters, clustering, dynamics, as pages and packages of JAX have them."""
import functools

import numpy as np
import jax
import jax.numpy as jnp
from jax import lax

from functions import a, add, f32, square

# ---- fluids: a projection step on a periodic grid, as jax-cfd's, and vorticity by a pseudo-spectral step ----
_n = 24


def _difference(u, dim):
    return (jnp.roll(u, -1, dim) - jnp.roll(u, 1, dim)) * 0.5


def _laplacian(u):
    return sum(jnp.roll(u, s, d) for d in (0, 1) for s in (-1, 1)) - 4 * u


def _project(u, v):
    k = 2 * jnp.pi * jnp.fft.fftfreq(_n)
    symbol = -(jnp.sin(k)[:, None] ** 2 + jnp.sin(k)[None, :] ** 2)
    divergence = jnp.fft.fftn(_difference(u, 0) + _difference(v, 1))
    pressure = jnp.fft.ifftn(jnp.where(symbol > -1e-6, 0.0, divergence / jnp.where(symbol > -1e-6, 1.0, symbol))).real
    return u - _difference(pressure, 0), v - _difference(pressure, 1)


def _fluid_step(velocity, _):
    u, v = velocity
    moved = [w - 0.05 * (u * _difference(w, 0) + v * _difference(w, 1)) + 0.02 * _laplacian(w) for w in (u, v)]
    return _project(*moved), None


def fluid(u, v):
    return lax.scan(_fluid_step, (u, v), None, length=5)[0]


add("cfd_projection_steps", fluid, f32(_n, _n), f32(_n, _n), tolerance=1e-3)
add("cfd_gradient", jax.grad(lambda u, v: jnp.sum(fluid(u, v)[0] ** 2)), f32(_n, _n), f32(_n, _n), tolerance=1e-2)


def vorticity_step(omega):
    kx, ky = jnp.fft.fftfreq(_n) * _n, jnp.fft.rfftfreq(_n) * _n
    square_k = kx[:, None] ** 2 + ky[None] ** 2
    transformed = jnp.fft.rfftn(omega)
    stream = transformed / jnp.where(square_k == 0, 1.0, square_k)
    back = functools.partial(jnp.fft.irfftn, s=omega.shape)
    u, v = back(1j * ky[None] * stream), back(-1j * kx[:, None] * stream)
    advected = u * back(1j * kx[:, None] * transformed) + v * back(1j * ky[None] * transformed)
    kept = (jnp.abs(kx)[:, None] < _n / 3) & (ky[None] < _n / 3)
    return back((transformed - 1e-3 * jnp.where(kept, jnp.fft.rfftn(advected), 0)) / (1 + 1e-4 * square_k))


add("spectral_vorticity", vorticity_step, f32(_n, _n), tolerance=1e-3)

# ---- a variational Monte Carlo sampler, as NetKet's: spins, a restricted Boltzmann machine, Metropolis' rule ----
_spins, _chains = 8, 24
_rbm = (f32(_spins, 12) * 0.3, f32(12) * 0.1, f32(_spins) * 0.1)
_start = np.where(np.arange(_chains * _spins).reshape(_chains, _spins) * 7 % 3 == 0, 1.0, -1.0).astype("f")


def log_psi(weights, s):
    w, hidden, visible = weights
    return s @ visible + jnp.sum(jnp.log(2 * jnp.cosh(s @ w + hidden)), -1)


def _flip(s, n):
    return s * (1 - 2 * jax.nn.one_hot(n, _spins))


def metropolis(weights, s, key):
    def sweep(s, key):
        site_key, accept_key = jax.random.split(key)
        proposal = _flip(s, jax.random.randint(site_key, (_chains,), 0, _spins))
        odds = jnp.exp(2 * (log_psi(weights, proposal) - log_psi(weights, s)))
        taken = jax.random.uniform(accept_key, (_chains,)) < odds
        return jnp.where(taken[:, None], proposal, s), jnp.mean(taken)

    return lax.scan(sweep, s, jax.random.split(key, 16))


def local_energy(weights, s):
    """Of the transverse-field Ising chain."""
    bonds = -jnp.sum(s * jnp.roll(s, 1, -1), -1)
    flipped = jax.vmap(lambda n: log_psi(weights, _flip(s, jnp.full((s.shape[0],), n))))(jnp.arange(_spins))
    return bonds - jnp.sum(jnp.exp(flipped - log_psi(weights, s)[None]), 0)


def energy_gradient(weights, s):
    energies = local_energy(weights, s)
    return jax.grad(lambda w: 2 * jnp.mean(lax.stop_gradient(energies - energies.mean()) * log_psi(w, s)))(weights)


def natural_gradient(weights, s):
    """Stochastic reconfiguration: per-sample gradients, their covariance, a solve."""
    rows = jax.vmap(lambda v: jax.flatten_util.ravel_pytree(jax.grad(lambda w: log_psi(w, v))(weights))[0])(s)
    rows = rows - rows.mean(0)
    force = jax.flatten_util.ravel_pytree(energy_gradient(weights, s))[0]
    return jnp.linalg.solve(rows.T @ rows / len(rows) + 0.1 * jnp.eye(rows.shape[1]), force)


add("netket_sampler", metropolis, _rbm, _start, jax.random.PRNGKey(4))
add("netket_local_energy", local_energy, _rbm, _start, tolerance=1e-3)
add("netket_gradient", energy_gradient, _rbm, _start, tolerance=1e-3)
add("netket_natural_gradient", natural_gradient, _rbm, _start, tolerance=5e-3)


# ---- filters, clustering, ranking ----
def kalman(observations):
    move, see = jnp.array([[1.0, 0.1], [0.0, 1.0]]), jnp.array([[1.0, 0.0]])

    def step(state, y):
        mean, cov = move @ state[0], move @ state[1] @ move.T + 0.01 * jnp.eye(2)
        gain = jnp.linalg.solve(see @ cov @ see.T + 0.1, see @ cov).T
        mean = mean + gain @ (y - see @ mean)
        return (mean, cov - gain @ see @ cov), mean

    return lax.scan(step, (jnp.zeros(2), jnp.eye(2)), observations)[1]


add("kalman_filter", kalman, f32(24, 1), tolerance=1e-3)


def kmeans(points):
    def step(_, centres):
        nearest = jnp.argmin(jnp.sum((points[:, None] - centres[None]) ** 2, -1), 1)
        ones = jax.nn.one_hot(nearest, 4)
        return (ones.T @ points) / jnp.maximum(ones.sum(0), 1)[:, None]
    return lax.fori_loop(0, 6, step, points[:4])


add("kmeans", kmeans, f32(48, 3))


def sinkhorn(cost):
    def step(_, potentials):
        f, g = potentials
        f = -jax.nn.logsumexp(g[None] - cost, 1)
        return f, -jax.nn.logsumexp(f[:, None] - cost, 0)
    f, g = lax.fori_loop(0, 20, step, (jnp.zeros(24), jnp.zeros(24)))
    return jnp.sum(jnp.exp(f[:, None] + g[None] - cost) * cost)


add("sinkhorn", sinkhorn, np.abs(square), tolerance=1e-3)
add("sinkhorn_gradient", jax.grad(sinkhorn), np.abs(square), tolerance=1e-3)


def pagerank(links):
    links = (links > 0).astype("f") + 1e-3
    links = links / links.sum(0)
    return lax.while_loop(lambda s: (s[1] > 1e-6) & (s[2] < 100), lambda s: ((v := 0.85 * links @ s[0] + 0.15 / 24), jnp.abs(v - s[0]).sum(), s[2] + 1),
                          (jnp.ones(24) / 24, jnp.float32(1), 0))[0]


add("pagerank", pagerank, square)
add("pca", lambda x: jnp.abs(jnp.linalg.svd(x - x.mean(0), full_matrices=False)[2][:2]), a, tolerance=1e-2)
add("game_of_life", lambda g: lax.fori_loop(0, 5, lambda _, c: ((n := sum(jnp.roll(c, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j)) == 3) | (c & (n == 2)) != 0, g), square > 0)


def mandelbrot(re, im):
    c = re[None, :] + 1j * im[:, None]
    return lax.fori_loop(0, 20, lambda _, s: ((z := jnp.where(jnp.abs(s[0]) < 2, s[0] ** 2 + c, s[0])), s[1] + (jnp.abs(z) < 2)), (jnp.zeros_like(c), jnp.zeros(c.shape, jnp.int32)))[1]


add("mandelbrot", mandelbrot, np.linspace(-2, 1, 24).astype("f"), np.linspace(-1, 1, 16).astype("f"))


# ---- dynamics ----
def lennard_jones(r):
    d = r[:, None] - r[None] + 10 * jnp.eye(len(r))[..., None]
    s = 1 / jnp.sum(d ** 2, -1) ** 3
    return 2 * jnp.sum(s ** 2 - s)


_lattice = (np.stack(np.meshgrid(*[np.arange(3)] * 3, indexing="ij"), -1).reshape(27, 3)[:24] * 1.2).astype("f")


def leapfrog(r, v):
    force = jax.grad(lambda q: -lennard_jones(q))

    def step(state, _):
        q, p = state
        p = p + 0.005 * force(q)
        q = q + 0.01 * p
        return (q, p + 0.005 * force(q)), lennard_jones(q)

    return lax.scan(step, (r, v), None, length=4)


add("molecular_dynamics", leapfrog, _lattice, f32(24, 3) * 0.1, tolerance=2e-3)


def heat(u):
    return lax.fori_loop(0, 10, lambda _, v: v.at[1:-1, 1:-1].add(0.1 * (v[2:, 1:-1] + v[:-2, 1:-1] + v[1:-1, 2:] + v[1:-1, :-2] - 4 * v[1:-1, 1:-1])), u)


add("heat_steps", heat, square)
add("heat_gradient", jax.grad(lambda u: jnp.sum(lax.fori_loop(0, 4, lambda _, v: v + 0.1 * _laplacian(v), u) ** 3)), square, tolerance=1e-3)


@jax.custom_vjp
def fixed_point(w, x):
    return lax.fori_loop(0, 40, lambda _, z: jnp.tanh(w @ z + x), jnp.zeros_like(x))


def _fixed_forward(w, x):
    z = fixed_point(w, x)
    return z, (w, x, z)


def _fixed_backward(kept, g):
    w, x, z = kept
    back = jax.vjp(lambda v: jnp.tanh(w @ v + x), z)[1]
    u = lax.fori_loop(0, 40, lambda _, v: g + back(v)[0], g)
    return jax.vjp(lambda w, x: jnp.tanh(w @ z + x), w, x)[1](u)


fixed_point.defvjp(_fixed_forward, _fixed_backward)
add("implicit_layer_gradient", jax.grad(lambda w, x: jnp.sum(fixed_point(w * 0.05, x) ** 2), (0, 1)), square, f32(24), tolerance=1e-3)


def hamiltonian_monte_carlo(key, x):
    """One proposal of HMC for a vector of logistic regression weights, by hand."""
    features, labels = jnp.asarray(a), (jnp.arange(24) % 2).astype("f")
    density = lambda w: jnp.sum(labels * (features @ w) - jnp.logaddexp(0.0, features @ w)) - 0.5 * w @ w  # noqa: E731
    momentum_key, accept_key = jax.random.split(key)
    p = jax.random.normal(momentum_key, x.shape)

    def step(state, _):
        q, m = state
        m = m + 0.05 * jax.grad(density)(q)
        q = q + 0.1 * m
        return (q, m + 0.05 * jax.grad(density)(q)), None

    (q, m), _ = lax.scan(step, (x, p), None, length=5)
    odds = density(q) - 0.5 * m @ m - density(x) + 0.5 * p @ p
    return jnp.where(jnp.log(jax.random.uniform(accept_key)) < odds, q, x), odds


add("hmc_by_hand", hamiltonian_monte_carlo, jax.random.PRNGKey(0), f32(16), tolerance=2e-3)
add("newton_by_hessian", lambda x: lax.fori_loop(0, 4, lambda _, v: v - jnp.linalg.solve(jax.hessian(lambda u: jnp.sum(jnp.cosh(u)) + 0.5 * jnp.sum(u[:-1] * u[1:]))(v), jax.grad(lambda u: jnp.sum(jnp.cosh(u)) + 0.5 * jnp.sum(u[:-1] * u[1:]))(v)), x), f32(8), tolerance=1e-3)
