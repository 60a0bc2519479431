# SPDX-License-Identifier: Apache-2.0
"""An optimizer for graphs of einsums, made of a fold and two rewrites.

Its input are expressions as somebody writes them, or as a program writes them out: einsums of
einsums, scalars anywhere, every term of a sum for itself. It moves the scalars out, fuses an einsum
into the one that uses it (unless there are several, which then share it), contracts in the order
that opt_einsum finds, and makes equal contractions one. What comes out is a graph of the same
classes, which JAX runs; before and after are drawn by `pydag.view`.

* `matrices`: a batch of products of two matrices and a vector, written from the wrong end.
* `tensor product`: of scalar and vector features, weighted, as equivariant networks have it.
* `coupled cluster`: the doubles residual of quantum chemistry, each permutation written out.

    python examples/einsum_graph.py [--occupied 4] [--virtual 10] [--channels 32]
                                    [--out out/einsum_graph.html]
"""

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, permutations
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import opt_einsum as oe
from tqdm import tqdm

import pydag
import pydag.jaxinterop as pj

# --- expressions ---


class Node:
    """A part of an expression. Parts are shared by being one object."""

    def __init_subclass__(cls) -> None:
        pydag.register_fields(cls)


STATIC = {"static": True}  # a field that says what the node is, and isn't computed with


@dataclass(frozen=True, eq=False)
class Input(Node):
    name: str = field(metadata=STATIC)
    array: Any

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.array.shape)


@dataclass(frozen=True, eq=False)
class Einsum(Node):
    subscripts: str = field(metadata=STATIC)
    shape: tuple[int, ...] = field(metadata=STATIC)
    operands: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Scale(Node):
    factor: float = field(metadata=STATIC)
    operand: Any

    @property
    def shape(self) -> Any:
        return self.operand.shape


@dataclass(frozen=True, eq=False)
class Add(Node):
    terms: tuple[Any, ...]

    @property
    def shape(self) -> Any:
        return self.terms[0].shape


def einsum(subscripts: str, *operands: Any) -> Einsum:
    inputs, output = split(subscripts)
    pairs = zip(inputs, operands, strict=True)
    sizes = {letter: n for names, x in pairs for letter, n in zip(names, x.shape, strict=True)}
    return Einsum(subscripts, tuple(sizes[letter] for letter in output), operands)


def split(subscripts: str) -> tuple[list[str], str]:
    inputs, output = subscripts.split("->")
    return inputs.split(","), output


def evaluate(expression: Any) -> Any:
    """The arrays of an expression. Each part is computed once, as often as it may be used."""
    return pydag.dag_fold(
        {
            Einsum: lambda node, x: jnp.einsum(node.subscripts, *x[0], optimize=False),
            Scale: lambda node, x: node.factor * x[0],
            Add: lambda _, x: sum(x[0][1:], x[0][0]),
            Input: lambda _, x: x[0],
            tuple: lambda _, x: x,
            object: lambda array, _: array,
        },
        expression,
    )


# --- the optimizer ---


def optimize(expression: Any) -> Any:
    """An expression of the same value that takes fewer operations."""
    expression = pydag.dag_intern(expression)
    expression = pydag.dag_rewrite({Scale: merged_factors, Einsum: without_factors}, expression)
    expression = pydag.dag_rewrite({Einsum: contracted}, fused(expression))
    return pydag.dag_intern(expression)


def merged_factors(node: Scale) -> Any:
    """A factor of a factor is one."""
    operand, factor = node.operand, node.factor
    if isinstance(operand, Scale):
        operand, factor = operand.operand, operand.factor * factor
    return operand if factor == 1 else Scale(factor, operand)


def without_factors(node: Einsum) -> Any:
    """An einsum is linear in each operand: their factors come out, to where they are merged."""
    factors = [x.factor for x in node.operands if isinstance(x, Scale)]
    if not factors:
        return node
    bare = tuple(x.operand if isinstance(x, Scale) else x for x in node.operands)
    return merged_factors(Scale(math.prod(factors), replace(node, operands=bare)))


def fused(expression: Any) -> Any:
    """With einsums written into those that use them, but for shared ones: those stay one."""
    shared = {id(found.object) for found in pydag.shared_objects(expression)}

    def fuse(node: Einsum, children: Any) -> Einsum:
        inputs, output = split(node.subscripts)
        unused = unused_letters(node.subscripts)
        terms: list[str] = []
        operands: list[Any] = []
        for names, original, operand in zip(inputs, node.operands, children[0], strict=True):
            if isinstance(operand, Einsum) and id(original) not in shared:
                inner, inner_output = split(operand.subscripts)
                renamed = dict(zip(inner_output, names, strict=True))
                summed = sorted(set("".join(inner)) - set(inner_output))
                renamed |= {letter: next(unused) for letter in summed}
                terms += ["".join(renamed[letter] for letter in term) for term in inner]
                operands += operand.operands
            else:
                terms.append(names)
                operands.append(operand)
        return einsum(f"{','.join(terms)}->{output}", *operands)

    return pydag.dag_fold(
        {
            Einsum: fuse,
            Scale: lambda node, x: replace(node, operand=x[0]),
            Add: lambda node, x: replace(node, terms=x[0]),
            tuple: lambda _, x: x,
            object: lambda node, _: node,
        },
        expression,
    )


