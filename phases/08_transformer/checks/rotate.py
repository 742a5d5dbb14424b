"""Lab 08, exercise 11: Positions by rotation"""

import torch

from hood.judge.checks.compare import Tolerance
from hood.judge.checks.exercise import Case, Check

rotate = Check(
    "rotate",
    parts={"pairs and angles": 1, "any positions": 1, "dtypes": 1},
    reads="What a block looks like today",
    tolerance=Tolerance(1e-4, 1e-4, "angles in float32"),
)


@rotate.reference
def _(x, positions, base):
    half = x.shape[-1] // 2
    pairs = torch.complex(*x.to(torch.float64).split(half, -1))
    frequencies = base ** -torch.linspace(0, 1, half + 1, dtype=torch.float64)[:-1]
    angles = positions.to(torch.float64)[:, None, :, None] * frequencies
    turned = pairs * torch.polar(torch.ones_like(angles), angles)
    return torch.cat([turned.real, turned.imag], -1).to(x.dtype)


def near(a, b, off=2e-3):
    """Whether two results of a learner are tensors of one shape with nearly equal numbers."""
    tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    return tensors and a.shape == b.shape and bool(((a - b).abs() <= off).all())


@rotate.cases
def _(draw):
    pairs, any_positions, dtypes = rotate.parts

    def base():
        return float(draw.integer(10, 99))

    def asked(heads, length, d, base, dtype=torch.float32, layout="contiguous"):
        x = draw.tensor((1, heads, length, d), dtype, layout)
        positions, wide = torch.arange(length)[None], dtype == torch.float64

        def play(subject):
            came = subject(x, positions, base)
            if not isinstance(came, torch.Tensor) or came.shape != x.shape:
                return {"zero": True, "lengths": True, "first": True, "rotated": came}
            (a, b), (c, e) = (one.double().chunk(2, -1) for one in (x, came))
            p = positions.double()
            first = a[..., 0] * p.cos() - b[..., 0] * p.sin()
            return {
                "zero": near(came[:, :, 0], x[:, :, 0], 1e-12 if wide else 2e-3),
                "lengths": near(c**2 + e**2, a**2 + b**2, 0.01),
                "first": near(c[..., 0], first),
                "rotated": came,
            }

        places = {
            "['zero']": (
                "A token at position 0 is changed, for example because float64 numbers are rounded to "
                "float32. All its angles are 0."
                if wide
                else "A token at position 0 is changed, but all its angles are 0."
            ),
            "['lengths']": (
                "For a pair of channels c and c + d/2, the root of a² + b² is changed. A rotation of "
                "the pair keeps it."
            ),
            "['first']": "The first pair, channels 0 and d/2, is not rotated by p.",
            "['rotated']": "the result",
        }
        return Case(pairs, play, shown=f"x {tuple(x.shape)}, base {base:g}", places=places)

    yield asked(1, 3, 2, base())
    yield asked(1, draw.integer(3, 5), 4, base())
    yield asked(2, draw.integer(6, 9), 8, base())
    yield asked(3, 4, 6, base(), torch.float64)
    yield asked(1, 12, 10, 10000.0 * draw.integer(1, 50))
    yield asked(2, 5, 8, base(), layout="transposed")
    yield asked(2, 1, 4, base())

    def moved(heads, length, d, base):
        """Answers are compared with one another, so a wrong angle costs nothing here."""
        queries, keys = draw.tensor((2, 2, length, heads, d)).transpose(2, 3)
        first = draw.integer(1, 9)
        positions = torch.arange(length) + torch.tensor([[0], [first]])
        by, cached = draw.integer(100, 300), length - draw.integer(1, 2)

        def play(subject):
            def turned(x, positions=positions):
                came = subject(x, positions, base)
                right = isinstance(came, torch.Tensor) and came.shape == x.shape
                return came if right else torch.full(x.shape, torch.nan)

            q, k = turned(queries), turned(keys)
            scores = q @ k.mT
            later = turned(queries, positions + by) @ turned(keys, positions + by).mT
            return {
                "shape": not bool(q.isnan().any()),
                "moves": not torch.equal(k, keys)
                and not torch.equal(q, turned(queries, positions + 1)),
                "alone": near(turned(keys[1:], positions[1:]), k[1:]),
                "cached": near(
                    turned(keys[:, :, cached:], positions[:, cached:]), k[:, :, cached:]
                ),
                "gap": near(turned(keys[:, :, ::2], positions[:, ::2]), k[:, :, ::2]),
                "distance": near(later, scores, 0.02),
            }

        places = {
            "['shape']": "The result is not a tensor of x's shape, or it has a NaN.",
            "['moves']": "Keys or queries are not changed by their positions.",
            "['alone']": "A row of a batch gets other numbers than it gets alone.",
            "['cached']": "The last tokens get other numbers than in one pass over the whole text.",
            "['gap']": "If every second token is left out, a token at the same position gets other numbers.",
            "['distance']": (
                "If all positions are larger by the same number, the scores of queries and keys change."
            ),
        }
        shown = (
            f"x {tuple(queries.shape)}, rows that begin at positions 0 and {first}, base {base:g}"
        )
        return Case(any_positions, play, shown=shown, places=places)

    yield moved(2, draw.integer(4, 6), 4, base())
    yield moved(3, draw.integer(4, 6), 8, 10000.0)
    yield moved(1, 5, 2, base())

    def of_dtype(dtype, first):
        """An answer is compared with its own numbers for the same x in float64."""
        x = draw.tensor((2, 2, 3, 8), dtype)
        positions = torch.tensor([[0], [first]]) + torch.arange(3)
        some = base()

        def play(subject):
            came = subject(x, positions, some)
            wide = subject(x.double(), positions, some)
            longer = torch.cat([x, x[:, :, :1]], 2).double()
            fresh = subject(longer, torch.cat([positions, positions[:, :1]], 1), some)
            named = (
                str(one.dtype) if isinstance(one, torch.Tensor) else "" for one in (came, wide)
            )
            # each of a pair's numbers has the size of the pair, and is rounded three times at most
            fine = {torch.float32: 1e-3, torch.float16: 0.01, torch.bfloat16: 0.04}[dtype]
            size = float(x.abs().max()) + 1
            return {
                "dtypes": tuple(named),
                "moves": not (isinstance(wide, torch.Tensor) and torch.equal(wide, x.double())),
                "near": near(came, wide, fine * size),
                "fresh": isinstance(fresh, torch.Tensor)
                and near(fresh[:, :, :-1], wide, 1e-3 * size),
            }

        name = str(dtype).removeprefix("torch.")
        places = {
            "['dtypes'][0]": f"the dtype of the result for x in {name}",
            "['dtypes'][1]": "the dtype of the result for x in float64",
            "['moves']": "The result for x in float64 is x itself.",
            "['near']": (
                f"The result in {name} is far from the result in float64. Rounding of the rotated "
                f"numbers does not explain that."
            ),
            "['fresh']": (
                f"In float64, a token gets other numbers after a call with {name} than in a call with "
                "one token more."
            ),
        }
        return Case(dtypes, play, shown=f"x in {name}, positions from {first} on", places=places)

    yield of_dtype(torch.float32, draw.integer(3, 30))
    yield of_dtype(torch.bfloat16, 2 * draw.integer(130, 200) + 1)
    yield of_dtype(torch.float16, 2 * draw.integer(1030, 1100) + 1)
    yield of_dtype(torch.bfloat16, draw.integer(3, 30))
