"""Functions of packages on top of JAX, each where the package is installed."""
import functools

import numpy as np
import jax
import jax.numpy as jnp
from jax import lax

from functions import a, add, f32, loss, made_once, params


def chained(optax, chain, p, x, y):
    """Three steps of a chain, as one scan of its state."""
    def step(carry, _):
        values, state = carry
        value, gradient = jax.value_and_grad(loss)(values, x, y)
        updates, state = chain.update(gradient, state, values)
        return (optax.apply_updates(values, updates), state), value
    (values, _), losses = lax.scan(step, (p, chain.init(p)), None, length=3)
    return values, losses


def with_optax():
    import optax
    for name in ("sgd", "adam", "adamw", "rmsprop", "adagrad", "lamb", "lion", "adabelief", "novograd", "yogi", "radam", "sm3", "noisy_sgd", "amsgrad", "nadam"):
        make = getattr(optax, name)

        def step(p, x, y, make=make):
            optimizer = make(1e-2)
            state, values = optimizer.init(p), p
            for _ in range(2):
                updates, state = optimizer.update(jax.grad(loss)(values, x, y), state, values)
                values = optax.apply_updates(values, updates)
            return values
        add("optax_" + name, step, params, a, f32(24, 4), tolerance=2e-3)
    labels = np.arange(24) % 16
    add("optax_cross_entropy", lambda x: optax.softmax_cross_entropy_with_integer_labels(x, labels).mean(), a)
    add("optax_huber", lambda x: optax.huber_loss(x).sum(), a)
    add("optax_clip", lambda x: optax.clip_by_global_norm(0.5).update(x, optax.EmptyState())[0], a)
    chains = {"clip_schedule": optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(), optax.scale_by_schedule(optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 10)), optax.scale(-1.0)),
              "weight_decay": optax.chain(optax.add_decayed_weights(1e-2), optax.trace(0.9, nesterov=True), optax.scale(-0.01)),
              "lookahead": optax.chain(optax.centralize(), optax.scale_by_rms(), optax.ema(0.9), optax.scale(-0.01)),
              "several_steps": optax.MultiSteps(optax.adam(1e-2), every_k_schedule=2),
              "by_label": optax.partition({"w": optax.adam(1e-2), "b": optax.sgd(1e-1)}, [("w", "b"), ("w", "b")])}
    for name, chain in chains.items():
        add("optax_chain_" + name, functools.partial(chained, optax, chain), params, a, f32(24, 4), tolerance=2e-3)
    add("optax_cosine", lambda n: optax.cosine_decay_schedule(0.1, 100)(n), 7)


