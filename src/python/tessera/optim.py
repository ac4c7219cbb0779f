"""Optimizers, schedules and clipping for trees of parameters; formulas and defaults are Optax's.

    adam = ts.optim.Adam(rate=1e-3)
    state = adam.start(parameters)
    step = ts.jit(ts.optim.train_step(adam, loss), donate_argnums=(0, 1))
    parameters, state, value = step(parameters, state, x, y)
"""
import collections as _collections

from . import _core
from ._core.optim import Schedule, constant, cosine_decay, exponential_decay, join, linear, warmup_cosine_decay  # noqa: F401
from ._transforms import value_and_grad as _value_and_grad

__all__ = ["Adam", "AdamState", "Schedule", "Sgd", "SgdState", "clip_by_global_norm", "constant", "cosine_decay", "exponential_decay", "global_norm", "join",
           "linear", "train_step", "warmup_cosine_decay"]

_o = _core.optim
SgdState = _collections.namedtuple("SgdState", "velocity steps")
AdamState = _collections.namedtuple("AdamState", "mean square steps")


def _leaves_like(tree, gradients, call):
    leaves, definition = _core.tree.flatten(tree)
    given, structure = _core.tree.flatten(gradients)
    if not structure == definition:
        raise _core.errors.ArgumentError(f"{call} at {_core.here()}: the gradients are {structure}, the parameters {definition}")
    return leaves, given, definition


class Sgd:
    """Stochastic gradient descent, with momentum if that is not 0; nesterov looks ahead."""

    def __init__(self, rate=0.1, momentum=0.0, nesterov=False):
        self._rule = _o.Sgd(rate, momentum, nesterov)

    def start(self, parameters):
        """The state before the first step, with the parameters' layouts."""
        leaves, definition = _core.tree.flatten(parameters)
        velocity, steps = self._rule.start(leaves)
        return SgdState(None if velocity is None else definition.unflatten(velocity), steps)

    def update(self, gradients, state, parameters):
        """(parameters, state) after one more step. Not collective: records."""
        leaves, given, definition = _leaves_like(parameters, gradients, "Sgd.update")
        velocity = None if state.velocity is None else _core.tree.flatten(state.velocity)[0]
        after, velocity, steps = self._rule.update(given, velocity, state.steps, leaves)
        return definition.unflatten(after), SgdState(None if velocity is None else definition.unflatten(velocity), steps)


class Adam:
    """Adam; with weight_decay AdamW. keep_mean and keep_square are b1 and b2 of the paper."""

    def __init__(self, rate=1e-3, keep_mean=0.9, keep_square=0.999, epsilon=1e-8, weight_decay=0.0):
        self._rule = _o.Adam(rate, keep_mean, keep_square, epsilon, weight_decay)

    def start(self, parameters):
        """The state before the first step, with the parameters' layouts."""
        leaves, definition = _core.tree.flatten(parameters)
        mean, square, steps = self._rule.start(leaves)
        return AdamState(definition.unflatten(mean), definition.unflatten(square), steps)

    def update(self, gradients, state, parameters):
        """(parameters, state) after one more step. Not collective: records."""
        leaves, given, definition = _leaves_like(parameters, gradients, "Adam.update")
        kept = (_core.tree.flatten(state.mean)[0], _core.tree.flatten(state.square)[0], state.steps)
        after, mean, square, steps = self._rule.update(given, *kept, leaves)
        return definition.unflatten(after), AdamState(definition.unflatten(mean), definition.unflatten(square), steps)


def global_norm(tree):
    """sqrt of the sum of |x|^2 over all elements of all leaves: a scalar."""
    return _o.global_norm(_core.tree.flatten(tree)[0])


def clip_by_global_norm(gradients, largest):
    """The gradients, scaled down to a global norm of `largest` if theirs is larger."""
    leaves, definition = _core.tree.flatten(gradients)
    return definition.unflatten(_o.clip_by_global_norm(leaves, float(largest)))


def train_step(optimizer, loss, largest_norm=0.0):
    """A training step for jit: (parameters, state, *data) -> (parameters, state, loss before the step)."""
    def step(parameters, state, *data):
        value, gradients = _value_and_grad(loss)(parameters, *data)
        if largest_norm > 0:
            gradients = clip_by_global_norm(gradients, largest_norm)
        return (*optimizer.update(gradients, state, parameters), value)
    return step
