"""Lab 08, exercise 1: Who may look where?"""

import torch

from hood.judge.checks.exercise import Case, Check, case

visible = Check(
    "visible",
    parts={"the past": 1, "late queries": 1, "padding": 1, "a window": 1},
    reads="Who may look where",
)


@visible.reference
def _(queries, keys, causal, padding, window):
    rows = [[True] * keys] if padding is None else padding.tolist()
    first = keys - queries
    return torch.tensor(
        [
            [
                [
                    real
                    and not (causal and there > first + here)
                    and not (window is not None and first + here - there >= window)
                    for there, real in enumerate(row)
                ]
                for here in range(queries)
            ]
            for row in rows
        ],
        dtype=torch.bool,
    )


@visible.cases
def _(draw):
    past, late, padding, window = visible.parts

    def asked(part, queries, keys, causal=True, real=None, width=None):
        rows = "no padding" if real is None else f"padding {tuple(real.shape)}"
        shown = f"{queries} queries, {keys} keys, causal={causal}, {rows}, window={width}"
        return case(part, queries, keys, causal, real, width, shown=shown)

    def real(rows, keys):
        mask = draw.tensor((rows, keys), torch.bool)
        mask[0, 0], mask[-1, -1] = False, True
        return mask

    n = draw.integer(3, 7)
    for causal in (True, False):
        yield asked(past, n, n, causal)
        yield asked(past, 1, 1, causal)
        size = draw.integer(8, 99)
        yield asked(past, size, size, causal)
        yield asked(late, draw.integer(2, 9), draw.integer(10, 60), causal)
        yield asked(late, 1, draw.integer(3, 6), causal)
        yield asked(padding, 3, 3, causal, torch.tensor([[False, True, True], [True, True, False]]))
        yield asked(padding, n, n, causal, real(draw.integer(2, 3), n))
        yield asked(padding, draw.integer(1, 2), n, causal, real(1, n))
        yield asked(window, n + 1, n + 1, causal, None, 2)
        yield asked(window, n, n, causal, None, 1)
        yield asked(window, 2, 6, causal, None, draw.integer(2, 4))
        yield asked(window, 3, 5, causal, real(2, 5), draw.integer(1, 3))
        yield asked(window, n, n, causal, None, n + draw.integer(0, 3))

        # for any random numbers, code that hides padded queries gives another result here
        apart = torch.tensor([[False, True, True, False, True], [True, True, False, True, True]])
        yield asked(window, 3, 5, causal, apart, 2)

        # with one query, a mask may share memory with `padding`: if so, writing a window into it
        # changes `padding`
        yield asked(window, 1, 4, causal, torch.ones(2, 4, dtype=torch.bool), 2)

    given = torch.tensor([[False, True, True], [True, True, True]])

    def untouched(subject):
        return subject(3, 3, True, given, None), given

    yield Case(padding, untouched, shown="3 queries, 3 keys, padding (2, 3)")