def with_flax():
    from flax import linen as nn

    class Net(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.relu(nn.Dense(32)(x))
            return nn.Dense(4)(nn.LayerNorm()(x))

    class Cnn(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.max_pool(nn.relu(nn.Conv(8, (3, 3))(x)), (2, 2), (2, 2))
            return nn.Dense(5)(x.reshape((x.shape[0], -1)))

    class Attention(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.MultiHeadDotProductAttention(num_heads=4)(x)

    class Recurrent(nn.Module):
        @nn.compact
        def __call__(self, x):
            return nn.RNN(nn.LSTMCell(12))(x)

    class Encoder(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = x + nn.SelfAttention(num_heads=2)(nn.LayerNorm()(x))
            return x + nn.Dense(16)(nn.gelu(nn.Dense(32)(nn.LayerNorm()(x))))

    class Residual(nn.Module):
        @nn.compact
        def __call__(self, x):
            y = nn.GroupNorm(4)(nn.Conv(8, (3, 3), (2, 2))(x))
            return nn.avg_pool(nn.swish(y) + nn.Conv(8, (1, 1), (2, 2))(x), (2, 2), (2, 2)).mean((1, 2))

    for name, net, x in (("encoder", Encoder(), f32(4, 6, 16)), ("residual", Residual(), f32(8, 12, 12, 3)), ("mlp", Net(), a), ("cnn", Cnn(), f32(8, 12, 12, 3)), ("attention", Attention(), f32(4, 6, 16)), ("lstm", Recurrent(), f32(4, 6, 8))):
        weights = made_once("flax_" + name, lambda net=net, x=x: net.init(jax.random.PRNGKey(0), x))
        add("flax_" + name, lambda w, x, net=net: net.apply(w, x), weights, x, tolerance=1e-3)
        add(f"flax_{name}_gradient", jax.grad(lambda w, x, net=net: jnp.sum(net.apply(w, x) ** 2)), weights, x, tolerance=1e-2)
        add(f"flax_{name}_init", lambda k, x, net=net: net.init(k, x), jax.random.PRNGKey(0), x)


def with_equinox():
    import equinox as eqx
    for name, layer, x in (("conv", eqx.nn.Conv2d(3, 4, 3, key=jax.random.PRNGKey(2)), f32(8, 3, 12, 12)), ("attention", eqx.nn.MultiheadAttention(2, 16, key=jax.random.PRNGKey(3)), f32(8, 6, 16))):
        kept, rest = eqx.partition(layer, eqx.is_array)
        call = (lambda one: lambda v: one(v, v, v) if isinstance(one, eqx.nn.MultiheadAttention) else one(v))
        add("equinox_" + name, lambda w, x, rest=rest, call=call: jax.vmap(call(eqx.combine(w, rest)))(x), jax.tree_util.tree_map(np.asarray, kept), x, tolerance=1e-3)
    net = eqx.nn.MLP(16, 4, 32, 2, key=jax.random.PRNGKey(0))
    weights, static = eqx.partition(net, eqx.is_array)
    weights = jax.tree_util.tree_map(np.asarray, weights)
    add("equinox_mlp", lambda w, x: jax.vmap(eqx.combine(w, static))(x), weights, a)
    add("equinox_gradient", jax.grad(lambda w, x: jnp.sum(jax.vmap(eqx.combine(w, static))(x) ** 2)), weights, a, tolerance=1e-3)
    gru, gru_static = eqx.partition(eqx.nn.GRUCell(16, 8, key=jax.random.PRNGKey(1)), eqx.is_array)
    add("equinox_gru", lambda w, x: lax.scan(lambda h, t: (eqx.combine(w, gru_static)(t, h), h), jnp.zeros(8), x), jax.tree_util.tree_map(np.asarray, gru), a)


def with_diffrax():
    import diffrax
    for name in ("Euler", "Tsit5", "Dopri5", "Heun"):
        solver = getattr(diffrax, name)()
        add("diffrax_" + name.lower(), lambda y, solver=solver: diffrax.diffeqsolve(diffrax.ODETerm(lambda t, u, _: -u * jnp.sin(u)), solver, 0.0, 1.0, 0.05, y).ys, np.abs(f32(8)), tolerance=1e-3)
    stepped = lambda y, adjoint: diffrax.diffeqsolve(diffrax.ODETerm(lambda t, u, _: -u * jnp.sin(u)), diffrax.Tsit5(), 0.0, 0.5, 0.1, y, adjoint=adjoint).ys  # noqa: E731
    add("diffrax_gradient", jax.grad(lambda y: jnp.sum(stepped(y, diffrax.RecursiveCheckpointAdjoint()) ** 2)), np.abs(f32(8)), tolerance=2e-3)
    add("diffrax_saved", lambda y: diffrax.diffeqsolve(diffrax.ODETerm(lambda t, u, k: -k * u), diffrax.Tsit5(), 0.0, 1.0, 0.1, y, args=0.5, saveat=diffrax.SaveAt(ts=jnp.linspace(0.0, 1.0, 5))).ys, np.abs(f32(8)), tolerance=1e-3)
    add("diffrax_implicit", lambda y: diffrax.diffeqsolve(diffrax.ODETerm(lambda t, u, _: -20.0 * u), diffrax.Kvaerno3(), 0.0, 0.2, 0.02, y, stepsize_controller=diffrax.PIDController(1e-3, 1e-5)).ys, np.abs(f32(4)), tolerance=2e-3)
    add("diffrax_adaptive", lambda y: diffrax.diffeqsolve(diffrax.ODETerm(lambda t, u, _: -u), diffrax.Tsit5(), 0.0, 1.0, None, y, stepsize_controller=diffrax.PIDController(1e-3, 1e-5)).ys, np.abs(f32(8)), tolerance=1e-3)


def with_jaxopt():
    import jaxopt
    for name in ("GradientDescent", "LBFGS", "NonlinearCG"):
        make = getattr(jaxopt, name)
        add("jaxopt_" + name.lower(), lambda x, make=make: make(lambda v: jnp.sum((v - 2) ** 2), maxiter=15).run(x).params, f32(6), tolerance=1e-2)


    ridge = lambda w, l2, x, y: jnp.mean((x @ w - y) ** 2) + l2 * jnp.sum(w ** 2)  # noqa: E731
    add("jaxopt_bfgs", lambda x: jaxopt.BFGS(lambda v: jnp.sum(jnp.cosh(v - 1)), maxiter=10).run(x).params, f32(6), tolerance=1e-2)
    add("jaxopt_implicit_gradient", jax.grad(lambda l2, x, y: jnp.sum(jaxopt.GradientDescent(ridge, maxiter=60, implicit_diff=True).run(jnp.zeros(16), l2, x, y).params ** 2)), np.float32(0.3), a, f32(24), tolerance=1e-2)
    add("jaxopt_projected", lambda x: jaxopt.ProjectedGradient(lambda v: jnp.sum((v - 2) ** 2), jaxopt.projection.projection_simplex, maxiter=15).run(jnp.abs(x) / jnp.sum(jnp.abs(x))).params, f32(6), tolerance=1e-2)
    add("jaxopt_levenberg_marquardt", lambda x: jaxopt.LevenbergMarquardt(lambda v: jnp.sin(v) - 0.3 * v, maxiter=8).run(x).params, np.abs(f32(6)) * 0.3, tolerance=1e-2)


def with_numpyro():
    import numpyro
    import numpyro.distributions as dist
    from numpyro.infer import HMC, NUTS, Trace_ELBO
    from numpyro.infer.util import log_density

    def model(x, y):
        w = numpyro.sample("w", dist.Normal(jnp.zeros(16), 1.0).to_event(1))
        numpyro.sample("y", dist.Bernoulli(logits=x @ w), obs=y)

    labels = (np.arange(24) % 2).astype("i")
    for name, make in (("hmc", lambda: HMC(model, step_size=0.05, num_steps=4, adapt_step_size=False, adapt_mass_matrix=False)), ("nuts", lambda: NUTS(model, step_size=0.1, max_tree_depth=3, adapt_step_size=False))):
        def sampled(key, x, make=make):
            kernel = make()
            state = kernel.init(key, 0, None, (x, labels), {})
            state = lax.fori_loop(0, 2, lambda _, s: kernel.sample(s, (x, labels), {}), state)
            return state.z["w"], state.potential_energy
        add("numpyro_" + name, sampled, jax.random.PRNGKey(3), a, tolerance=5e-3)

    def guide(x, y):
        numpyro.sample("w", dist.Normal(numpyro.param("m", jnp.zeros(16)), jnp.exp(numpyro.param("s", jnp.zeros(16)))).to_event(1))

    def elbo(key, x):
        values = {"m": jnp.ones(16) * 0.1, "s": jnp.zeros(16)}
        return jax.value_and_grad(lambda v: Trace_ELBO(4).loss(key, v, model, guide, x, labels))(values)

    add("numpyro_elbo", elbo, jax.random.PRNGKey(5), a, tolerance=2e-3)
    add("numpyro_density", lambda w, x: log_density(model, (x, labels), {}, {"w": w})[0], f32(16), a)
    add("numpyro_gradient", jax.grad(lambda w, x: log_density(model, (x, labels), {}, {"w": w})[0]), f32(16), a, tolerance=1e-3)
    for name, args in (("Normal", (0.0, 1.0)), ("Gamma", (2.0, 3.0)), ("StudentT", (3.0,)), ("Laplace", (0.0, 1.0)), ("Beta", (2.0, 2.0))):
        d = getattr(dist, name)(*args)
        add("numpyro_" + name.lower(), lambda k, d=d: (d.sample(k, (5,)), d.log_prob(d.sample(k, (5,)))), jax.random.PRNGKey(2))


packages = {"optax": with_optax, "flax": with_flax, "equinox": with_equinox, "diffrax": with_diffrax, "jaxopt": with_jaxopt, "numpyro": with_numpyro}
