# SPDX-License-Identifier: Apache-2.0
"""Functions by their names, `module:qualname`, for files.

A file may name any function. pydag finds only functions that the reader of the file named, and
functions of JAX and NumPy that are known to do no more than compute an array. It imports nothing
for that, and never looks up an attribute of a module by a name in the file.
"""

import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

Function = Callable[..., Any]


def found_under(module: str, path: str) -> Any:
    """The object of a loaded module with this name; None if there is none. It runs no code."""
    found: Any = sys.modules.get(module)
    holder: Any = None
    for part in path.split("."):
        holder = found
        found = vars(found).get(part) if isinstance(found, type | types.ModuleType) else None
    if isinstance(found, staticmethod):
        return found.__func__
    if isinstance(found, classmethod) and isinstance(holder, type):
        return found.__get__(None, holder)
    return found


def _known_name(f: Function) -> str | None:
    """The name of a function in the list, which is written whatever its `__name__` is."""
    for module, names in KNOWN.items():
        for name in names:
            if found_under(module, name) is f:
                return f"{module}:{name}"
    return None


def function_name(f: Function) -> str | None:
    """The name by which a function can be found; None if there is none, as of a lambda."""
    known = _known_name(f)
    if known is not None:
        return known
    module = getattr(f, "__module__", None)
    path = getattr(f, "__qualname__", None) or getattr(f, "__name__", None)
    if not isinstance(module, str) or not isinstance(path, str):
        return None
    found = found_under(module, path)
    is_same = found is f or (isinstance(f, types.MethodType) and found == f)
    return f"{module}:{path}" if is_same else None


class UnaskedFunctionError(ValueError):
    """A file names a function that its reader didn't name."""

    def __init__(self, name: str, where: str = "") -> None:
        self.name = name
        short = name.rpartition(":")[2][:80]
        super().__init__(
            f"{where}the file names a function that isn't one of the array functions that are "
            f"known: {name[:120]}\n"
            f"  If you trust the file with it, name it, functions=[{short}]; or fill a model that "
            "you have built, like=."
        )


class FunctionNames:
    """The functions that a file may use.

    Raises:
        TypeError: One of them is not a function that can be found by its name.
    """

    def __init__(self, asked: Iterable[Function] = ()) -> None:
        self._asked: dict[str, Function] = {}
        for f in asked:
            name = function_name(f) if callable(f) else None
            if name is None:
                raise TypeError(
                    f"functions= takes functions that can be found by their names, got {f!r}: "
                    "define it in a module, outside of other functions"
                )
            self._asked[name] = f

    def find(self, name: str) -> Function:
        """The function with this name.

        Raises:
            UnaskedFunctionError: The file may not use such a function.
        """
        asked = self._asked.get(name)
        if asked is not None:
            return asked
        module, _, path = name.partition(":")
        found = found_under(module, path) if path in KNOWN.get(module, ()) else None
        if found is None:
            raise UnaskedFunctionError(name)
        function: Function = found
        return function


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


# The functions that a file may name by itself: they compute an array from arrays, and do nothing
# else. They are listed one by one, as an attribute of a module may be anything: `numpy.load`
# unpickles, `numpy.memmap` touches files, `jax.numpy.vectorize` calls its argument.
# Element by element.
_UFUNCS = _names("""
abs absolute add arccos arccosh arcsin arcsinh arctan arctan2 arctanh cbrt ceil conj conjugate
copysign cos cosh deg2rad degrees divide equal exp exp2 expm1 fabs float_power floor floor_divide
fmax fmin fmod greater greater_equal heaviside hypot isfinite isinf isnan less less_equal log log10
log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor maximum minimum mod
multiply negative nextafter not_equal positive power rad2deg radians reciprocal remainder rint sign
signbit sin sinh sqrt square subtract tan tanh true_divide trunc
""")
# The same entries in another arrangement, a part of them, or several arrays joined.
_ARRANGED = _names("""
array asarray astype atleast_1d atleast_2d atleast_3d broadcast_to column_stack concatenate diag
diagflat diagonal dstack expand_dims flip fliplr flipud hstack matrix_transpose moveaxis
permute_dims ravel reshape roll rollaxis rot90 squeeze stack swapaxes take take_along_axis transpose
tril triu vstack where
""")
# Products, sums and functions of them.
_REDUCED = _names("""
all amax amin any argmax argmin argsort average clip convolve correlate cov cross cumprod cumsum
diff dot einsum inner interp kron linalg.cholesky linalg.det linalg.inv linalg.matrix_power
linalg.norm linalg.pinv linalg.qr linalg.solve matmul max mean median min nan_to_num nanmean nansum
outer prod real round sinc sort std sum tensordot trace trapezoid var vdot vecdot imag angle
""")
_NN = _names("""
celu elu gelu glu hard_sigmoid hard_silu hard_swish hard_tanh leaky_relu log_sigmoid log_softmax
logsumexp mish relu relu6 selu sigmoid silu soft_sign softmax softplus sparse_plus
sparse_sigmoid squareplus standardize swish tanh
""")
_LAX = _names("""
abs add complex cos cumprod cumsum div erf erf_inv exp expm1 integer_pow lgamma log log1p logistic
max min mul neg pow reciprocal reshape rsqrt select sign sin sqrt square squeeze stop_gradient sub
tan tanh transpose
""")
_OF_NUMPY = _UFUNCS | _ARRANGED | _REDUCED
KNOWN: dict[str, frozenset[str]] = {
    "jax.numpy": _OF_NUMPY,
    "numpy": _OF_NUMPY,
    "jax.nn": _NN,
    "jax.lax": _LAX,
}
"""The names of these functions by module."""
