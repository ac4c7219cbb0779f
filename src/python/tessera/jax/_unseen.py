"""Traces whose values a program must not see: a text of a tracer ends the trace, and what was printed meanwhile is not."""
import contextlib
import io
import sys

from jax._src.interpreters import partial_eval


class LooksAtTracer(Exception):
    """A traced function makes a text of a value that is not there yet."""


_depth = [0]


def _ending(text_of):
    def text(self, *args):
        if _depth[0]:
            raise LooksAtTracer
        return text_of(self, *args)
    return text


for _name in ("__repr__", "__str__", "__format__"):
    setattr(partial_eval.DynamicJaxprTracer, _name, _ending(getattr(partial_eval.DynamicJaxprTracer, _name)))


@contextlib.contextmanager
def unseen_tracers():
    """Within it the text of a tracer raises LooksAtTracer; output is written at its end, if nothing was raised."""
    stdout, sys.stdout = sys.stdout, io.StringIO()
    _depth[0] += 1
    try:
        yield
        stdout.write(sys.stdout.getvalue())
    finally:
        _depth[0] -= 1
        sys.stdout = stdout
