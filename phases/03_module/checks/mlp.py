"""Lab 03, exercise 7: A module of your own, on an empty page"""

import math

import torch

from hood.judge.checks.exercise import ByHand, Case, Check
from hood.judge.checks.lab_solution import lab_solution

from .shared import LAYOUTS, SUMS, laid_out, places_of_pull, pull, rough, shapes_of

mlp = Check(
    "MLP",
    parts={
        "how it begins": 1,
        "forward": 1,
        "fit_inputs": 1,
        "moved, copied, counted": 1,
    },
    reads="How a layer begins",
    reads_by_part={
        "forward": "Layers are shapes",
        "moved, copied, counted": "What a move moves",
    },
    tolerance=SUMS,
    by_hand=ByHand(
        "`nn.Sequential` does not count here: call the layers yourself, in `forward`",
        forbid_names=frozenset({"Sequential"}),
        parts=frozenset({"forward"}),  # for the other parts, it is allowed
    ),
)
mlp.reference(lab_solution(__name__, "MLP"))

WEIGHTS = "hidden.weight", "output.weight"
BIASES = "hidden.bias", "output.bias"
BUFFERS = "centre", "scale"


@mlp.cases
def _(draw):
    begins, forward, fits, rest = mlp.parts

    def a_state(inputs, hidden, outputs):
        """Random numbers for each tensor. The scales are not near 0 or 1."""
        return {
            "hidden.weight": draw.tensor((hidden, inputs)),
            "hidden.bias": draw.tensor((hidden,)),
            "output.weight": draw.tensor((outputs, hidden)),
            "output.bias": draw.tensor((outputs,)),
            "centre": draw.tensor((inputs,)) + 2,
            "scale": draw.tensor((inputs,)).abs() + 1.5,
        }

    def an_open_state(*widths):
        """A state in which each number affects the output: no relu gives 0, and nothing cancels."""
        state = a_state(*widths)
        for name in WEIGHTS:
            state[name] = state[name].abs() + 0.5
        state["hidden.bias"] = state["hidden.bias"].abs() + 200
        return state

    def computed(state, x):
        """The right result of a forward with the numbers of ``state``."""
        x = (x - state["centre"]) / state["scale"]
        hidden = (x @ state["hidden.weight"].mT + state["hidden.bias"]).relu()
        return hidden @ state["output.weight"].mT + state["output.bias"]

    def a_signed_state(x, *widths, **fitted):
        """A state with negative and positive outputs for x, so that a relu after them matters."""
        for _ in range(100):
            state = a_state(*widths)
            exact = {name: tensor.double() for name, tensor in state.items()} | fitted
            out = computed(exact, x.double())
            if out.min() < -0.1 and out.max() > 0.1:
                break
        return state

    def begun(*widths, many=False):
        upstream, x = torch.ones(3, widths[-1]), draw.tensor((3, widths[0]))

        def play(subject):
            one, two = subject(*widths), subject(*widths)
            saved, others = (dict(made.call("state_dict")) for made in (one, two))
            found = {
                "saved": shapes_of(one),
                "trained": sorted(one.gradients(upstream, x)["parameters"]),
                "begun": {name: all_are(saved.get(name), name) for name in (*BIASES, *BUFFERS)},
                "finite": all(bool(t.isfinite().all()) for t in saved.values()),
            }
            if max(widths) == 1:
                found["none"] = any(not saved[name].all() for name in WEIGHTS if name in saved)
            if many:
                found["weights"] = {
                    name: drawn(saved.get(name), others.get(name), n)
                    for name, n in zip(WEIGHTS, widths, strict=False)
                }
            return found

        places = {
            "['saved']": "what is saved",
            "['trained']": (
                "the registered parameters are not exactly the two weights and the two biases."
            ),
            "['finite']": "a fresh `MLP` contains an infinity or a NaN.",
            "['none']": "a number of a fresh weight is 0.",
            "['begun']['scale']": "the fresh `scale` is not made of ones.",
        }
        for name in (*BIASES, "centre"):
            places[f"['begun']['{name}']"] = f"the fresh `{name}` is not made of zeros."
        for name in WEIGHTS:
            at = f"['weights']['{name}']"
            places[f"{at}['deviation']"] = f"the deviation of the fresh `{name}` is not √(2/n)."
            normal = "are not from a normal distribution"
            places[f"{at}['mean']"] = f"the mean of the fresh `{name}` is not 0."
            for key in ("tails", "normal", "beyond"):
                places[f"{at}['{key}']"] = f"the numbers of the fresh `{name}` {normal}."
            places[f"{at}['their own']"] = f"the fresh `{name}` repeats numbers of its first row or column, apart from signs."
            places[f"{at}['anew']"] = f"two fresh MLPs have the same `{name}`."
        return Case(begins, play, shown="MLP({}, {}, {})".format(*widths), places=places)

    def all_are(tensor, name):
        """Whether a fresh tensor has only ones, if its name is `scale`, or only zeros.
        """
        return tensor is not None and bool((tensor == (1 if name == "scale" else 0)).all())

    def drawn(weight, other, n):
        """Facts about a fresh weight of 12,000 numbers or more, as numbers and booleans."""
        if weight is None or other is None or weight.dim() != 2:
            return None
        unit = weight.double() / math.sqrt(2 / n)
        size = max(unit.square().mean().sqrt().item(), 1e-9)
        return {
            "their own": not any(repeats(v.abs()) for v in (unit, unit.t())),
            "anew": not torch.equal(weight, other),
            # for two right answers, these logarithms differ by 0.08 once in 10^9
            "deviation": rough(math.log(size), 0.08),
            "mean": rough(unit.mean().item() / size, 0.1),
            # the kurtosis: it is 3 for a normal distribution and 1.8 for a uniform one; for two
            # right answers, it differs by 0.45 once in 10^11
            "tails": rough((unit / size).pow(4).mean().item(), 0.45),
            "normal": unevenness(unit / size) < 3.5,
            # the square root of how many values are beyond three deviations: it is 5.6 for 12,000
            # values and 10.2 for 40,000; for two right answers, it differs by 4.7 once in 10^10
            "beyond": rough(math.sqrt((unit.abs() > 3.01).sum().item()), 4.7),
        }

    def unevenness(values):
        """How far the numbers are from a normal distribution. By chance, it is above 3.5 once in 10^10."""
        found = torch.special.ndtr(values.flatten().sort().values)
        want = torch.linspace(0, 1, len(found), dtype=found.dtype)
        return ((found - want).abs().max() * math.sqrt(len(found))).item()

    def repeats(sizes):
        """Whether another row begins with mostly the same numbers as the first row, apart from signs."""
        found = (sizes[1:, :20] == sizes[:1, :20]).float().mean(1) > 0.5
        return sizes.shape[1] >= 20 and bool(found.any())

    def through(x, state, *widths):
        upstream = draw.tensor((*x.shape[:-1], widths[-1]))

        def play(subject):
            made = subject(*widths)
            made.call("load_state_dict", state)
            return made.call("__call__", x), pull(made, upstream, x, "x", *WEIGHTS, *BIASES)

        words = {name: f"`{name}`" for name in (*WEIGHTS, *BIASES)}
        places = {"[0]": "the output", **places_of_pull("[1]", x="x", **words)}
        return Case(forward, play, shown=f"x of {x.dim()} dimensions", places=places)

    def measured(shown, *several, used=True, mode="train", small=False):
        """`used`: compare the output, too. `small`: compare whether small deviations stay as they are."""
        inputs = several[-1].shape[-1]
        rows = several[-1].detach().reshape(-1, inputs).double()
        size = rows.var(0, correction=0).sqrt()
        size = torch.where(size > 0, size, 1.0)
        state = a_state(inputs, 3, 2)
        x = (rows.mean(0) + size * draw.tensor((4, inputs), torch.float64)).float()

        def play(subject):
            made = subject(inputs, 3, 2)
            made.call("load_state_dict", state)
            made.call(mode)
            for each in several:
                made.call("fit_inputs", each)
            centre, scale = (made.get(name) for name in BUFFERS)
            graph = [isinstance(t, torch.Tensor) and t.requires_grad for t in (centre, scale)]
            values = [t.detach() if isinstance(t, torch.Tensor) else t for t in (centre, scale)]
            kept = sorted(made.call("state_dict"))
            found = *values, any(graph), kept
            if small:
                close = (values[1].double() / size - 1).abs() < 0.01
                found += (close.tolist(),)
            return (*found, made.call("__call__", x)) if used else found

        places = {
            "[0]": "`centre`",
            "[1]": "`scale`",
            "[2]": "`centre` or `scale` has a graph.",
            "[3]": "`fit_inputs` changes the names in the state.",
            "[4]": "a small deviation does not stay as it is."
            if small
            else "the output after `fit_inputs`",
        }
        return Case(fits, play, shown=shown, places=places)

    def trained_after(x):
        inputs = x.shape[-1]
        state, upstream = a_state(inputs, 3, 2), draw.tensor((*x.shape[:-1], 2))

        def play(subject):
            made = subject(inputs, 3, 2)
            made.call("load_state_dict", state)
            made.call("fit_inputs", x)
            return pull(made, upstream, x, *WEIGHTS)

        places = places_of_pull("", **{name: f"`{name}`" for name in WEIGHTS})
        return Case(fits, play, shown="gradients after fit_inputs", places=places)

    def left_alone(x):
        def play(subject):
            return subject.drive("modules:overwritten", (x.shape[-1], 3, 2), x)

        places = {
            f"['{name}']": f"`{name}` changes when x is overwritten." for name in BUFFERS
        }
        return Case(fits, play, shown="x is overwritten afterwards", places=places)

    def moved(*widths):
        x = draw.tensor((2, 5, widths[0]), torch.float64) / 4  # of deviations below 1
        rows = x.flatten(0, 1)
        fitted = {"centre": rows.mean(0), "scale": rows.var(0, correction=0).sqrt()}
        state = a_signed_state(x, *widths, **fitted)
        exact = {name: tensor.double() for name, tensor in state.items()} | fitted
        want = computed(exact, x)

        def play(subject):
            made = subject(*widths)
            made.call("load_state_dict", state)
            made.call("to", torch.float64)
            dtypes = {name: t.dtype for name, t in made.call("state_dict").items()}
            made.call("fit_inputs", x)
            y = made.call("__call__", x)
            fits = isinstance(y, torch.Tensor) and y.shape == want.shape
            return dtypes, y, fits and bool(torch.allclose(y.double(), want, 1e-9, 1e-9))

        places = {
            "[0]": "after a move to float64, not all six tensors are float64.",
            "[1]": "the output after a move to float64",
            "[2]": "after a move to float64, the output is off by more than float64's rounding.",
        }
        return Case(rest, play, shown="moved to float64", places=places)

    def loaded(*widths):
        state, seen, x = (
            an_open_state(*widths),
            draw.tensor((6, widths[0])) * 3,
            draw.tensor((4, widths[0])),
        )

        def play(subject):
            made, again = subject(*widths), subject(*widths)
            made.call("load_state_dict", state)
            made.call("fit_inputs", seen)
            again.call("load_state_dict", dict(made.call("state_dict")))
            return again.call("__call__", x)

        places = {"": "the output after another `MLP`'s state was loaded"}
        return Case(rest, play, shown="saved after fit_inputs, and loaded", places=places)

    def driven(name, shown, places, *widths):
        state, x = an_open_state(*widths), draw.tensor((4, widths[0]))

        def play(subject):
            return subject.drive(f"modules:{name}", widths, state, x)

        return Case(rest, play, shown=shown, places=places)

    def counts(width, frozen):
        def play(subject):
            return subject.drive("modules:counted", width, frozen)

        places = {
            "['fresh']": "the count of a fresh `MLP`",
            "['frozen']": "the count with {} frozen".format(" and ".join(frozen)),
            "['thawed']": "the count after all parameters were unfrozen",
            "['tied']": "the count when both layers share one weight",
        }
        return Case(rest, play, shown=f"MLP({width}, {width}, {width})", places=places)

    i, h, o = draw.shape(3)
    yield begun(i, h, o)
    yield begun(1, 1, 1)
    # the two sizes of each layer differ: in one case the first is larger, in the other the second
    yield begun(draw.integer(40, 60), draw.integer(300, 400), draw.integer(40, 60), many=True)
    yield begun(draw.integer(300, 400), draw.integer(40, 60), draw.integer(300, 400), many=True)
    # if n is 1, the deviation is largest: a fixed bound on the numbers, which has no effect for
    # other n, has an effect here
    yield begun(1, draw.integer(40_000, 41_000), 1, many=True)

    rows = draw.tensor((4, i))
    state = a_signed_state(rows, i, h, o)
    yield through(rows, state, i, h, o)
    for layout in LAYOUTS:
        yield through(laid_out(draw, (4, i), layout), state, i, h, o)
        yield through(laid_out(draw, (3, 2, i), layout), state, i, h, o)
    for shape in ((i,), (2, 1, 3, i), (0, i), (1, i)):
        yield through(draw.tensor(shape), state, i, h, o)
    yield through(draw.tensor((3, 3)), a_state(3, 3, 3), 3, 3, 3)
    narrow = an_open_state(i, h, o)
    yield through(
        draw.tensor((4, i)) / 1e6,
        {**narrow, "centre": narrow["centre"] / 1e6, "scale": narrow["scale"] / 1e6},
        i,
        h,
        o,
    )
    yield through(draw.tensor((3, 1)), a_state(1, 1, 1), 1, 1, 1)

    n, t = draw.sample(range(3, 8), 2)
    yield measured("rows", draw.tensor((n, i)))
    yield measured("x of 3 dimensions", draw.tensor((t, n, i)))
    yield measured("x of 4 dimensions, transposed", draw.tensor((2, n, t, 3), layout="transposed"))
    yield measured("in eval mode", draw.tensor((n, i)), mode="eval")
    yield measured("a second call", draw.tensor((n, i)) * 3, draw.tensor((t, 2, i)))
    still = draw.tensor((4, 3)) * torch.tensor([1.0, 0.0, 1.0]) + torch.tensor([0.0, 2.0, 0.0])
    yield measured("an input that never changes", still, used=False)
    yield measured("an input that is always 0", still - torch.tensor([0.0, 2.0, 0.0]), used=False)
    some = draw.tensor((5, 3))
    some[[0, 1, 4], 1] = 2.0
    yield measured("an input that changes in the middle", some)
    small = draw.tensor((5, 3)) * torch.tensor([1.0, 1e-3, 100.0])
    yield measured("inputs of different sizes", small)
    tiny = draw.tensor((5, 3)) * torch.tensor([1e-5, 1.0, 1e-9])
    yield measured("inputs that change by little", tiny, used=False, small=True)
    # float32 rounds the mean of these inputs, so right outputs differ and are not compared
    yield measured(
        "inputs far from 0", draw.tensor((6, 3)) + torch.tensor([1e3, 0, -1e3]), used=False
    )
    one = torch.tensor([float(draw.integer(2, 9)) for _ in range(i)])
    yield measured("a single row, of one dimension", one)
    yield measured("a batch of one row", one[None, None])
    yield measured("one input", draw.tensor((n, 1)))
    for shape in ((n, i), (i,), (2, n, i)):
        x = draw.tensor(shape).requires_grad_()
        yield measured(f"x of {len(shape)} dimensions, which requires a gradient", x)
    yield trained_after(draw.tensor((n, i)))
    yield left_alone(draw.tensor((n, i)))
    yield left_alone(one)

    yield moved(i, h, o)
    yield loaded(i, h, o)
    places = {
        "['output']": "the output",
        "['centre']": "`centre` after `fit_inputs`",
        "['scale']": "`scale` after `fit_inputs`",
    }
    yield driven("revived", "made on the meta device, filled, called and fitted", places, i, h, o)
    places = {
        "['copy']": "the output of a copy, after the original has changed",
        "['original']": "the output of an original, after its copy has changed",
    }
    yield driven("copied", "called, then copied", places, i, h, o)
    yield counts(draw.integer(3, 6), ["hidden.weight", "hidden.bias"])
    yield counts(draw.integer(3, 6), ["output.bias"])
    yield counts(1, ["hidden.bias", "output.weight"])
    yield counts(draw.integer(3, 6), [*WEIGHTS, *BIASES])
