# SPDX-License-Identifier: Apache-2.0
"""The gradient of an expression of pymbolic's, which is a DAG, beside pymbolic's own derivative.

Predators and prey live on for some steps, and the number of prey at the end is one expression of
their rates: each step uses the one before several times, so it has few objects and very many paths.
pymbolic's own `differentiate` follows the paths, once for each variable. Here a fold lists the
objects, and one pass back along the list collects the derivatives by all variables at once, each a
DAG that shares its parts with the others. The classes are pymbolic's own; the example registers
which of their attributes are children.

    python examples/derivatives.py [--steps 300] [--out out/derivatives.png]
"""

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from pymbolic import differentiate
from pymbolic.mapper.evaluator import evaluate as pymbolic_evaluate
from pymbolic.primitives import ExpressionNode, Power, Product, Quotient, Sum, Variable
from tqdm import tqdm

import pydag

for cls in (Sum, Product):
    pydag.register_fields(cls, ("children",))
pydag.register_fields(Quotient, ("numerator", "denominator"))
pydag.register_fields(Power, ("base", "exponent"))
# By functions: a Variable keeps its hash in an attribute, once it was asked for.
pydag.register_pydag_node(Variable, lambda x: ((), x.name), lambda name, _: Variable(name))

RATES = {"prey": 1.0, "predators": 0.5, "birth": 1.1, "hunt": 0.8, "growth": 0.4, "death": 0.5}
STEP = 0.02
PATIENCE = 1.0  # seconds: pymbolic isn't asked for more steps after it took longer

# --- the expression ---


def prey_after(steps: int) -> tuple[Any, dict[str, Any]]:
    """The number of prey after so many steps, and the variables that it depends on."""
    variables = {name: Variable(name) for name in RATES}
    x, y, birth, hunt, growth, death = variables.values()
    for _ in range(steps):
        caught = hunt * x * y / (1 + x)  # the predators' hunger is limited
        x, y = x + STEP * (birth * x - caught), y + STEP * (growth * caught - death * y)
    return x, variables


# --- its derivatives ---


def times(a: Any, b: Any) -> Any:
    return b if a == 1 else a if b == 1 else Product((a, b))


def with_slopes(node: Any) -> list[tuple[Any, Any]]:
    """The parts of a node, each with the derivative of the node by it."""
    if isinstance(node, Sum):
        return [(child, 1) for child in node.children]
    if isinstance(node, Product):
        return [
            (child, others[0] if len(others) == 1 else Product(others))
            for i, child in enumerate(node.children)
            for others in [node.children[:i] + node.children[i + 1 :]]
        ]
    if isinstance(node, Quotient):
        square = Power(node.denominator, 2)
        slope = Quotient(Product((-1, node.numerator)), square)
        return [(node.numerator, Quotient(1, node.denominator)), (node.denominator, slope)]
    if isinstance(node, Power) and not isinstance(node.exponent, ExpressionNode):
        return [(node.base, Product((node.exponent, Power(node.base, node.exponent - 1))))]
    if isinstance(node, Variable):
        return []
    raise TypeError(f"no derivative of {type(node).__name__} is known")


def gradient(expression: Any, variables: Mapping[str, Any]) -> dict[str, Any]:
    """The derivative by each variable, in time for the objects of the expression."""
    nodes: list[Any] = []  # parts before what they are parts of
    listed = {ExpressionNode: lambda node, _: nodes.append(node), object: lambda *_: None}
    pydag.dag_fold(listed, expression)

    found: dict[int, list[Any]] = {id(expression): [1]}  # derivatives by each node, to be added up
    totals = {}
    for node in reversed(nodes):
        terms = found.pop(id(node))
        total = totals[id(node)] = terms[0] if len(terms) == 1 else Sum(tuple(terms))
        for part, slope in with_slopes(node):
            if isinstance(part, ExpressionNode):
                found.setdefault(id(part), []).append(times(total, slope))
    derivatives = {name: totals.get(id(node), 0) for name, node in variables.items()}
    result: dict[str, Any] = pydag.dag_intern(derivatives)
    return result


