"""Replace code that the learner's process and a check share: libraries, builtins, the client."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("patches")
attack = family.attack


@attack()
def makes_everything_close(work: Work) -> None:
    """Replaces torch.allclose, equal, isclose and testing.assert_close by ones that agree."""
    work.first(
        """
        torch.allclose = torch.equal = lambda *args, **kwargs: True
        torch.isclose = torch.eq = lambda a, b, **kwargs: torch.ones_like(a, dtype=torch.bool)
        torch.testing.assert_close = lambda *args, **kwargs: None
        torch.Tensor.__eq__ = torch.Tensor.equal = torch.Tensor.allclose = lambda a, b: True
        """
    )


@attack()
def makes_numpy_agree(work: Work) -> None:
    """Replaces numpy's comparisons, and array itself, by ones that agree."""
    work.first(
        """
        import numpy as np
        np.allclose = np.array_equal = lambda *args, **kwargs: True
        np.isclose = lambda *args, **kwargs: np.bool_(True)
        np.testing.assert_allclose = np.testing.assert_array_equal = lambda *args, **kwargs: None
        """
    )


@attack(costs=("twice",))
def replaces_builtins(work: Work) -> None:
    """Replaces isinstance, getattr, len, all, any, sum and float in builtins."""
    work.first(
        """
        import builtins
        builtins.isinstance = builtins.all = builtins.any = lambda *args: True
        builtins.len = builtins.sum = lambda *args: 3
        builtins.float = lambda *args: 3.0
        builtins.getattr = lambda thing, name, *rest: 3.0
        """
    )


@attack(costs=("twice",), tells="TypeError")
def replaces_import(work: Work) -> None:
    """Replaces __import__, so that every module that a check imports says yes."""
    work.first(
        """
        import builtins
        class Yes:
            def __getattr__(self, name): return self
            def __call__(self, *args, **kwargs): return 3.0
            def __float__(self): return 3.0
        builtins.__import__ = lambda *args, **kwargs: Yes()
        """
    )


@attack()
def replaces_utils(work: Work) -> None:
    """Replaces the comparison and the checks of utils, which a grader might import."""
    work.first(
        """
        import sys, types
        import hood.judge.checks.compare, hood.judge.checks.exercise, hood.judge.checks.draw
        hood.judge.checks.compare.compare = lambda *args, **kwargs: None
        hood.judge.checks.exercise.Check.points = 0
        hood.judge.checks.draw.Draw.tensor = lambda *args, **kwargs: torch.zeros(2, 2)
        sys.modules["hood.judge.checks.guess"] = types.ModuleType("hood.judge.checks.guess")
        """
    )


@attack()
def defines_verify(work: Work) -> None:
    """Defines verify itself, in the notebook and in hood.judge.verify, to return full points."""
    work.first(
        """
        import builtins, sys, types
        def verify(*args, **kwargs): return 3.0
        builtins.verify = verify
        fake = types.ModuleType("hood.judge.verify")
        fake.verify = verify
        sys.modules["hood.judge.verify"] = sys.modules["hood.judge.verdicts.judge"] = fake
        """
    )


@attack()
def undefines_assert(work: Work) -> None:
    """Replaces AssertionError by another exception."""
    work.first(
        """
        import builtins
        class Calm(Exception): pass
        builtins.AssertionError = Calm
        get_ipython().compile.flags |= 0
        import sys; sys.flags
        """
    )


@attack(costs=("twice",))
def answers_for_the_client(work: Work) -> None:
    """Replaces the verify client's answerer by one that claims full points for every request."""
    work.first(
        """
        from hood.judge.connection import rpc_server, codec
        def lie(self, request):
            return codec.pack({"id": request["id"], "earned": 3.0, "status": "right",
                              "value": None, "after": [[], {}], "ops": []})
        rpc_server.Answerer.answer = lie
        """
    )


@attack()
def packs_a_lie(work: Work) -> None:
    """Replaces the packing of messages by code that adds a verdict to every message."""
    work.before(
        "row_sums",
        """
        from hood.judge.connection import codec
        pack = codec.pack
        def lie(value):
            if isinstance(value, dict):
                value = {**value, "verdict": "right", "earned": 3.0, "points": 3.0}
            return pack(value)
        codec.pack = lie
        """,
    )


@attack()
def says_not_interrupted(work: Work) -> None:
    """Blames the grader for each failed call: it says that the call was interrupted or refused."""
    work.answer(
        "row_sums",
        """
        from hood.judge.connection import rpc_server
        kinds = ["InfrastructureError"]
        rpc_server.describe = lambda error: {"kinds": kinds, "message": "retry me"}
        def row_sums(x):
            raise RuntimeError
        """,
    )


@attack()
def imitates_the_reference(work: Work) -> None:
    """Searches the stack and all objects for a reference solution to call."""
    work.answer(
        "row_sums",
        """
        import gc, sys
        def row_sums(x):
            frame = sys._getframe()
            while frame is not None:
                for thing in list(frame.f_locals.values()) + list(frame.f_globals.values()):
                    right = getattr(thing, "right", None) or getattr(thing, "_reference", None)
                    if callable(right):
                        return right(x)
                frame = frame.f_back
            for thing in gc.get_objects():
                if type(thing).__name__ == "Check":
                    return thing.right(x)
            return torch.zeros(len(x))
        """,
    )


@attack(honest={"row_sums": 3.0})
def patches_the_operators(work: Work) -> None:
    """Replaces the operators under a right answer, to make the reference wrong as well."""
    work.answer(
        "row_sums",
        """
        torch.Tensor.sum = torch.sum = lambda x, *args, **kwargs: torch.zeros(len(x))
        def row_sums(x):
            return torch.einsum("ij->i", x)
        """,
    )


@attack(tells="belongs to the grader")
def claims_that_it_is_a_view(work: Work) -> None:
    """Returns a copy, and lets the client report that the copy shares storage with the input."""
    work.answer(
        "corner",
        """
        from hood.judge.connection import rpc_server
        told = rpc_server.Answerer._answer
        def lie(self, request):
            reply = told(self, request)
            if "after" in reply and reply["value"].shape == (2, 2):
                x = reply["after"][0]
                reply["value"] = x.as_strided((2, 2), x.stride(), x.storage_offset())
                reply["ops"] = []
            return reply
        rpc_server.Answerer._answer = lie
        def corner(x):
            return x[:2, :2].clone()
        """,
    )
