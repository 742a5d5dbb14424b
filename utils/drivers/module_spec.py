"""Describe models in plain values, because a check can only send values.

A plan is a dict. It maps the name of each part of a module to the part's description.

    {"embed": ["Embedding", 600, 64],               a layer of torch.nn and its arguments
     "scale": ["parameter", torch.ones(64)],        a third entry is its gradient, of any dtype
     "seen": ["buffer", torch.zeros(1)],            not saved if a third entry is False
     "notes": ["plain", torch.zeros(5)],            an ordinary attribute
     "head": {"weight": ["same", "embed.weight"]}}  a child; "same" is a tensor or module that
                                                    an earlier part already has

`assemble` makes a `torch.nn.Module` from a plan. `drive` uses a learner's Module
class to make a module from a plan, and sends requests to this module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from torch import Tensor, nn

Plan = Mapping[str, Any]
FACTORS = ("parameter", "buffer", "same", "frozen")


def assemble(plan: Plan | nn.Module) -> nn.Module:
    """Return the module that a plan describes. If the plan is a module, return it unchanged."""
    if isinstance(plan, nn.Module):
        return plan
    return _assemble(plan, nn.Module, {}, "")


def drive(module_class: Callable[[], Any], plan: Plan, *requests: tuple) -> list[Any]:
    """Build a plan's module with `module_class`, and answer requests to it in plain values.

    requests, where `path` is "" for the whole module and "block.head" for a part:
        ("parameters", path)           the names and the tensors of named_parameters(), in order
        ("state_dict", path)           a copy of state_dict()
        ("load", path, state, keys)    load_state_dict(state): "loaded", or "refused" with those of
                                       `keys` that the RuntimeError names. Then every tensor of the
                                       state is overwritten, so that a module without copies has
                                       wrong values. If the call changed the names in the state,
                                       the answer says so
        ("set", path, name, entry)     assign what a plan's entry describes
        ("get", path, name)            the value of an attribute
        ("shared", path, other)        whether two parameters are one object
        ("kept", path)                 whether this parameter is still the same object as at first
        ("train", path, mode)          train(mode), or train() without a mode
        ("eval", path)                 eval()
        ("modes", path)                path -> training, for this module and all below it
        ("call", path, x)              the module's result: x times the module's own parameters and
                                       buffers, then through its children, in the plan's order
        ("gradients", x)               d sum(model(x)) / d parameter, by name

    Raises TypeError if the class is based on torch.nn.Module.
    """
    if isinstance(module_class, type) and issubclass(module_class, nn.Module):
        raise TypeError("expected a Module of your own, got one based on torch.nn.Module")

    class Node(module_class):  # type: ignore[misc,valid-type]  # a class that is only known then
        def forward(self, x: Any) -> Any:
            for factor in self.factors:
                x = x * getattr(self, factor)
            for child in self.parts:
                x = getattr(self, child)(x)
            return x

    made: dict[str, Any] = {}
    root = _assemble(plan, Node, made, "")
    at_first = dict(made)
    return [_answer(root, made, at_first, Node, *request) for request in requests]


def _answer(root: Any, made: dict, at_first: dict, node: type, what: str, *rest: Any) -> Any:
    path = rest[0] if rest and isinstance(rest[0], str) else ""
    module = _at(root, path)
    if what == "parameters":
        pairs = list(module.named_parameters())
        return {"names": [n for n, _ in pairs], "values": [p.detach().clone() for _, p in pairs]}
    if what == "state_dict":
        return {name: tensor.clone() for name, tensor in module.state_dict().items()}
    if what == "load":
        state = {name: tensor.clone() for name, tensor in rest[1].items()}
        try:
            module.load_state_dict(state)
        except RuntimeError as refusal:
            return "refused", [key for key in rest[2] if key in str(refusal)]
        finally:
            whole = state.keys() == rest[1].keys()
            for tensor in state.values():
                tensor.detach().zero_()
        return "loaded" if whole else "loaded, and changed the state", []
    if what == "set":
        _set(module, rest[1], rest[2], node, made, path)
        return None
    if what == "get":
        return getattr(module, rest[1])
    if what == "shared":
        return module is _at(root, rest[1])
    if what == "kept":
        return module is at_first[path]
    if what in ("train", "eval"):
        getattr(module, what)(*rest[1:])
        return None
    if what == "modes":
        under = [p for p, thing in made.items() if isinstance(thing, node)]
        inside = f"{path}." if path else ""
        return {p: _at(root, p).training for p in under if f"{p}.".startswith(inside)}
    if what == "call":
        return module(rest[1]).detach()
    if what == "gradients":
        root(rest[0]).sum().backward()
        return {name: p.grad for name, p in root.named_parameters()}
    raise ValueError(f"no such request: {what!r}")


def _assemble(plan: Plan, node: Callable[[], Any], made: dict[str, Any], path: str) -> Any:
    """Return the module of a plan; `made` gathers every module and tensor by its path."""
    module = node()
    made[path.removesuffix(".")] = module
    kinds = {n: entry[0] for n, entry in plan.items() if not isinstance(entry, Mapping)}
    module.factors = [n for n, kind in kinds.items() if kind in FACTORS]
    module.parts = [n for n, entry in plan.items() if isinstance(entry, Mapping)]
    for name, entry in plan.items():
        _set(module, name, entry, node, made, path)
    return module


def _set(module: Any, name: str, entry: Any, node: Any, made: dict, path: str) -> None:
    here = f"{path.rstrip('.')}.{name}".lstrip(".")
    if isinstance(entry, Mapping):
        setattr(module, name, _assemble(entry, node, made, f"{here}."))
        return
    kind, *rest = copy.deepcopy(entry)  # the tensors of the caller's plan must not change
    if kind == "parameter":
        thing: Any = nn.Parameter(rest[0], requires_grad=rest[0].is_floating_point())
        if len(rest) > 1:
            if rest[1].dtype != thing.dtype:
                thing.grad_dtype = rest[1].dtype  # torch needs this explicitly
            thing.grad = rest[1]
    elif kind == "frozen":
        thing = nn.Parameter(rest[0], requires_grad=False)
    elif kind == "same":
        thing = made[rest[0]]
    elif kind in ("buffer", "plain"):
        thing = rest[0]
    else:
        thing = getattr(nn, kind)(*rest)
        made.update({f"{here}.{key}": p for key, p in thing.named_parameters()})
    made[here] = thing
    plain_tensor = isinstance(thing, Tensor) and not isinstance(thing, nn.Parameter)
    if kind == "buffer" or (kind == "same" and plain_tensor):
        persistent = {} if len(rest) < 2 else {"persistent": rest[1]}
        module.register_buffer(name, thing, **persistent)
    else:
        setattr(module, name, thing)


def _at(root: Any, path: str) -> Any:
    return attrgetter(path)(root) if path else root
