"""The twenty programs of tests/advise/programs.hpp at sizes of one machine, and the measurement of their layouts on the ranks of a job (scripts/judge_layouts).

    mpirun -n 4 python3 layout_programs.py NAME OUTPUT.json MESH ROUNDS MOST SCALE
"""
import itertools
import json
import os
import sys
import time

import numpy as np
import tessera as ts
from tessera import fft


def cg_step(a, x, b):
    r = b - a.T @ (a @ x)
    return x + r * (ts.sum(r * r) / ts.sum(r * (a.T @ (a @ r))))


def power_step(a, x):
    y = a @ x
    return y / ts.sqrt(ts.sum(y * y))


def attention(q, k, v):
    return ts.softmax(ts.matmul(q, ts.swapaxes(k, -1, -2)) * 0.1, -1) @ v


def linear_gradient(w, x, y):
    return w - 0.1 * ts.grad(lambda w: ts.mean(ts.square(x @ w - y)))(w)


def network_gradient(w, u, x):
    dw, du = ts.grad(lambda w, u: ts.mean(ts.square(ts.maximum(x @ w, 0) @ u)), argnums=(0, 1))(w, u)
    return ts.sum(w - 0.1 * dw) + ts.sum(u - 0.1 * du)


def convolution(a, b):
    return ts.real(fft.ifft2(fft.fft2(a) * fft.fft2(b)))


def normalized(a, scale):
    return (a - ts.mean(a, axis=0, keepdims=True)) / ts.std(a, axis=0, keepdims=True) * scale


product = lambda a, b: a @ b  # noqa: E731

PROGRAMS = {
    "product, square": (product, (768, 768), (768, 768)),
    "product, long inner dim": (product, (192, 16384), (16384, 192)),
    "product, tall": (product, (16384, 192), (192, 192)),
    "Gram matrix": (lambda a: a.T @ a, (16384, 256)),
    "three products": (lambda a, b, c: a @ b @ c, (384, 512), (512, 1024), (1024, 384)),
    "product and sum": (lambda a, b, c: a @ b + c, (768, 768), (768, 768), (768, 768)),
    "FFT of rows": (lambda a: ts.abs(fft.fft(a)), (1024, 1024)),
    "FFT of columns": (lambda a: ts.abs(fft.fft(a, axis=0)), (1024, 1024)),
    "FFT in 2-D": (lambda a: ts.abs(fft.fft2(a)), (1024, 1024)),
    "convolution by FFT": (convolution, (512, 1024), (512, 1024)),
    "FFT in 3-D": (lambda a: ts.abs(fft.fftn(a)), (128, 64, 128)),
    "CG step": (cg_step, (8192, 512), (512,), (512,)),
    "power step": (power_step, (2048, 2048), (2048,)),
    "attention": (attention, (64, 96, 64), (64, 96, 64), (64, 96, 64)),
    "attention of one sequence": (attention, (768, 256), (768, 256), (768, 256)),
    "gradient step, linear": (linear_gradient, (256, 256), (4096, 256), (4096, 256)),
    "gradient step, network": (network_gradient, (256, 384), (384, 256), (2048, 256)),
    "softmax of rows": (lambda a: ts.softmax(a, -1), (512, 4096)),
    "normalized columns": (normalized, (4096, 512), (512,)),
    "sorted columns": (lambda a, b: ts.sort(a, 0) + b, (4096, 256), (4096, 256)),
}


def layouts(mesh, shape):
    """Every way to give each axis of the mesh to one dim or to none, without empty blocks."""
    axes, sizes = mesh.axis_names, dict(mesh.shape)
    for dims in itertools.product(range(-1, len(shape)), repeat=len(axes)):
        spec = [tuple(a for a, d in zip(axes, dims) if d == dim) for dim in range(len(shape))]
        blocks = [1] * len(shape)
        for axis, dim in zip(axes, dims):
            if dim >= 0:
                blocks[dim] *= sizes[axis]
        if all(b == 1 or b <= n for b, n in zip(blocks, shape)):
            yield ts.NamedSharding(mesh, ts.P(*(axes or None for axes in spec)))


def text(shardings):
    return ", ".join(str(s.spec) for s in shardings)


