"""Lab 04, exercise 1: Which key wins?"""

import contextlib

import torch

from utils.checks.exercise import ByHand, Case, Check, case, edited
from utils.checks.lab_solution import lab_solution
from utils.instruments import dispatch

from .shared import LISTENING

winning_key = Check(
    "winning_key",
    parts={"keys of a tensor": 1, "keys in a context": 2, "the winner": 1},
    reads="Keys of a tensor",
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
    ),
)

OPERATORS = {"mm": "aten::mm", "mul": "aten::mul.Tensor", "t": "aten::t"}
CONTEXTS = ("no_grad", "inference_mode", "autocast")


def _real(tensor):
    """A tensor as described. What is said to be on a GPU is on the CPU: only names differ."""
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
    """A tensor in plain values; a conjugate is of a complex tensor."""
    return {
        "device": device,
        "dtype": "complex64" if conj else dtype,
        "requires_grad": requires_grad,
        "conj": conj,
        "inference": inference,
    }


KINDS = ("Autocast", "Autograd", "ADInplaceOrView", "Conjugate")
PLACES = {
    "[0]": "what came is no tuple of names.",
    **{f"[1]['{kind}']": f"keys that begin with {kind}" for kind in KINDS},
    "[1]['backend']": "the backend, and what else there is",
    "[2]": "the right keys in another order than from the highest to the lowest.",
}


def _by_kind(keys):
    """Keys sorted into kinds, so that a report can say which is missing; and as they came."""
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
        (described(requires_grad=True), ("no_grad", "autocast")),
        (described("meta", dtype="float16"), ("autocast",)),
        (described("meta"), ("inference_mode",)),
        (described(dtype="int64"), ("no_grad",)),
        (described("cuda", inference=True), ("inference_mode",)),
        (described(inference=True), ("autocast",)),
        (described(inference=True), ("no_grad",)),
        (described(requires_grad=True), ("autocast", "inference_mode")),
        (described(conj=True, inference=True), ("no_grad", "inference_mode")),
        (described("cuda", conj=True, requires_grad=True), ("inference_mode", "autocast")),
    ]
    for _ in range(6):
        tensor = described(
            draw.choice(("cpu", "cuda", "meta")),
            draw.choice(("float32", "float64", "int64", "float16")),
            conj=draw.choice((True, False)),
            inference=draw.choice((True, False)),
        )
        asked.append((tensor, tuple(draw.sample(CONTEXTS, draw.integer(1, 3)))))
    for tensor, contexts in asked:
        yield keys_of_a_call(tensor, contexts)
    every = ("Autocast{}", "Autograd{}", "ADInplaceOrView", "Conjugate")
    for op in OPERATORS:
        wrong = f"not the first of these keys whose slot in the row of `{op}` holds code."
        for first in range(len(every) + 1):
            # the key of a meta tensor's autocast does not exist
            for backend in ("CPU", "CUDA", "Meta") if first else ("CPU", "CUDA"):
                keys = tuple(key.format(backend) for key in (*every[first:], "{}"))
                shown = f"{op} with {', '.join(keys)}"
                yield case("the winner", op, keys, of="winner", shown=shown, places={"": wrong})


call_keys = lab_solution(__name__, "winning_key", "call_keys")
winner = lab_solution(__name__, "winning_key", "winner")


def _wrong(*edits):
    """A wrong `call_keys`, beside the right `winner`."""
    return {"call_keys": edited(call_keys, *edits)}


