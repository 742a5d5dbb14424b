"""Lab 03, exercise 9: Module, from nothing"""

import torch
from torch import nn

from hood.judge.checks.exercise import ByHand, Case, Check
from utils.drivers.module_spec import drive

from .shared import SUMS

run_module = Check(
    "run_module",
    parts={
        "registration": 2,
        "tied parameters": 1,
        "buffers": 1,
        "saving and loading": 1,
        "refusals": 1,
        "train and eval": 1,
    },
    reads="One line of magic",
    reads_by_part={
        "buffers": "What is saved but not trained",
        "saving and loading": "Saving is a dict, loading is a copy",
        "train and eval": "Two modes",
    },
    tolerance=SUMS,
    by_hand=ByHand(
        "torch's own modules do not count here, as a base class or inside your module: register "
        "the parts with your own code, and use only `nn.Parameter`",
        forbid_names=frozenset(
            {"torch.nn.*", "torch.ao.*", "utils.drivers.module_spec.*", "utils.minigpt.*"}
        ),
        allow_names=frozenset(
            {"torch.nn.Parameter", "torch.nn.parameter", "utils.drivers.module_spec.drive"}
        ),
    ),
)


@run_module.reference
def _run_module(plan, *requests):
    class Module:
        def __init__(self):
            self.__dict__["training"] = True
            for kind in ("_parameters", "_buffers", "_modules"):
                self.__dict__[kind] = {}

        def __call__(self, *args):
            return self.forward(*args)

        def __setattr__(self, name, value):
            keep = self._buffers if name in self._buffers else self.__dict__
            if isinstance(value, nn.Parameter):
                keep = self._parameters
            elif isinstance(value, Module):
                keep = self._modules
            for kind in (self._parameters, self._modules, self._buffers, self.__dict__):
                if kind is not keep:
                    kind.pop(name, None)
            keep[name] = value

        def __getattr__(self, name):
            for kind in ("_parameters", "_buffers", "_modules"):
                if name in self.__dict__[kind]:
                    return self.__dict__[kind][name]
            raise AttributeError(name)

        def register_buffer(self, name, tensor):
            self._buffers[name] = tensor

        def all_parameters(self):
            yield from self._parameters.items()
            for child_name, child in self._modules.items():
                for name, parameter in child.all_parameters():
                    yield (child_name + "." + name, parameter)

        def all_buffers(self):
            yield from self._buffers.items()
            for child_name, child in self._modules.items():
                for name, buffer in child.all_buffers():
                    yield (child_name + "." + name, buffer)

        def named_parameters(self):
            seen = set()
            for name, parameter in self.all_parameters():
                if parameter not in seen:
                    seen.add(parameter)
                    yield (name, parameter)

        def tensors(self):
            return {**dict(self.all_parameters()), **dict(self.all_buffers())}

        def state_dict(self):
            return {name: tensor.detach() for name, tensor in self.tensors().items()}

        def load_state_dict(self, state):
            own = self.tensors()
            missing = [name for name in own if name not in state]
            extra = [name for name in state if name not in own]
            both = [name for name in own if name in state]
            shapes = [name for name in both if own[name].shape != state[name].shape]
            if missing or extra or shapes:
                raise RuntimeError(f"missing {missing}, unexpected {extra}, other shape {shapes}")
            with torch.no_grad():
                for name in both:
                    own[name].copy_(state[name])

        def train(self, mode=True):
            self.training = mode
            for child in self._modules.values():
                child.train(mode)
            return self

        def eval(self):
            return self.train(False)

    return drive(Module, plan, *requests)


