"""The names of Python and of the libraries that the analysis treats in a special way."""

from __future__ import annotations

from grader.judging.learner_source import words

LIBRARIES = frozenset({"torch", "numpy", "utils", "einops", "triton"})
# Names that a snippet may use without an import: labs import them in their first cell.
CUSTOMARY = {
    "torch": "torch", "nn": "torch.nn", "F": "torch.nn.functional", "np": "numpy", "math": "math",
}  # fmt: skip
# Attributes and methods of a tensor that give numbers or words, not tensors.
PLAIN_ATTRIBUTES = words(
    "shape dtype device ndim itemsize nbytes size stride dim numel element_size item tolist "
    "strides storage_offset data_ptr is_contiguous is_floating_point training"
)
# Special names that a learner's class may define and use, without their underscores.
SAFE_DUNDERS = words(
    "init call name qualname doc class len iter next getitem setitem contains eq lt gt le ge ne "
    "hash bool repr str add radd iadd sub rsub isub mul rmul imul truediv rtruediv itruediv matmul "
    "rmatmul pow rpow neg pos abs invert and or xor mod rmod floordiv rfloordiv enter exit version "
    "post_init new float int index main all slots annotations format round"
)
# Special names of how an object keeps its attributes. Some exercises ask for code of that.
KEEPING = frozenset({"__dict__", "__setattr__", "__getattr__", "__delattr__"})
# Special global names that an answer may read.
SAFE_NAMES = frozenset({"__name__", "__doc__", "__class__", "__debug__", "__import__"})
# Attributes that give access to the inside of a function or frame.
INSIDES = words(
    "f_globals f_locals f_back f_builtins f_code gi_frame cr_frame ag_frame tb_frame func_globals "
    "gi_code co_code"
)
# Built-in functions that return only numbers, strings and the like.
GIVES_PLAIN = words(
    "isinstance issubclass hasattr callable id hash len print repr str range int float bool ord "
    "chr format dir slice object"
)
# Built-in functions that return a container of what they get.
COLLECTS = words("list tuple set frozenset iter reversed sorted map filter")
# Built-in functions that return one of the elements, or what arithmetic makes of them.
REDUCES = words("min max sum next any all abs pow round divmod")
# Methods that put their arguments into a container.
GROWS = words(
    "append add insert extend update appendleft extendleft setdefault push put put_nowait"
)
# A node of an operator to its special method, without underscores.
OPERATORS = {
    "Add": "add", "Sub": "sub", "Mult": "mul", "Div": "truediv", "Pow": "pow", "MatMult": "matmul",
    "Mod": "mod", "FloorDiv": "floordiv", "BitAnd": "and", "BitOr": "or", "BitXor": "xor",
    "LShift": "lshift", "RShift": "rshift",
}  # fmt: skip
