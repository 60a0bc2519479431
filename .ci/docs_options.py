# SPDX-License-Identifier: Apache-2.0
"""In the reference, each option that `**options` stands for has its name and its help."""

import ast
import importlib.util
import inspect
from pathlib import Path
from typing import Any

import griffe

SOURCES = Path(__file__).parents[1] / "pydag"


def _load(name: str) -> Any:
    """A module of the package by itself, since the package isn't installed here."""
    spec = importlib.util.spec_from_file_location(name, SOURCES / "public" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _typed() -> dict[str, dict[str, str]]:
    """The options of each class in `pydag.typing` that lists some, with their types."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse((SOURCES / "typing.py").read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            inherited = [
                found.get(base.id, {}) for base in node.bases if isinstance(base, ast.Name)
            ]
            own = {
                line.target.id: ast.unparse(line.annotation)
                for line in node.body
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
            }
            found[node.name] = {
                name: text for each in (*inherited, own) for name, text in each.items()
            }
    return found


class Options(griffe.Extension):
    """Puts the options in the place of `**options`."""

    def __init__(self) -> None:
        super().__init__()
        self.texts, self.typed = _load("options"), _typed()

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Called by griffe for each function that it has read."""
        star = next((p for p in func.parameters if str(p.annotation).startswith("Unpack[")), None)
        if star is None:
            return
        options = self.typed[str(star.annotation).removeprefix("Unpack[").removesuffix("]")]
        kind = griffe.ParameterKind.keyword_only
        named = [
            griffe.Parameter(
                name, annotation=text, kind=kind, default=repr(self.texts.DEFAULTS[name])
            )
            for name, text in options.items()
        ]
        order = list(self.texts.DEFAULTS)

        def place(parameter: griffe.Parameter) -> int:
            is_option = parameter.kind is kind and parameter.name in order
            return 1 + order.index(parameter.name) if is_option else 0

        others = [p for p in func.parameters if p is not star]
        func.parameters = griffe.Parameters(*sorted([*others, *named], key=place))
        if func.docstring is not None:
            names = [p.name for p in func.parameters]
            text = inspect.cleandoc(func.docstring.value)
            func.docstring.value = self.texts.explained(text, names)