@run_module.cases
def _(draw):
    def vector(width, kind="parameter"):
        return [kind, draw.tensor((width,))]

    def ask(part, plan, *requests, show=None, raises=""):
        """Send the requests. `show` turns the answers into the values that are compared."""

        def play(subject):
            answers = subject(plan, *requests)
            return show(answers) if show else answers

        places = {}
        for k, request in enumerate(requests):
            places |= places_of(f"[{k}]", *request)
            if k and requests[k - 1][0] == "load":
                refused = requests[k - 1][3]
                after = "a refusal" if refused else "loading, and after the loaded state was overwritten"
                places[f"[{k}]"] = f"`{request[0]}()` after {after}"
        return Case(part, play, places=places, raises=raises)

    # the usual error messages contain none of these words, so a message that contains one names the
    # tensor
    words = ("head", "lower", "down", "norm", "query", "mask", "stem", "gain", "shift", "scale")
    for backwards in (True, False):  # names in the alphabet's order, and not
        a, b, c, d, e, f = sorted(draw.sample(words, 6), reverse=backwards)
        w = draw.integer(3, 6)
        x = draw.tensor((2, w))
        deep = {a: vector(w), b: {c: vector(w), d: {e: vector(w)}}, f: vector(w)}
        part = "registration"
        yield ask(part, deep, ("parameters", ""), ("parameters", b), ("call", "", x))
        yield ask(part, deep, ("gradients", x), ("get", f"{b}.{d}", e), ("kept", f))
        plain = {a: vector(w), c: vector(w, "plain")}
        late = ("set", "", c, vector(w)), ("parameters", ""), ("get", "", c)
        yield ask(part, plain, ("parameters", ""), ("get", "", c), *late)
        mixed = {b: {c: vector(w)}, a: vector(w), d: {e: vector(w)}, f: vector(w)}
        yield ask(part, mixed, ("parameters", ""), ("call", "", x))
    changed = ("set", "", a, vector(w)), ("set", "", b, {d: vector(w)})

    def in_any_order(answers):  # a name that is assigned again may keep its place or lose it
        found = answers[2]
        return *answers[:2], dict(zip(found["names"], found["values"], strict=True)), answers[3]

    again = *changed, ("parameters", ""), ("state_dict", "")
    yield ask(part, deep, *again, show=in_any_order)
    yield ask(part, deep, ("set", "", a, ["plain", draw.tensor((w,))]), ("parameters", ""))

    part = "tied parameters"
    tied = {a: {c: vector(w)}, b: {d: vector(w), e: ["same", f"{a}.{c}"]}}
    yield ask(part, tied, ("parameters", ""), ("state_dict", ""))
    yield ask(part, tied, ("gradients", x), ("shared", f"{a}.{c}", f"{b}.{e}"))
    equal, none = ["parameter", torch.zeros(w)], ["parameter", torch.zeros(0)]
    yield ask(part, {a: {c: equal, e: none}, b: {d: equal, f: none}}, ("parameters", ""))
    inner = {c: vector(w), d: vector(w, "buffer")}
    twice = {a: inner, b: ["same", a], e: ["same", f"{a}.{d}"]}
    yield ask(part, twice, ("parameters", ""), ("state_dict", ""))

    part = "buffers"
    counted = {a: vector(w, "buffer"), b: {c: vector(w, "buffer"), d: vector(w)}}
    yield ask(part, counted, ("parameters", ""), ("state_dict", ""), ("call", "", x))
    anew = ("set", b, c, vector(w + 1, "plain"))
    yield ask(part, counted, anew, ("state_dict", ""), ("get", b, c))
    notes = {a: vector(w, "buffer"), b: {c: vector(w, "plain"), d: vector(w, "buffer")}}
    late = ("set", "", e, vector(w, "plain"))
    yield ask(part, {**notes, f: vector(w, "plain")}, late, ("state_dict", ""), ("get", b, c))

    part = "saving and loading"
    state = {a: draw.tensor((w,)), f"{b}.{c}": draw.tensor((w,)), f"{b}.{d}": draw.tensor((w,))}
    after = ("state_dict", ""), ("kept", f"{b}.{d}"), ("kept", f"{b}.{c}"), ("call", "", x)
    yield ask(part, counted, ("load", "", state, []), *after)
    reverse = dict(reversed(state.items()))
    yield ask(part, counted, ("load", "", reverse, []), *after)

    part = "refusals"
    keys = [*state, "alien.weight"]
    less = {name: tensor for name, tensor in state.items() if name != f"{b}.{d}"}
    more = {**state, "alien.weight": torch.ones(w)}
    both = {**less, "alien.weight": torch.ones(w)}

    def refused(answers):
        (answer, named), left = answers
        return (answer, sorted(named)), left

    for wrong, named in ((less, [f"{b}.{d}"]), (more, keys[3:]), (both, [keys[3], f"{b}.{d}"])):
        request = ("load", "", wrong, named)
        yield ask(part, counted, request, ("state_dict", ""), show=refused)
    flat = {a: ["parameter", draw.tensor((1, w))], b: {c: vector(w), d: vector(w, "buffer")}}
    for name, shape in ((f"{b}.{d}", (1,)), (f"{b}.{c}", (1, w)), (a, (w,)), (a, (w, 1))):
        request = ("load", "", {**state, a: torch.ones(1, w), name: torch.ones(shape)}, [name])
        yield ask(part, flat, request, ("state_dict", ""), show=refused)

    part = "train and eval"
    yield ask(part, deep, ("eval", ""), ("train", ""), ("modes", ""))
    yield ask(part, deep, ("modes", ""), ("eval", ""), ("modes", ""))
    yield ask(part, deep, ("train", "", False), ("train", b, True), ("modes", ""))

    part = "registration"
    one = {a: vector(w)}
    yield ask(part, one, ("get", "", b), show=lambda answers: "something", raises="AttributeError")
    frozen = {a: vector(w, "frozen"), b: {c: vector(w)}}
    yield ask(part, frozen, ("parameters", ""))
    yield ask(part, {}, ("parameters", ""))
    numbers = ("set", "", a, ["plain", 3]), ("set", "", b, ["plain", 3])
    yield ask(part, deep, *numbers, ("parameters", ""), ("state_dict", ""), ("get", "", a))
    for entry in (vector(w), {c: vector(w)}):  # a Parameter or a module takes a buffer's name
        again = ("set", "", a, entry), ("parameters", ""), ("state_dict", "")
        yield ask(part, {a: vector(w, "buffer"), d: vector(w)}, *again, show=by_name)
    part = "saving and loading"
    double = {name: tensor.double() for name, tensor in state.items()}
    yield ask(part, counted, ("load", "", double, []), *after)
    yield ask(part, {}, ("load", "", {}, []))
    part = "refusals"
    three = {
        a: vector(w),
        b: {c: vector(w), d: vector(w, "buffer")},
        f: ["parameter", torch.ones(())],
    }
    wrong = {a: torch.ones(1, w), f"{b}.{c}": torch.ones(1), f"{b}.{d}": torch.ones(w)}
    aliens = {"alien.weight": torch.ones(w), "stranger": torch.ones(w)}
    named = [a, f"{b}.{c}", *aliens, e, f]
    request = ("load", "", {**wrong, **aliens}, named)
    yield ask(part, {**three, e: vector(w)}, request, ("state_dict", ""), show=refused)
    request = ("load", "", {**state, "stranger": torch.ones(w)}, ["stranger"])
    yield ask(part, counted, request, ("state_dict", ""), show=refused)
    request = ("load", "", {**wrong, f: torch.ones(1)}, [a, f"{b}.{c}", f])
    yield ask(part, three, request, ("state_dict", ""), show=refused)
    twins, rest = {a: {c: vector(w)}, b: {c: vector(w)}}, {f"{b}.{c}": torch.ones(w)}
    request = ("load", "", rest, [f"{a}.{c}"])
    yield ask(part, twins, request, ("state_dict", ""), show=refused)
    request = ("load", "", {a: torch.ones(()), f"{b}.{c}": state[f"{b}.{c}"]}, [a])
    yield ask(part, {a: vector(1), b: {c: vector(w)}}, request, ("state_dict", ""), show=refused)


def by_name(answers):
    """The answers without the order of the parameters: a name that is set again may move.
    """
    done, found, saved = answers
    return done, dict(zip(found["names"], found["values"], strict=True)), saved


def places_of(at, what, *rest):
    """Words for the places in the answer to a request."""
    whose = "" if rest[:1] == ("",) else " of a child"
    if what == "parameters":
        return {
            at: f"`named_parameters()`{whose}",
            f"{at}['names']": f"`named_parameters()`{whose} gives wrong names, or a wrong order.",
        }
    if what == "load":
        wanted = (
            "accepted a state that does not fit"
            if rest[2]
            else "refused a state that fits, or removed names from it"
        )
        return {
            f"{at}[0]": f"`load_state_dict` {wanted}.",
            f"{at}[1]": "the message of the RuntimeError leaves out a name that does not fit.",
        }
    return {
        at: {
            "state_dict": f"`state_dict()`{whose}",
            "get": "the value of an attribute",
            "shared": "a parameter with two names is no longer one object.",
            "kept": "a tensor is no longer the same object as before.",
            "modes": "`training` is wrong, in this module or in one inside it.",
            "call": "the result of a call",
            "gradients": "the parameters' gradients after `backward()`",
        }.get(what, f"the answer to {what!r}")
    }