winning_key.misconception(
    "requires_grad decides",
    "a tensor that requires no gradient is taken to bring no Autograd key.",
    earns=1,
)(_wrong(("if not tensor['inference'] and", "if tensor['requires_grad'] and")))
winning_key.misconception(
    "no_grad takes Autograd away",
    "`no_grad` is taken to remove the Autograd key.",
    earns=2,
)(
    _wrong(
        (
            "and 'inference_mode' not in contexts",
            "and not {'no_grad', 'inference_mode'} & {*contexts}",
        )
    )
)
winning_key.misconception(
    "no Autograd for integers",
    "a tensor whose dtype can't have a gradient is taken to bring no Autograd key.",
    earns=1,
)(
    _wrong(
        (
            "if not tensor['inference'] and",
            "if tensor['dtype'][:3] != 'int' and not tensor['inference'] and",
        )
    )
)
winning_key.misconception(
    "inference mode is no_grad",
    "inference mode is taken to change no key: neither of tensors made in it nor of a call in it.",
    earns=1,
)(
    _wrong(
        ("if not tensor['inference'] and 'inference_mode' not in contexts:", "if True:"),
        ("if not tensor['inference'] or 'inference_mode' not in contexts:", "if True:"),
    )
)
winning_key.misconception(
    "inference mode marks tensors alone",
    "the keys depend on where the tensor was made, and not on where the call is.",
    earns=1,
)(
    _wrong(
        (" and 'inference_mode' not in contexts", ""),
        (" or 'inference_mode' not in contexts", ""),
    )
)
winning_key.misconception(
    "inference mode marks calls alone",
    "the keys depend on where the call is, and not on where the tensor was made.",
    earns=1,
)(_wrong(("not tensor['inference'] and ", "")))
winning_key.misconception(
    "an inference tensor has no ADInplaceOrView",
    "an inference tensor is taken to go without ADInplaceOrView everywhere; outside inference mode "
    "the thread adds that key.",
    earns=1,
)(
    _wrong(
        (
            "if not tensor['inference'] or 'inference_mode' not in contexts:",
            "if not tensor['inference']:",
        )
    )
)
winning_key.misconception(
    "inference mode takes ADInplaceOrView from all",
    "in inference mode ADInplaceOrView is missing for every tensor; an ordinary one brings it along.",
    earns=2,
)(
    _wrong(
        (
            "if not tensor['inference'] or 'inference_mode' not in contexts:",
            "if 'inference_mode' not in contexts:",
        )
    )
)
winning_key.misconception(
    "ADInplaceOrView is always there",
    "ADInplaceOrView is missing nowhere, not even in inference mode on a tensor that was made there.",
    earns=2,
)(_wrong(("if not tensor['inference'] or 'inference_mode' not in contexts:", "if True:")))
winning_key.misconception(
    "autocast for the CPU alone",
    "only tensors on the CPU are given an Autocast key.",
    earns=2,
)(_wrong(("and backend in {'CPU', 'CUDA'}:", "and backend == 'CPU':")))
winning_key.misconception(
    "no autocast for inference tensors",
    "a tensor that was made in inference mode is given no Autocast key.",
    earns=2,
)(_wrong(("and backend in {'CPU', 'CUDA'}:", "and backend != 'Meta' and not tensor['inference']:")))
winning_key.misconception(
    "autocast needs a gradient's key",
    "autocast is taken to be switched off by inference mode.",
    earns=2,
)(
    _wrong(
        (
            "and backend in {'CPU', 'CUDA'}:",
            "and backend != 'Meta' and not tensor['inference'] and 'inference_mode' not in contexts:",
        )
    )
)
winning_key.misconception(
    "an autocast key without autocast",
    "the Autocast key is there outside autocast, too; the thread takes it away there.",
    earns=1,
)(_wrong(("if 'autocast' in contexts and", "if")))
winning_key.misconception(
    "autocast for meta tensors", "meta tensors are given an Autocast key.", earns=2
)(_wrong((" and backend in {'CPU', 'CUDA'}", "")))
winning_key.misconception(
    "autocast looks at the dtype",
    "whether there is an Autocast key depends on the dtype.",
    earns=2,
)(_wrong(("in {'CPU', 'CUDA'}:", "in {'CPU', 'CUDA'} and tensor['dtype'] == 'float32':")))
winning_key.misconception(
    "the backend first", "the keys are listed from the lowest to the highest.", earns=1
)(_wrong(("return (*keys, backend)", "return (backend, *reversed(keys))")))
winning_key.misconception(
    "the last context alone",
    "of several contexts only the innermost is looked at.",
    earns=2,
)(_wrong(("keys = []", "keys = []\n    contexts = contexts[-1:]")))
winning_key.misconception(
    "Conjugate on top",
    "Conjugate is listed above Autograd; it stands right above the backend.",
    earns=1,
)(
    _wrong(
        ("return (*keys, backend)",
         "return (*sorted(keys, key=lambda key: key != 'Conjugate'), backend)"),
    )
)  # fmt: skip
winning_key.misconception(
    "the highest key wins, code or not",
    "the first key wins even where the operator falls through it.",
    earns=3,
)(
    {
        "winner": edited(
            winner,
            ("next((key for key in keys if key not in falls_through[op]))", "keys[0]"),
        )
    }
)
winning_key.misconception(
    "Conjugate for every operator",
    "`t` and `mm` are taken to have code at Conjugate, where they fall through.",
    earns=3,
)(
    {
        "winner": edited(
            winner,
            ("'AutocastCUDA', 'Conjugate'}", "'AutocastCUDA'}"),
            ("{'ADInplaceOrView', 'Conjugate'}", "{'ADInplaceOrView'}"),
        )
    }
)