def unused_letters(subscripts: str) -> Iterator[str]:
    symbols = map(oe.get_symbol, count())
    return (letter for letter in symbols if letter not in subscripts)


def contracted(node: Einsum) -> Any:
    """Two operands at a time, in the order that opt_einsum finds."""
    operands = list(node.operands)
    for positions, _, subscripts, *_ in best_path(node).contraction_list:
        operands.append(in_normal_form(subscripts, [operands.pop(i) for i in positions]))
    return operands[0]


def best_path(node: Einsum) -> Any:
    shapes = [x.shape for x in node.operands]
    return oe.contract_path(node.subscripts, *shapes, shapes=True, optimize="auto")[1]


def in_normal_form(subscripts: str, operands: Sequence[Any]) -> Any:
    """A contraction as equal ones are written, too: its letters go by the alphabet.

    Where the output is to be in another order, it is transposed behind.
    """
    inputs, output = split(subscripts)

    def named(order: Sequence[int]) -> tuple[str, list[str], str, Sequence[int]]:
        letters = dict.fromkeys("".join(inputs[i] for i in order))
        names = {letter: oe.get_symbol(i) for i, letter in enumerate(letters)}
        terms = ["".join(names[letter] for letter in inputs[i]) for i in order]
        labels = [label(operands[i]) for i in order]
        return ",".join(terms), labels, "".join(names[letter] for letter in output), order

    terms, _, wanted, order = min(named(order) for order in permutations(range(len(operands))))
    natural = "".join(sorted(wanted))
    x = operands[order[0]]
    if len(operands) > 1 or terms != natural:
        x = einsum(f"{terms}->{natural}", *(operands[i] for i in order))
    return x if wanted == natural else einsum(f"{natural}->{wanted}", x)


def label(node: Any) -> str:
    """Orders the two operands of a contraction, the same ones always in the same way."""
    if isinstance(node, Einsum):
        return node.subscripts + "".join(x.name for x in node.operands if isinstance(x, Input))
    return str(getattr(node, "name", ""))


# --- what an expression costs ---


def einsums(expression: Any) -> list[Einsum]:
    """The einsums of an expression, each once."""
    found: list[Einsum] = []
    pydag.dag_fold(
        {Einsum: lambda node, _: found.append(node), object: lambda *_: None}, expression
    )
    return found


def operations(node: Einsum) -> int:
    """How many a contraction takes as it is written; a transposition takes none."""
    shapes, pairs = [x.shape for x in node.operands], [(0, 1)] * (len(node.operands) - 1)
    if not pairs:
        return 0
    path = oe.contract_path(node.subscripts, *shapes, shapes=True, optimize=pairs)
    return int(path[1].opt_cost)


def term_by_term(expression: Any) -> list[Einsum]:
    """What opt_einsum is given where it is asked for each term by itself."""
    return einsums(fused(pydag.dag_rewrite({Einsum: without_factors}, expression)))


def seconds(run: Callable[[], Any], repeats: int = 5) -> float:
    times = []
    for _ in range(1 + repeats):  # the first one compiles
        start = time.perf_counter()
        for array in jax.tree.leaves(run()):
            array.block_until_ready()
        times.append(time.perf_counter() - start)
    return min(times)


def row(title: str, expression: Any) -> str:
    found = einsums(expression)
    products = str(pj.make_jaxpr(evaluate)(expression)).count("dot_general")
    compiled = pj.jit(evaluate)
    return (
        f"  {title:<22}{len([node for node in found if len(node.operands) > 1]):>8}"
        f"{sum(map(operations, found)):>14,}{products:>9}"
        f"{max(math.prod(node.shape) for node in found):>10,}"
        f"{1000 * seconds(lambda: compiled(expression)):>10.2f}"
    )


# --- three expressions ---


def inputs(seed: int, **shapes: tuple[int, ...]) -> list[Input]:
    random = np.random.default_rng(seed)
    return [
        Input(name, jnp.asarray(random.normal(size=shape) / math.prod(shape) ** 0.25, jnp.float32))
        for name, shape in shapes.items()
    ]


def matrices(batch: int = 1000) -> Any:
    a, b, x = inputs(0, a=(batch, 4, 5), b=(batch, 5, 8), x=(batch, 8))
    product = einsum("zij,zjk->zik", Scale(2.0, a), b)
    return Scale(0.5, einsum("zik,zk->zi", product, Scale(3.0, x)))