class Measurement:
    def __init__(self, mesh, name, scale):
        self.fun, *shapes = PROGRAMS[name]
        self.shapes = [tuple(n * scale if n >= 64 else n for n in shape) for shape in shapes]
        self.values = [ts.random.normal(ts.random.key(n), shape) for n, shape in enumerate(self.shapes)]
        self.mesh, self.jitted = mesh, ts.jit(self.fun)
        self.is_undisturbed, self.priority = "LAYOUTS_UNDISTURBED" in os.environ, os.getpriority(os.PRIO_PROCESS, 0)

    def placed(self, shardings):
        return [ts.device_put(v, s).block_until_ready() for v, s in zip(self.values, shardings)]

    def seconds(self, arrays):
        """From a point that all ranks have reached to one that all have reached, by rank 0's clock, so that all choose alike."""
        ts.multihost.sync_global_devices("placed")
        if self.is_undisturbed:
            os.setpriority(os.PRIO_PROCESS, 0, -20)
        ts.multihost.sync_global_devices("start")
        start = time.perf_counter()
        result = self.jitted(*arrays)
        result.block_until_ready()
        ts.multihost.sync_global_devices("end")
        if self.is_undisturbed:
            os.setpriority(os.PRIO_PROCESS, 0, self.priority)
        return float(ts.multihost.broadcast_one_to_all(np.array([time.perf_counter() - start]))[0])

    def candidates(self, most):
        """Combinations with their predictions, the least first: all, or of more than `most` the first half of that and as many spread over the rest."""
        found = []
        for choice in itertools.product(*(list(layouts(self.mesh, shape)) for shape in self.shapes)):
            arrays = [ts.device_put(ts.zeros(shape), s) for shape, s in zip(self.shapes, choice)]
            found.append((self.jitted.lower(*arrays).compile().explanation().predicted_seconds, choice))
        found.sort(key=lambda c: c[0])
        if len(found) <= most:
            return found, len(found)
        rest = found[most // 2:]
        return found[: most // 2] + rest[:: -(-len(rest) // (most - most // 2))], len(found)


def median(samples):
    return sorted(samples)[len(samples) // 2]


def measured(name, mesh, rounds, most, scale):
    m = Measurement(mesh, name, scale)
    advised = ts.advise(m.fun, *(ts.zeros(shape) for shape in m.shapes), meshes=[mesh], best=1, most_plans=100_000).best[0]
    candidates, combinations = m.candidates(most)
    own = text(advised.shardings)
    times = {}
    for n in range(rounds + 1):  # the first one compiles
        for predicted, choice in candidates:
            arrays = m.placed(choice)
            taken = m.seconds(arrays)
            if n > 0:
                times.setdefault(text(choice), []).append(taken)
    # The least of many noisy medians is too low: the best three and the advised one are measured again, by turns.
    choices = {text(choice): (predicted, choice) for predicted, choice in candidates}
    finalists = sorted(times, key=lambda t: median(times[t]))[:3]
    finalists += [own] if own not in finalists else []
    arrays = {t: m.placed(choices[t][1]) for t in finalists}
    again = {t: [] for t in finalists}
    for n in range(4 * rounds + 1):
        for t in finalists[n % len(finalists):] + finalists[: n % len(finalists)]:
            taken = m.seconds(arrays[t])
            if n > 0:
                again[t].append(taken)
    best = min(finalists, key=lambda t: median(again[t]))
    return {
        "name": name, "combinations": combinations, "measured": len(candidates), "advised": own, "best": best,
        "advised_s": median(again[own]), "best_s": median(again[best]), "advised_least_s": min(again[own]), "best_least_s": min(again[best]),
        "predicted_advised_s": choices[own][0], "predicted_best_s": choices[best][0],
        "candidates": [{"layouts": t, "predicted_s": choices[t][0], "median_s": median(s), "least_s": min(s)} for t, s in times.items()],
    }


def main():
    name, path, mesh_text, *counts = sys.argv[1:]
    axes = [word.split("=") for word in mesh_text.split(",")]
    mesh = ts.make_mesh(tuple(int(n) for _, n in axes), tuple(a for a, _ in axes))
    row = measured(name, mesh, *map(int, counts))
    if ts.is_main_process():
        with open(path, "w") as file:
            json.dump(row, file)


if __name__ == "__main__":
    main()