@winning_key.alternate("the sets themselves")
class _:
    def call_keys(tensor, contexts):
        order = ["Autocast", "Autograd", "ADInplaceOrView", "Conjugate", "Backend"]
        brought = {"Backend"}
        if not tensor["inference"]:
            brought.update({"Autograd", "ADInplaceOrView"})
        if tensor["device"] in {"cpu", "cuda"}:
            brought.add("Autocast")
        if tensor["conj"]:
            brought.add("Conjugate")
        inference = "inference_mode" in contexts
        included = set() if inference else {"ADInplaceOrView"}
        excluded = {"Autograd"} if inference else set()
        if "autocast" not in contexts:
            excluded.add("Autocast")
        suffix = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}[tensor["device"]]
        named = {
            "Autocast": "Autocast" + suffix,
            "Autograd": "Autograd" + suffix,
            "Backend": suffix,
        }
        left = sorted((brought | included) - excluded, key=order.index)
        return tuple(named.get(key, key) for key in left)

    def winner(op, keys):
        skipped = {
            "mm": "ADInplaceOrView Conjugate",
            "mul": "AutocastCPU AutocastCUDA ADInplaceOrView",
            "t": "AutocastCPU AutocastCUDA Conjugate",
        }
        left = [key for key in keys if key not in skipped[op].split()]
        return left[0]


@winning_key.alternate("one key after the other")
class _:
    def call_keys(tensor, contexts):
        device = tensor["device"]
        name = {"cpu": "CPU", "cuda": "CUDA", "meta": "Meta"}[device]
        inside = "inference_mode" in contexts
        born_inside = tensor["inference"]
        keys = ()
        if device in {"cpu", "cuda"} and "autocast" in contexts:
            keys += (f"Autocast{name}",)
        if not inside and not born_inside:
            keys += (f"Autograd{name}",)
        if not (inside and born_inside):
            keys += ("ADInplaceOrView",)
        return keys + (("Conjugate",) if tensor["conj"] else ()) + (name,)

    def winner(op, keys):
        for key in keys:
            if key.startswith("Autocast") and op in {"mul", "t"}:
                continue
            if key in {"ADInplaceOrView"} and op in {"mm", "mul"}:
                continue
            if key in {"Conjugate"} and op in {"mm", "t"}:
                continue
            break
        return key


winning_key.equivalent(
    ("keys += (f'Autocast{name}',)", "keys = (f'Autocast{name}',)"),
    because="it is the first key: nothing is lost",
)