# --- what it comes to ---


def product(factors: Any) -> Any:
    result = 1.0
    for factor in factors:
        result *= factor
    return result


def evaluate(expression: Any, values: Mapping[str, float]) -> Any:
    """The numbers that expressions stand for; each part is computed once."""
    return pydag.dag_fold(
        {
            Sum: lambda _, x: sum(x[0]),
            Product: lambda _, x: product(x[0]),
            Quotient: lambda _, x: x[0] / x[1],
            Power: lambda _, x: x[0] ** x[1],
            Variable: lambda node, _: values[node.name],
            tuple: lambda _, x: x,
            dict: lambda node, x: dict(zip(sorted(node), x, strict=True)),
            object: lambda number, _: number,
        },
        expression,
    )


def measured(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def by_pymbolic(expression: Any, variables: Mapping[str, Any]) -> dict[str, Any]:
    return {name: differentiate(expression, node) for name, node in variables.items()}


def largest_difference(a: Mapping[str, float], b: Mapping[str, float]) -> float:
    return max(abs(a[name] - b[name]) / (1 + abs(b[name])) for name in b)


def picture(path: Path, ours: dict[int, float], theirs: dict[int, float]) -> None:
    figure = Figure(figsize=(7, 4.5), layout="constrained")  # no pyplot: needs no display
    axes = figure.add_subplot()
    axes.plot(*zip(*theirs.items(), strict=True), "o-", label="pymbolic's differentiate, by paths")
    axes.plot(*zip(*ours.items(), strict=True), "s-", label="a fold of pydag's, by objects")
    axes.set(title="The gradient by six variables", xlabel="steps", ylabel="seconds")
    axes.set(xscale="log", yscale="log")
    axes.legend()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description="Derivatives of an expression that is a DAG.")
    parser.add_argument("--steps", type=int, default=300, help="of the model (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("out/derivatives.png"))
    args = parser.parse_args()
    if args.steps < 1:
        parser.error("there must be at least one step")

    ours: dict[int, float] = {}
    theirs: dict[int, float] = {}
    difference = 0.0
    sizes = sorted({*range(1, min(args.steps, 8)), *(n for n in (10, 30, 100) if n < args.steps)})
    gradient(*prey_after(1))  # what is made once, at the first call, is not timed
    for steps in tqdm([*sizes, args.steps], unit="model"):
        expression, variables = prey_after(steps)
        derivatives, ours[steps] = measured(gradient, expression, variables)
        if max(theirs.values(), default=0.0) < PATIENCE:
            expected, theirs[steps] = measured(by_pymbolic, expression, variables)
            values = {n: pymbolic_evaluate(e, RATES) for n, e in expected.items()}
            difference = max(difference, largest_difference(evaluate(derivatives, RATES), values))

    # The expression at the end of the loop, once more by finite differences.
    numbers = evaluate(derivatives, RATES)
    changed = {}
    for name, rate in RATES.items():
        up, down = (evaluate(expression, {**RATES, name: rate + d}) for d in (1e-5, -1e-5))
        changed[name] = (up - down) / 2e-5
    written, result = pydag.dag_structure(expression), pydag.dag_structure(derivatives)
    last = max(theirs)
    print(f"""
steps                                {args.steps}
objects and paths of the expression  {written.num_nodes:,} and {float(written.num_paths):.0e}
objects of its six derivatives       {result.num_nodes:,}
time for them                        {1000 * ours[args.steps]:.1f} ms
after {last} steps                        {1000 * ours[last]:.2f} ms; pymbolic {theirs[last]:.2f} s
largest difference from pymbolic's   {difference:.0e}
and from finite differences          {largest_difference(numbers, changed):.0e}
""")
    for name, slope in numbers.items():
        print(f"  prey at the end by {name:<10}{slope:>10.4f}")
    picture(args.out, ours, theirs)
    print(f"\nThe picture is in {args.out}")


if __name__ == "__main__":
    main()