def tensor_product(channels: int, batch: int = 64) -> Any:
    """Scalars and vectors times scalars and vectors, by all kinds of products."""
    n = channels
    s, v, t, w = inputs(1, s=(batch, n), v=(batch, n, 3), t=(batch, n), w=(batch, n, 3))
    weights = inputs(2, ss=(n, n, n), vv=(n, n, n), sv=(n, n, n), vs=(n, n, n), vxv=(n, n, n))
    cross = Input("cross", jnp.asarray(np.cross(np.eye(3)[:, None], np.eye(3)[None]), jnp.float32))
    ss, vv, sv, vs, vxv = weights
    dots = einsum("zui,zvi->zuv", v, w)
    scalars = Add(
        (
            einsum("zu,zv,uvc->zc", s, t, ss),
            Scale(3**-0.5, einsum("zuv,uvc->zc", dots, vv)),
        )
    )
    vectors = Add(
        (
            einsum("zu,zvi,uvc->zci", s, w, sv),
            einsum("zui,zv,uvc->zci", v, t, vs),
            Scale(2**-0.5, einsum("zui,zvj,ijk,uvc->zck", v, w, cross, vxv)),
        )
    )
    lengths = einsum("zuv,zuv->z", dots, dots)
    return scalars, vectors, lengths


def coupled_cluster(occupied: int, virtual: int) -> Any:
    """The residual of the doubles amplitudes `t`, from integrals of pairs of orbitals."""
    o, v = occupied, virtual
    t, oovv, oooo, vvvv, ovvo = inputs(
        3,
        t=(o, o, v, v),
        oovv=(o, o, v, v),
        oooo=(o, o, o, o),
        vvvv=(v, v, v, v),
        ovvo=(o, v, v, o),
    )
    terms: list[Any] = [oovv]

    def add(factor: float, subscripts: str, *operands: Any, swaps: tuple[str, ...] = ()) -> None:
        """A term, and with the opposite sign what it is when a pair of indices changes places."""
        written = [(factor, subscripts)]
        for pair in swaps:
            swapped = str.maketrans(pair, pair[::-1])
            for sign, text in list(written):
                names, output = text.split("->")
                written.append((-sign, f"{names.translate(swapped)}->{output}"))
        terms.extend(Scale(sign, einsum(text, *operands)) for sign, text in written)

    add(1 / 2, "mnab,mnij->ijab", t, oooo)
    add(1 / 2, "ijef,abef->ijab", t, vvvv)
    add(1, "imae,mbej->ijab", t, ovvo, swaps=("ij", "ab"))
    add(1 / 8, "mnab,ijef,mnef->ijab", t, t, oovv)
    add(1 / 8, "ijef,mnab,mnef->ijab", t, t, oovv)
    add(-1 / 2, "ijae,mnbf,mnef->ijab", t, t, oovv, swaps=("ab",))
    add(-1 / 2, "imab,jnef,mnef->ijab", t, t, oovv, swaps=("ij",))
    add(-1 / 2, "imae,jnfb,mnef->ijab", t, t, oovv, swaps=("ij", "ab"))
    return Add(tuple(terms))


# --- the report ---


def main() -> None:
    parser = argparse.ArgumentParser(description="Optimize graphs of einsums.")
    parser.add_argument("--occupied", type=int, default=4, help="orbitals (%(default)s)")
    parser.add_argument("--virtual", type=int, default=10, help="orbitals (%(default)s)")
    parser.add_argument("--channels", type=int, default=32, help="of features (%(default)s)")
    parser.add_argument(
        "--out", type=Path, default=Path("out/einsum_graph.html"), help="or .svg, .dot, .txt"
    )
    args = parser.parse_args()
    if min(args.occupied, args.virtual, args.channels) < 1:
        parser.error("there must be at least one of each")

    expressions = {
        "matrices": matrices(),
        "tensor product": tensor_product(args.channels),
        "coupled cluster": coupled_cluster(args.occupied, args.virtual),
    }
    report = []
    for name, written in tqdm(expressions.items(), unit="expression"):
        optimized = optimize(written)
        alone = sum(int(best_path(node).opt_cost) for node in term_by_term(written))
        error = jax.tree.map(
            lambda x, y: float(jnp.max(jnp.abs(x - y)) / jnp.max(jnp.abs(x))),
            pj.jit(evaluate)(written),
            pj.jit(evaluate)(optimized),
        )
        report += [
            f"\n{name:<24}einsums{'operations':>14}{'in jaxpr':>9}{'largest':>10}{'ms':>10}",
            row("as it is written", written),
            f"  {'opt_einsum, by terms':<22}{'':>8}{alone:>14,}",
            row("optimized", optimized),
            f"  the results differ by  {max(jax.tree.leaves(error)):.0e}",
        ]
    print("\n".join(report))

    for when, expression in (("before", matrices()), ("after", optimize(matrices()))):
        print(f"\nthe matrices {when}, as JAX sees them\n\n{pj.make_jaxpr(evaluate)(expression)}")
    print("\nThe graphs of the coupled cluster are in")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    cluster = expressions["coupled cluster"]
    for when, expression in (("before", cluster), ("after", optimize(cluster))):
        path = args.out.with_stem(f"{args.out.stem}_{when}")
        pydag.view(expression).save(path)
        print(f"  {path}")


if __name__ == "__main__":
    main()
