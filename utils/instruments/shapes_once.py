"""Make the types of Triton's interpreter once for each shape, not once for each value.

A kernel in the interpreter is slow because of its types, not because of its numbers. Triton makes
a new type for each value of each program, wraps its sizes in `constexpr` objects, writes its name,
and lists all dtypes of NumPy to find one of them. That takes more than half of a launch. The
functions here return the same types, with the same sizes and names. A launch puts them into
Triton's language, and then restores it (:mod:`utils.instruments.interpreter`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import triton.language as tl
from triton.runtime import interpreter


class _Shape(NamedTuple):
    sizes: Any  # the sizes as Triton's tuple of numbers, for a type
    numel: int
    begin: str  # the begin of the name of all types with this shape
    constants: Any  # the sizes as Triton's tuple of constants, for a value
    count: Any  # the number of elements as a constant


_core: Any = tl.core
_block, _tensor = _core.block_type.__init__, _core.tensor.__init__
_numpy_dtype: Any = interpreter._get_np_dtype
_broadcast: Any = interpreter.interpreter_semantic.broadcast_impl_value
_SCALAR = _core.tuple([]), _core.constexpr(1)
_WHOLE = {int}
_ADDRESS = np.dtype(np.uint64)
_shapes: dict[tuple, _Shape] = {}
_dtypes: dict[str, Any] = {}


def changes() -> list[tuple[Any, str, Any]]:
    """Return what a launch replaces while it runs: (namespace, name, value)."""
    return [
        (_core.block_type, "__init__", _init_block),
        (_core.tensor, "__init__", _init_tensor),
        (interpreter, "_get_np_dtype", _dtype_of),
        (interpreter.interpreter_semantic, "broadcast_impl_value", _fit),
        (interpreter.interpreter_builder, "create_broadcast", _spread),
    ]


def _init_block(self: Any, element_ty: Any, shape: Any) -> None:
    try:
        key = tuple([one.value if type(one) is _core.constexpr else one for one in shape])
        known = _shapes[key] if _WHOLE.issuperset(map(type, key)) else None
    except (KeyError, TypeError):
        known = None
    if known is None:  # a new shape, or no shape at all
        _block(self, element_ty, shape)  # raises Triton's own error
        sizes, constant = self.shape, _core.constexpr
        constants = _core.tuple([constant(size) for size in sizes])
        known = _Shape(sizes, self.numel, f"<{sizes}, ", constants, constant(self.numel))
        self._known = _shapes[tuple(sizes.values)] = known
        return
    self.element_ty, self._known = element_ty, known
    self.shape, self.numel = known.sizes, known.numel
    self.name = f"{known.begin}{element_ty}>"


def _init_tensor(self: Any, handle: Any, type: Any) -> None:
    if not type.is_block():
        self.shape, self.numel = _SCALAR
    elif known := getattr(type, "_known", None):
        self.shape, self.numel = known.constants, known.count
    else:  # made before the launch
        _tensor(self, handle, type)
        return
    self.handle, self.type, self.dtype = handle, type, type.scalar


def _dtype_of(type: Any) -> Any:
    one = type.element_ty if isinstance(type, _core.block_type) else type
    if isinstance(one, _core.pointer_type):
        return _ADDRESS
    if one.name not in _dtypes:
        _dtypes[one.name] = _numpy_dtype(one)
    return _dtypes[one.name]


def _fit(lhs: Any, rhs: Any) -> Any:
    left, right = lhs.type, rhs.type
    if left.is_block() and right.is_block() and left.shape is right.shape:
        return lhs, rhs
    return _broadcast(lhs, rhs)


def _spread(arg: Any, shape: Any) -> Any:
    data = np.empty(tuple(shape), arg.data.dtype)  # for small blocks faster than `broadcast_to`
    data[...] = arg.data
    return interpreter.TensorHandle(data, arg.dtype.scalar)
