"""Lab 04, exercise 1: Which key wins?"""

import contextlib

import torch

from hood.judge.checks.exercise import ByHand, Case, Check, case
from utils.instruments import dispatch

from .shared import LISTENING

winning_key = Check(
    "winning_key",
    parts={"keys of a tensor": 1, "keys in a context": 2, "the winner": 1},
    reads="Keys of a tensor",
    reads_by_part={"keys in a context": "Keys of the thread"},
    by_hand=ByHand(
        because="the point is to know what each word of a description does to the keys",
        allow_names=LISTENING,
        forbid_names=frozenset(
            {
                "_dispatch_keys",
                "_dispatch_tls_local_include_set",
                "_dispatch_tls_local_exclude_set",
                "keys_of",
                "thread_keys",
                "decide",
            }
        ),
        # the part `the winner` needs no rule: the lab's text has the table
        parts=frozenset({"keys of a tensor", "keys in a context"}),
    ),
)

OPERATORS = {"mm": "aten::mm", "mul": "aten::mul.Tensor", "t": "aten::t"}
DTYPES = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int16",
    "uint8",
    "bool",
    "complex64",
)
CONTEXTS = ("no_grad", "inference_mode", "autocast")


def _real(tensor):
    """A tensor with this description. A tensor of a GPU is made on the CPU; only key names differ."""
    device = "meta" if tensor["device"] == "meta" else "cpu"
    dtype = getattr(torch, tensor["dtype"])
    with torch.inference_mode(tensor["inference"]):
        made = torch.ones(2, 2, dtype=dtype, device=device)
        made = made.conj() if tensor["conj"] else made
    return made.requires_grad_() if tensor["requires_grad"] else made


@contextlib.contextmanager
def _inside(contexts):
    ways = {
        "no_grad": torch.no_grad,
        "inference_mode": torch.inference_mode,
        "autocast": lambda: torch.autocast("cpu"),
    }
    with contextlib.ExitStack() as stack:
        for context in contexts:
            stack.enter_context(ways[context]())
        yield


def _named(key, device):
    return key.replace("CPU", "CUDA") if device == "cuda" else key


@winning_key.reference
class _:
    def call_keys(tensor, contexts):
        real = _real(tensor)
        with _inside(contexts):
            keys = dispatch.call_keys(real)
        return tuple(_named(key, tensor["device"]) for key in keys if key != "BackendSelect")

    def winner(op, keys):
        table = dispatch.table(OPERATORS[op])
        slots = [(key, table[key.replace("CUDA", "CPU")]) for key in keys]
        return next(key for key, slot in slots if not slot.fallthrough)


def described(device="cpu", dtype="float32", requires_grad=False, conj=False, inference=False):
    """A description of a tensor, in plain values. A conjugate tensor is complex."""
    return {
        "device": device,
        "dtype": "complex64" if conj else dtype,
        "requires_grad": requires_grad,
        "conj": conj,
        "inference": inference,
    }


KINDS = ("Autocast", "Autograd", "ADInplaceOrView", "Conjugate")
PLACES = {
    "[0]": "the result is not a tuple of names.",
    **{f"[1]['{kind}']": f"keys that begin with {kind}" for kind in KINDS},
    "[1]['backend']": "the backend, and all other names",
    "[2]": "the keys are right, but they are not ordered from the highest to the lowest.",
}


def _by_kind(keys):
    """Keys by kind, so that a report can name the missing kind, and then all keys in their order.
    """
    if not isinstance(keys, (tuple, list)) or not all(isinstance(key, str) for key in keys):
        return False, {}, keys
    found = {kind: [key for key in keys if key.startswith(kind)] for kind in KINDS}
    found["backend"] = [key for key in keys if not key.startswith(KINDS)]
    return True, found, list(keys)


