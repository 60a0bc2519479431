# SPDX-License-Identifier: Apache-2.0
"""Functions that a file may name by itself: they compute an array from arrays, and do nothing else.

They are listed one by one. An attribute of a module may be anything: `numpy.load` unpickles,
`numpy.memmap` and `numpy.savetxt` touch files, `jax.numpy.vectorize` calls its argument.
"""


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


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
tril triu
vstack where
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
"""The names by module."""
