# SPDX-License-Identifier: Apache-2.0
"""In the reference, each option that `**options` stands for has its name and its help."""

import ast
import builtins
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import griffe

SOURCES = Path(__file__).parents[1] / "pydag"


def _texts() -> Any:
    """The module of the options, by itself, since the package isn't installed here."""
    spec = importlib.util.spec_from_file_location("options", SOURCES / "public" / "options.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _of_wrappers(texts: Any) -> Any:
    """The options that are assigned to `OF_WRAPPERS`, in a module that imports the package."""
    for node in ast.parse((SOURCES / "jaxinterop" / "help.py").read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OF_WRAPPERS":
            assert isinstance(node.value, ast.Call)
            return texts.KnownOptions(*map(ast.literal_eval, node.value.args))
    raise LookupError("OF_WRAPPERS")


def _typed() -> dict[str, dict[str, ast.expr]]:
    """The options of each class that lists some, with their types."""
    found: dict[str, dict[str, ast.expr]] = {}
    for file in (SOURCES / "typing.py", SOURCES / "jaxinterop" / "typed.py"):
        for node in ast.parse(file.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                inherited = [
                    found.get(base.id, {}) for base in node.bases if isinstance(base, ast.Name)
                ]
                own = {
                    line.target.id: line.annotation
                    for line in node.body
                    if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name)
                }
                found[node.name] = {
                    name: type_ for each in (*inherited, own) for name, type_ in each.items()
                }
    return found


def _linked(type_: ast.expr, func: griffe.Function) -> griffe.Expr | None:
    """The type of an option, with links to what it names, in a module that may not import that."""
    expression = griffe.get_annotation(type_, parent=func.module)
    if isinstance(expression, griffe.Expr):
        for name in expression.iterate(flat=True):
            if isinstance(name, griffe.ExprName):
                name.parent = None if hasattr(builtins, name.name) else "pydag.typing"
    return expression


def _star(func: griffe.Function) -> str:
    """The type of the last parameter, such as `Unpack[FlattenOptions]`."""
    return str(func.parameters[-1].annotation) if len(func.parameters) else ""


class Options(griffe.Extension):
    """Puts the options in the place of `**options`."""

    def __init__(self) -> None:
        super().__init__()
        self.texts, self.typed = _texts(), _typed()
        self.known = {
            "with_options": self.texts.OF_CORE,
            "compiled": self.texts.OF_CORE,
            "with_wrapper_options": _of_wrappers(self.texts),
        }

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Called by griffe for each function that it has read, overloads apart."""
        for overload in func.overloads or []:
            if not self._name_options(overload) and _star(overload).startswith("Unpack["):
                # The function itself names these options; what it returns is said by the overload.
                func.returns, func.overloads = overload.returns, None
                break
        self._name_options(func)
        self._explain(func, func)

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called by griffe for each class that it has read."""
        if "__init__" in cls.members:
            self._explain(cls, cls.members["__init__"])

    def _explain(self, thing: griffe.Function | griffe.Class, called: Any) -> None:
        """Complete the docstring with the help of the options that `called` has."""
        known = self._known(thing)
        if known is not None and thing.docstring is not None:
            names = [p.name for p in called.parameters]
            text = inspect.cleandoc(thing.docstring.value)
            thing.docstring.value = self.texts.explained(text, names, known)

    def _known(self, thing: griffe.Function | griffe.Class) -> Any:
        names = [re.split(r"[.(]", str(d.value).split("(")[0])[-1] for d in thing.decorators]
        return next((self.known[name] for name in names if name in self.known), None)

    def _name_options(self, func: griffe.Function) -> bool:
        """Put the options into the signature; False where it has no `**options` of ours."""
        star = func.parameters[-1] if len(func.parameters) else None
        options = self.typed.get(_star(func)[len("Unpack[") : -1])
        is_wrapper = func.path.startswith("pydag.jaxinterop.")
        defaults = self.known["with_wrapper_options" if is_wrapper else "with_options"].defaults
        if options is None or not options.keys() <= defaults.keys():
            return False
        kind = griffe.ParameterKind.keyword_only
        named = [
            griffe.Parameter(
                name, annotation=_linked(type_, func), kind=kind, default=repr(defaults[name])
            )
            for name, type_ in options.items()
        ]
        order = list(defaults)

        def place(parameter: griffe.Parameter) -> int:
            is_option = parameter.kind is kind and parameter.name in order
            return 1 + order.index(parameter.name) if is_option else 0

        others = [p for p in func.parameters if p is not star]
        func.parameters = griffe.Parameters(*sorted([*others, *named], key=place))
        return True