@winning_key.cases
def _(draw):
    def keys_of_a_call(tensor, contexts):
        words = [tensor["dtype"], tensor["device"]]
        words += [word for word in ("requires_grad", "conj") if tensor[word]]
        words += ["made in inference mode"] if tensor["inference"] else []
        part = "keys in a context" if contexts else "keys of a tensor"
        shown = f"{', '.join(words)}; under {', '.join(contexts) or 'nothing'}"

        def play(subject):
            return _by_kind(subject["call_keys"](tensor, contexts))

        return Case(part, play, of="call_keys", shown=shown, places=PLACES)

    asked = [
        (described(), ()),
        (described("meta", dtype="float16"), ()),
        (described("cuda", dtype="int64"), ()),
        (described(dtype="complex64"), ()),
        (described(requires_grad=True), ()),
        (described(inference=True), ()),
        (described("meta", inference=True, conj=True), ()),
        (described("cuda", conj=True, requires_grad=True), ()),
        (described(requires_grad=True), ("no_grad",)),
        (described(), ("inference_mode",)),
        (described("cuda", dtype="bfloat16"), ("autocast",)),
        (described(dtype="float16"), ("autocast",)),
        (described("cuda", dtype="int64"), ("autocast",)),
        (described(dtype="float64"), ("autocast",)),
        (described(dtype="complex64"), ("autocast", "no_grad", "autocast")),
        (described(requires_grad=True), ("no_grad", "autocast")),
        (described("meta", dtype="float16"), ("autocast",)),
        (described("meta"), ("inference_mode",)),
        (described(dtype="int64"), ("no_grad",)),
        (described("cuda", inference=True), ("inference_mode",)),
        (described(inference=True), ("autocast",)),
        (described(inference=True), ("no_grad",)),
        (described(requires_grad=True), ("autocast", "inference_mode")),
        (described(conj=True, inference=True), ("no_grad", "inference_mode")),
        (described(), ("inference_mode", "no_grad")),
        (described(), ("autocast", "no_grad")),
        (described("cuda", conj=True, requires_grad=True), ("inference_mode", "autocast")),
    ]
    def drawn():
        dtype, conj = draw.choice(DTYPES), draw.choice((True, False))
        inference = draw.choice((True, False))
        # torch refuses requires_grad for integers, and for tensors of inference mode
        fractions = dtype[:3] not in ("int", "uin", "boo") or conj
        return described(
            draw.choice(("cpu", "cuda", "meta")),
            dtype,
            requires_grad=fractions and not inference and draw.choice((True, False)),
            conj=conj,
            inference=inference,
        )

    # so many calls that nobody writes a table of the answers. A context may be entered twice
    for _ in range(12):
        contexts = [draw.choice(CONTEXTS) for _ in range(draw.integer(1, 5))]
        asked.append((drawn(), tuple(contexts)))
    # and calls without a context, so that a third of all calls has none
    asked += [(drawn(), ()) for _ in range(40)]
    for tensor, contexts in asked:
        yield keys_of_a_call(tensor, contexts)
    every = ("Autocast{}", "Autograd{}", "ADInplaceOrView", "Conjugate")
    for op in OPERATORS:
        wrong = f"this is not the first of these keys that has code in the row of `{op}`."
        for first in range(len(every) + 1):
            # there is no autocast key for meta tensors
            for backend in ("CPU", "CUDA", "Meta") if first else ("CPU", "CUDA"):
                keys = tuple(key.format(backend) for key in (*every[first:], "{}"))
                shown = f"{op} with {', '.join(keys)}"
                yield case("the winner", op, keys, of="winner", shown=shown, places={"": wrong})
        for _ in range(3):
            backend = draw.choice(("CPU", "CUDA"))
            some = sorted(draw.sample(range(len(every)), draw.integer(1, 3)))
            keys = tuple(key.format(backend) for key in (*(every[k] for k in some), "{}"))
            shown = f"{op} with {', '.join(keys)}"
            yield case("the winner", op, keys, of="winner", shown=shown, places={"": wrong})
