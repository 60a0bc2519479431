# SPDX-License-Identifier: Apache-2.0
"""Every transformation of the installed optax: on a tied model, and on its distinct arrays."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from optax import contrib

import pydag
from pydag import jaxinterop as pj

# Those that can't be called with a learning rate alone, or without arguments.
ARGUMENTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "adaptive_grad_clip": lambda masks: optax.adaptive_grad_clip(0.1),
    "add_decayed_weights": lambda masks: optax.add_decayed_weights(0.1, masks["flags"]),
    "add_noise": lambda masks: optax.add_noise(0.1, 0.5, 0),
    "apply_if_finite": lambda masks: optax.apply_if_finite(optax.adam(0.1), 3),
    "apply_every": lambda masks: optax.apply_every(2),
    "chain": lambda masks: optax.chain(optax.clip(1.0), optax.adam(0.1)),
    "clip": lambda masks: optax.clip(0.5),
    "clip_by_block_rms": lambda masks: optax.clip_by_block_rms(0.5),
    "clip_by_global_norm": lambda masks: optax.clip_by_global_norm(0.5),
    "conditionally_mask": lambda masks: optax.conditionally_mask(optax.adam(0.1), lambda n: n > 0),
    "conditionally_transform": lambda masks: optax.conditionally_transform(optax.adam(0.1),
        lambda n: n > 0),
    "maybe_update": lambda masks: optax.maybe_update(optax.adam(0.1), lambda n: n > 0),
    "ema": lambda masks: optax.ema(0.9),
    "flatten": lambda masks: optax.flatten(optax.adam(0.1)),
    "freeze": lambda masks: optax.freeze(masks["others"]),
    "masked": lambda masks: optax.masked(optax.adam(0.1), masks["flags"]),
    "MultiSteps": lambda masks: optax.MultiSteps(optax.adam(0.1), 2),
    "multi_transform": lambda masks: optax.multi_transform({"a": optax.sgd(0.1),
        "z": optax.adam(0.1)}, masks["labels"]),
    "named_chain": lambda masks: optax.named_chain(("one", optax.clip(1.0)),
        ("two", optax.sgd(0.1))),
    "noisy_sgd": lambda masks: optax.noisy_sgd(0.1, key=0),
    "stateless": lambda masks: optax.stateless(lambda u,
        p: jax.tree.map(lambda g, x: g + 0.1 * x, u, p)),
    "stateless_with_tree_map": lambda masks: optax.stateless_with_tree_map(lambda g,
        x: g + 0.1 * x),
    "partition": lambda masks: optax.partition({"a": optax.sgd(0.1), "z": optax.set_to_zero()},
        masks["labels"]),
    "scale": lambda masks: optax.scale(0.5),
    "scale_by_learning_rate": lambda masks: optax.scale_by_learning_rate(0.1),
    "scale_by_schedule": lambda masks: optax.scale_by_schedule(optax.linear_schedule(1.0, 0.1, 3)),
    "trace": lambda masks: optax.trace(0.9),
    "contrib.mechanize": lambda masks: contrib.mechanize(optax.adam(0.1)),
    "contrib.muon": lambda masks: contrib.muon(0.1),
    "contrib.sam": lambda masks: contrib.sam(optax.sgd(0.1), optax.sgd(0.05), sync_period=2),
    "contrib.schedule_free": lambda masks: contrib.schedule_free(optax.sgd(0.1), 0.1),
    "inject_hyperparams": lambda masks: optax.inject_hyperparams(optax.adamw,
        static_args="mask")(0.1, mask=masks["flags"]),
}  # fmt: skip

# Not transformations to be tried, or tried elsewhere.
LEFT_OUT = {
    "optimistic_adam": "deprecated for optimistic_adam_v2, and warns",
    "lookahead": "trains a pair of models; a TypeError",
    "measure_with_ema": "takes measures, which are no part of training",
    "contrib.scale_by_muon": "takes matrices alone; it is a part of contrib.muon",
    "GradientTransformationExtraArgs": "a class of transformations",
    "GradientTransformation": "a class of transformations",
    "inject_stateful_hyperparams": "another, deprecated name of inject_hyperparams",
    "selective_transform": "takes no function as a mask",
    "skip_not_finite": "a condition for MultiSteps, not a transformation",
    "skip_large_updates": "a condition for MultiSteps, not a transformation",
    "monitor": "takes measures, which are no part of training",
    "snapshot": "takes measures, which are no part of training",
    "with_extra_args_support": "gives the transformation that it is given",
    "contrib.split_real_and_imaginary": "for complex parameters",
    "contrib.dpsgd": "needs gradients per example",
    "contrib.differentially_private_aggregate": "needs gradients per example",
    "differentially_private_aggregate": "needs gradients per example",
    "dpsgd": "needs gradients per example",
    "contrib.hutchinson_estimator_diag_hessian": "needs the loss as an object of its own",
    "contrib.sophia": "needs the loss as an object of its own",
    "contrib.scale_by_sophia": "needs the loss as an object of its own",
}


MASKS: dict[str, Any] = {
    "flags": {"w": True, "copy": True, "b": False, "width": False},
    "others": {"w": False, "copy": False, "b": True, "width": False},
    "labels": {"w": "a", "copy": "a", "b": "z", "width": "z"},
}


def made(name: str, *, is_ours: bool = False) -> Any:
    """A transformation of this name; None for another function.

    Args:
        is_ours: Whether masks and labels are for `pj.optimizer`; else for a dict with "w" and "b".
    """
    if name in ARGUMENTS:
        return ARGUMENTS[name](
            {
                key: pj.mask(tree) if is_ours else {name: tree[name] for name in ("b", "w")}
                for key, tree in MASKS.items()
            }
        )
    function = functools.reduce(getattr, name.split("."), optax)
    for arguments in ((), (0.1,)):
        try:
            found = function(*arguments)
        except Exception:
            continue
        if isinstance(found, optax.GradientTransformation | optax.GradientTransformationExtraArgs):
            return found
    return None


def names() -> list[str]:
    """The public functions of optax and of optax.contrib that say that they make one."""
    found = []
    for module, prefix in ((optax, ""), (contrib, "contrib.")):
        for name, function in vars(module).items():
            if name.startswith("_") or not callable(function) or prefix + name in LEFT_OUT:
                continue
            try:
                returns = str(inspect.signature(function).return_annotation)
            except (TypeError, ValueError):
                continue
            if "GradientTransformation" in returns or prefix + name in ARGUMENTS:
                found.append(prefix + name)
    return found


W, B = jnp.array([[1.0, -2.0], [0.5, 3.0]]), jnp.array([0.25, -1.0])


def distinct_loss(p: Any) -> Any:
    return jnp.sum((jnp.array([1.0, 2.0]) @ p["w"] + p["b"]) ** 2) + jnp.sum(p["w"] ** 2)


@pytest.mark.parametrize("name", names())
def test_like_bare_optax(name: str) -> None:
    """Three steps give the numbers that they give for each array once, and ties stay."""
    tx = made(name)
    if tx is None:
        pytest.fail(f"{name} needs arguments: name them in ARGUMENTS, or a reason in LEFT_OUT")
    model: Any = {"b": B, "copy": W, "w": W}
    ours = pj.optimizer(made(name, is_ours=True))
    theirs: Any = {"b": B, "w": W}
    state, expected = ours.init(model), tx.init(theirs)
    takes_extra = isinstance(tx, optax.GradientTransformationExtraArgs) or name == "MultiSteps"
    takes_extra = takes_extra and name != "contrib.sam"
    for _ in range(3):
        value, gradient = pj.value_and_grad(distinct_loss)(model)
        extra = {"value": value, "grad": gradient, "value_fn": distinct_loss} if takes_extra else {}
        updates, state = ours.update(gradient, state, model, **extra)
        kept = {id(x) for x in jax.tree.leaves(state)}
        assert kept.isdisjoint(map(id, pydag.dag_leaves((gradient, updates))))
        model = pj.apply_updates(model, updates)
        value, plain = jax.value_and_grad(distinct_loss)(theirs)
        if takes_extra:
            extra = {"value": value, "grad": plain, "value_fn": distinct_loss}
        changes, expected = tx.update(plain, expected, theirs, **extra)
        theirs = optax.apply_updates(theirs, changes)
    assert model["w"] is model["copy"]
    np.testing.assert_allclose(model["w"], theirs["w"], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(model["b"], theirs["b"], rtol=1e-6, atol=1e-7)
