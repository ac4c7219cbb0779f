"""Checkpoints of orbax, flax and equinox. unchanged.py runs it by JAX alone and by ranks in turns: each restores what the other has saved."""
import importlib.util
import os
import shutil
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

here = os.path.abspath("checkpoints")
mesh = Mesh(np.array(jax.devices()), ("x",))
split, whole = NamedSharding(mesh, P("x")), NamedSharding(mesh, P())
state = {"params": {"w": jax.device_put(jnp.arange(48.0).reshape(24, 2), split), "b": jnp.ones(3)}, "step": jnp.int32(4), "host": np.arange(3), "n": 5}
abstract = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=split) if np.ndim(x) == 2 else x, state)


def sums(tree):
    return jax.tree.map(lambda x: float(np.sum(x)), tree)


def of_orbax():
    import orbax.checkpoint as ocp
    options = ocp.CheckpointManagerOptions(max_to_keep=2, save_interval_steps=2)
    if os.path.exists(f"{here}/steps"):  # of the run before
        print("found", sums(ocp.StandardCheckpointer().restore(f"{here}/standard", abstract)))
        with ocp.CheckpointManager(f"{here}/steps", options=options) as manager:
            print("found", manager.all_steps(), sums(manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(state["params"]))))
    shutil.rmtree(here, ignore_errors=True)
    with ocp.StandardCheckpointer() as checkpointer:
        checkpointer.save(f"{here}/standard", state)
        checkpointer.wait_until_finished()
        restored = checkpointer.restore(f"{here}/standard", abstract)
        print("restored", restored["params"]["w"].sharding.spec, sums(restored), jnp.dot(restored["params"]["w"].T, restored["params"]["w"]))
        print("without a tree", sums(checkpointer.restore(f"{here}/standard")))
        for call in (lambda: checkpointer.restore(f"{here}/none"), lambda: checkpointer.save(f"{here}/standard", state)):
            try:
                call()
            except Exception as error:
                print(type(error).__name__)
    with ocp.CheckpointManager(f"{here}/steps", options=options) as manager:
        print("saved", [manager.save(n, args=ocp.args.StandardSave(jax.tree.map(lambda x, n=n: x + n, state["params"]))) for n in range(7)])
        manager.wait_until_finished()
        print(manager.latest_step(), manager.all_steps(), sums(manager.restore(4)))
    print(sorted(os.listdir(f"{here}/steps")))
    of_trees = ocp.PyTreeCheckpointer()
    of_trees.save(f"{here}/tree", state)
    types = jax.tree.map(lambda x: ocp.ArrayRestoreArgs(sharding=whole, dtype=jnp.bfloat16) if np.ndim(x) == 2 else ocp.RestoreArgs(), state)
    restored = of_trees.restore(f"{here}/tree", restore_args=types)["params"]["w"]
    print("as", restored.dtype, restored.sharding.spec, restored.sum())
    with tempfile.TemporaryDirectory() as folder:
        of_trees.save(f"{folder}/tree", state["params"])
        with ocp.CheckpointManager(folder + "/steps", options=options) as manager:
            manager.save(0, args=ocp.args.StandardSave(state["params"]))
            manager.wait_until_finished()
            print("temporary", sums(of_trees.restore(f"{folder}/tree")), sums(manager.restore(0)))
    manager = ocp.CheckpointManager(f"{here}/best", item_names=("state", "more"), options=ocp.CheckpointManagerOptions(best_fn=lambda m: m["loss"], best_mode="min", max_to_keep=1))
    for n in range(3):
        manager.save(n, args=ocp.args.Composite(state=ocp.args.StandardSave({"a": jnp.full(3, n)}), more=ocp.args.JsonSave({"epoch": n})), metrics={"loss": abs(n - 1.0)})
    manager.wait_until_finished()
    best = manager.restore(manager.best_step(), args=ocp.args.Composite(state=ocp.args.StandardRestore(), more=ocp.args.JsonRestore()))
    print("best", manager.best_step(), best["state"], best["more"])


def of_flax():
    from flax import serialization
    from flax.training import checkpoints
    for n in range(4):
        checkpoints.save_checkpoint(f"{here}/flax", state["params"], step=n, keep=2, overwrite=True)
    print("flax", sorted(os.listdir(f"{here}/flax")), sums(checkpoints.restore_checkpoint(f"{here}/flax", state["params"])))
    print(sums(serialization.from_bytes(state["params"], serialization.to_bytes(state["params"]))))


def of_equinox():
    import equinox as eqx
    layer = eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(0))
    eqx.tree_serialise_leaves(f"{here}/layer.eqx", layer)
    other = eqx.tree_deserialise_leaves(f"{here}/layer.eqx", eqx.nn.Linear(3, 2, key=jax.random.PRNGKey(1)))
    print("equinox", bool(eqx.tree_equal(layer, other)), os.path.getsize(f"{here}/layer.eqx"))


for name, run in (("orbax", of_orbax), ("flax", of_flax), ("equinox", of_equinox)):
    if importlib.util.find_spec(name):
        os.makedirs(here, exist_ok=True)
        run()
