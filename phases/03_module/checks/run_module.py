"""Lab 03, exercise 8: Module, from nothing"""

import torch
from torch import nn

from utils.checks.exercise import ByHand, Case, Check, edited
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
    tolerance=SUMS,
    by_hand=ByHand(
        "torch's own modules do not count here, as a base class or as a part inside: write what a "
        "module knows of its parts yourself, with `nn.Parameter` alone",
        forbid_names=frozenset({"torch.nn.*", "torch.ao.*", "utils.drivers.module_spec.*", "utils.minigpt.*"}),
        allow_names=frozenset({"torch.nn.Parameter", "torch.nn.parameter", "utils.drivers.module_spec.drive"}),
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
        """Ask; `show` turns the answers into what is compared."""

        def play(subject):
            answers = subject(plan, *requests)
            return show(answers) if show else answers

        places = {}
        for k, request in enumerate(requests):
            places |= places_of(f"[{k}]", *request)
            if k and requests[k - 1][0] == "load":
                refused = requests[k - 1][3]
                after = "a refusal" if refused else "loading, when the loaded state was overwritten"
                places[f"[{k}]"] = f"`{request[0]}()` after {after}"
        return Case(part, play, places=places, raises=raises)

    # none of them a word of the usual refusals, in which its mention would prove nothing
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
    three = {a: vector(w), b: {c: vector(w), d: vector(w, "buffer")}, f: ["parameter", torch.ones(())]}
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
    """As they came, but for the order of parameters: a name may keep its place or lose it."""
    done, found, saved = answers
    return done, dict(zip(found["names"], found["values"], strict=True)), saved


def places_of(at, what, *rest):
    """Words for the places in the answer to a request."""
    whose = "" if rest[:1] == ("",) else " of a child"
    if what == "parameters":
        return {
            at: f"`named_parameters()`{whose}",
            f"{at}['names']": f"`named_parameters()`{whose} gives other names, or another order.",
        }
    if what == "load":
        wanted = (
            "has taken a state that does not fit"
            if rest[2]
            else "refused a state that fits, or took names out of it"
        )
        return {
            f"{at}[0]": f"`load_state_dict` {wanted}.",
            f"{at}[1]": "the message of the RuntimeError leaves out a name that does not fit.",
        }
    return {
        at: {
            "state_dict": f"`state_dict()`{whose}",
            "get": "what an attribute reads as",
            "shared": "a parameter with two names is no longer one object.",
            "kept": "a tensor is no longer the object that it was.",
            "modes": "`training` is not what it should be, here or further down.",
            "call": "what a call gives",
            "gradients": "what `backward()` leaves at the parameters",
        }.get(what, f"the answer to {what!r}")
    }


ALL = {
    "registration": 2,
    "tied parameters": 1,
    "buffers": 1,
    "saving and loading": 1,
    "refusals": 1,
    "train and eval": 1,
}


def all_but(*parts):
    """Points of every part of `run_module` but these."""
    return sum(points for part, points in ALL.items() if part not in parts)


run_module.misconception(
    "children not asked",
    "the module lists what is its own; nobody goes down into the children.",
    earns=0,
)(
    edited(
        _run_module,
        ("""            for child_name, child in self._modules.items():
                for name, parameter in child.all_parameters():
                    yield (child_name + '.' + name, parameter)
""", ""),
        ("""            for child_name, child in self._modules.items():
                for name, buffer in child.all_buffers():
                    yield (child_name + '.' + name, buffer)
""", ""),
        ("""            for child in self._modules.values():
                child.train(mode)
""", ""),
    )
)  # fmt: skip
run_module.misconception(
    "one level deep",
    "children are asked for their own parameters, and not for those of their children.",
    earns=all_but("registration"),
)(
    edited(
        _run_module,
        ("for name, parameter in child.all_parameters():",
         "for name, parameter in child._parameters.items():"),
    )
)  # fmt: skip
run_module.misconception(
    "in one pass",
    "the parameters of a child come where the child was assigned, between the module's own.",
    earns=all_but("registration"),
)(
    edited(
        _run_module,
        ("""            yield from self._parameters.items()
            for child_name, child in self._modules.items():
                for name, parameter in child.all_parameters():
                    yield (child_name + '.' + name, parameter)
""",
         """            for own_name in self.order:
                if own_name in self._parameters:
                    yield (own_name, self._parameters[own_name])
                if own_name in self._modules:
                    for name, parameter in self._modules[own_name].all_parameters():
                        yield (own_name + '.' + name, parameter)
"""),
        ("self.__dict__['training'] = True",
         "self.__dict__['training'] = True\n            self.__dict__['order'] = []"),
        ("            keep[name] = value",
         "            keep[name] = value\n            if name not in self.order:\n"
         "                self.order.append(name)"),
    )
)  # fmt: skip
run_module.misconception(
    "names without a path",
    "a child's parameters keep their short names, so that two of the same name are one.",
    earns=1,
)(
    edited(
        _run_module,
        ("yield (child_name + '.' + name, parameter)", "yield (name, parameter)"),
        ("yield (child_name + '.' + name, buffer)", "yield (name, buffer)"),
    )
)
run_module.misconception(
    "tied parameters twice",
    "a parameter that is registered in two places is yielded twice; an optimizer would refuse it, "
    "or step twice.",
    earns=all_but("tied parameters"),
)(edited(_run_module, ("if parameter not in seen:", "if True:")))
run_module.misconception(
    "tied by value",
    "of parameters with equal numbers one is missing; what counts is the object.",
    earns=all_but("tied parameters"),
)(
    edited(
        _run_module,
        ("if parameter not in seen:", "if tuple(parameter.tolist()) not in seen:"),
        ("seen.add(parameter)", "seen.add(tuple(parameter.tolist()))"),
    )
)
run_module.misconception(
    "saved once",
    "the state leaves out the second name of a tied parameter; it stands under both.",
    earns=all_but("tied parameters"),
)(
    edited(
        _run_module,
        ("{**dict(self.all_parameters()), **dict(self.all_buffers())}",
         "{**dict(self.named_parameters()), **dict(self.all_buffers())}"),
    )
)  # fmt: skip
run_module.misconception(
    "buffers forgotten in the state",
    "the state holds parameters alone: what the model has seen is lost with it.",
    earns=all_but("tied parameters", "buffers", "saving and loading", "refusals"),
)(
    edited(
        _run_module,
        ("{**dict(self.all_parameters()), **dict(self.all_buffers())}",
         "dict(self.all_parameters())"),
    )
)  # fmt: skip
run_module.misconception(
    "loading replaces",
    "new Parameters take the place of the old, and the optimizer goes on with those it knew.",
    earns=all_but("saving and loading"),
)(
    edited(
        _run_module,
        ("""            with torch.no_grad():
                for name in both:
                    own[name].copy_(state[name])
""",
         """            for name in both:
                where = self
                for step in name.split('.')[:-1]:
                    where = where._modules[step]
                new = state[name].clone()
                if isinstance(own[name], nn.Parameter):
                    new = nn.Parameter(new)
                setattr(where, name.split('.')[-1], new)
"""),
    )
)  # fmt: skip
run_module.misconception(
    "loading shares",
    "the module's tensors were made to lie in the state's own storages: whoever changes the state "
    "afterwards changes the model.",
    earns=all_but("saving and loading"),
)(edited(_run_module, ("own[name].copy_(state[name])", "own[name].data = state[name]")))
run_module.misconception(
    "what is unknown is ignored",
    "names that the module does not have are passed over in silence.",
    earns=all_but("refusals"),
)(edited(_run_module, ("if missing or extra or shapes:", "if missing or shapes:")))
run_module.misconception(
    "what is missing is ignored",
    "names that the state does not have keep their old values, in silence.",
    earns=all_but("refusals"),
)(edited(_run_module, ("if missing or extra or shapes:", "if extra or shapes:")))
run_module.misconception(
    "a shape that broadcasts",
    "a shape that can be broadcast is taken, as `copy_` takes it.",
    earns=all_but("refusals"),
)(edited(_run_module, ("if missing or extra or shapes:", "if missing or extra:")))
run_module.misconception(
    "sizes for shapes",
    "another shape is taken where it has as many elements, such as (1, 3) for (3,).",
    earns=all_but("refusals"),
)(
    edited(
        _run_module,
        ("own[name].shape != state[name].shape", "own[name].numel() != state[name].numel()"),
    )
)
run_module.misconception(
    "nothing is refused",
    "a state that doesn't fit is passed over in silence, and nothing is loaded.",
    earns=all_but("refusals"),
)(
    edited(
        _run_module,
        ("raise RuntimeError(f'missing {missing}, unexpected {extra}, other shape {shapes}')",
         "return"),
    )
)  # fmt: skip
run_module.misconception(
    "refused half-way",
    "a refusal leaves a mixture: some values are copied by then.",
    earns=all_but("refusals"),
)(
    edited(
        _run_module,
        ("            if missing or extra or shapes:",
         """            with torch.no_grad():
                for name in set(both) - set(shapes):
                    own[name].copy_(state[name])
            if missing or extra or shapes:"""),
    )
)  # fmt: skip
run_module.misconception(
    "only the first is named",
    "the refusal names one of the keys that are wrong, not all of them.",
    earns=all_but("refusals"),
)(
    edited(
        _run_module,
        ("raise RuntimeError(f'missing {missing}, unexpected {extra}, other shape {shapes}')",
         "raise RuntimeError(f'not fitting: {(missing + extra + shapes)[0]}')"),
    )
)  # fmt: skip
run_module.misconception(
    "modes stay at the top",
    "`train` and `eval` set the module's own mode, and its children keep theirs.",
    earns=all_but("train and eval"),
)(
    edited(
        _run_module,
        ("""            for child in self._modules.values():
                child.train(mode)
""", ""),
    )
)  # fmt: skip
run_module.misconception(
    "the old one stays registered",
    "an attribute that is assigned again leaves what was there before in its registry.",
    earns=all_but("registration"),
)(
    edited(
        _run_module,
        ("if kind is not keep:", "if False:"),
        ("keep[name] = value", "keep.setdefault(name, value)\n"
         "            if keep is not self._parameters:\n                keep[name] = value"),
    )
)  # fmt: skip
run_module.misconception(
    "every tensor is a parameter",
    "plain tensors are among the parameters.",
    earns=all_but("registration", "buffers"),
)(
    edited(
        _run_module,
        ("if isinstance(value, nn.Parameter):", "if isinstance(value, torch.Tensor):"),
    )
)
run_module.misconception(
    "every tensor is saved",
    "the state holds every tensor that is an attribute, also those that nobody registered.",
    earns=all_but("buffers"),
)(
    edited(
        _run_module,
        ("elif isinstance(value, Module):",
         "elif isinstance(value, torch.Tensor):\n                keep = self._buffers\n"
         "            elif isinstance(value, Module):"),
    )
)  # fmt: skip


@run_module.alternate("no registry: look through the attributes")
def _(plan, *requests):
    class Module:
        def __init__(self):
            self.training = True
            self.memory = set()

        def __call__(self, *args):
            return self.forward(*args)

        def register_buffer(self, name, tensor):
            self.memory.add(name)
            setattr(self, name, tensor)

        def walk(self, prefix=""):
            below = []
            for name, value in self.__dict__.items():
                kept = name in self.memory and isinstance(value, torch.Tensor)
                if kept or isinstance(value, nn.Parameter):
                    yield prefix + name, value
                if isinstance(value, Module):
                    below.append((name, value))
            for name, child in below:
                yield from child.walk(prefix + name + ".")

        def named_parameters(self):
            found = {}
            for name, value in self.walk():
                if isinstance(value, nn.Parameter):
                    found.setdefault(id(value), (name, value))
            return list(found.values())

        def state_dict(self):
            return {name: value.data for name, value in self.walk()}

        def load_state_dict(self, state):
            mine = self.state_dict()
            wrong = sorted(set(mine) ^ set(state))
            wrong += [n for n in mine if n in state and mine[n].shape != state[n].shape]
            if wrong:
                raise RuntimeError("does not fit: " + ", ".join(wrong))
            for name, value in mine.items():
                value.copy_(state[name])

        def train(self, mode=True):
            to_set = [self]
            for module in to_set:
                module.training = mode
                to_set += [v for v in vars(module).values() if isinstance(v, Module)]
            return self

        def eval(self):
            return self.train(False)

    return drive(Module, plan, *requests)


run_module.equivalent(
    ("if name not in self._buffer_names:", "if True:"),
    ("name not in self._buffer_names", "tensor not in self._buffer_names"),
    because="a name that is noted twice is one name",
)
run_module.equivalent(
    ("tensor.detach() for", "tensor for"),
    because="the lab leaves open whether what is saved requires a gradient",
)
run_module.equivalent(
    ("own.keys() & state.keys()", "own & state.keys()"),
    ("own.keys() & state.keys()", "own.keys() & state"),
    because="where the keys of one dict are asked for, the other is one of names as well",
)
run_module.equivalent(
    ("shapes = (tuple(own[name].shape), tuple(state[name].shape))",
     "shapes = (tuple(state[name].shape), tuple(own[name].shape))"),
    because="they are only told to be different",
)  # fmt: skip
run_module.equivalent(
    ("return self", "pass"), because="the lab doesn't say what `train` returns"
)
run_module.equivalent(
    ("self.forward(*args)", "self.forward(*args).float()"),
    because="what is called is float32, as all that the grader sends to be multiplied",
)
run_module.equivalent(
    ("setdefault(id(value),", "setdefault(value,"),
    ("list(found.values())", "found.values()"),
    because="a tensor is a key by its id, and pairs may come in any iterable",
)
