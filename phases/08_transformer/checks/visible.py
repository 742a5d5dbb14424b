"""Lab 08, exercise 1: Who may look where?"""

import torch

from utils.checks.exercise import Case, Check, case, edited
from utils.checks.lab_solution import lab_solution

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
        yield asked(late, draw.integer(2, 4), draw.integer(5, 8), causal)
        yield asked(late, 1, draw.integer(3, 6), causal)
        yield asked(padding, 3, 3, causal, torch.tensor([[False, True, True], [True, True, False]]))
        yield asked(padding, n, n, causal, real(draw.integer(2, 3), n))
        yield asked(padding, draw.integer(1, 2), n, causal, real(1, n))
        yield asked(window, n + 1, n + 1, causal, None, 2)
        yield asked(window, n, n, causal, None, 1)
        yield asked(window, 2, 6, causal, None, draw.integer(2, 4))
        yield asked(window, 3, 5, causal, real(2, 5), draw.integer(1, 3))
        yield asked(window, n, n, causal, None, n + draw.integer(0, 3))

        # whoever hides the queries that are padding must differ, whatever is drawn
        apart = torch.tensor([[False, True, True, False, True], [True, True, False, True, True]])
        yield asked(window, 3, 5, causal, apart, 2)

        # one query: a mask made of `padding` may be `padding` itself, and a window changes it
        yield asked(window, 1, 4, causal, torch.ones(2, 4, dtype=torch.bool), 2)

    given = torch.tensor([[False, True, True], [True, True, True]])

    def untouched(subject):
        return subject(3, 3, True, given, None), given

    yield Case(padding, untouched, shown="3 queries, 3 keys, padding (2, 3)")


_visible = lab_solution(__name__, "visible")


def _misconception(name, explanation, earns, *edits):
    visible.misconception(name, explanation, earns=earns)(edited(_visible, *edits))


_misconception(
    "aligned at the top left",
    "the first query stands at the first key, where it should stand among the last ones.",
    1,
    ("torch.arange(keys - queries, keys)", "torch.arange(queries)"),
)
_misconception(
    "not itself",
    "a position is not allowed to look at itself.",
    0,
    ("theirs <= mine", "theirs < mine"),
)
_misconception(
    "a window from the row's number",
    "the window is counted from a query's row, and not from its position, so late queries see too much.",
    3,
    ("mine - theirs < window", "torch.arange(queries)[:, None] - theirs < window"),
)
_misconception(
    "the future instead of the past",
    "queries see what comes after them, and nothing before.",
    0,
    ("theirs <= mine", "theirs >= mine"),
)
_misconception(
    "the other sense",
    "it is True where a query may *not* look.",
    0,
    ("return allowed", "return ~allowed"),
)
_misconception(
    "padding hides queries",
    "rows are hidden where the query is padding; the keys that are not real stay in sight.",
    2,
    ("padding[:, None, :]", "padding[:, keys - queries:, None]"),
)
_misconception(
    "padding hides queries too",
    "a query that is padding sees nothing at all.",
    2,
    ("padding[:, None, :]", "padding[:, None, :] & padding[:, keys - queries:, None]"),
)
_misconception(
    "padding the wrong way round",
    "the real tokens are hidden, and what fills up is in sight.",
    2,
    ("padding[:, None, :]", "~padding[:, None, :]"),
)
_misconception(
    "everybody sees itself",
    "a query sees its own position even where that is padding.",
    2,
    ("padding[:, None, :]", "(padding[:, None, :] | (theirs == mine))"),
)
_misconception(
    "the first row's padding",
    "all rows of the batch have the padding of the first one.",
    2,
    ("padding[:, None, :]", "padding[:1, None, :].expand(len(padding), -1, -1)"),
)
_misconception(
    "a window too narrow",
    "a query sees one position fewer than its window has.",
    3,
    ("mine - theirs < window", "mine - theirs < max(1, window - 1)"),
)
_misconception(
    "a window with causal alone",
    "the window hides nothing where `causal` is False.",
    3,
    ("if window is not None:", "if window is not None and causal:"),
)
_misconception(
    "a window too wide",
    "a query sees one position more than its window has.",
    3,
    ("mine - theirs < window", "mine - theirs <= window"),
)
_misconception(
    "a window on both sides",
    "the window hides positions after a query, too.",
    3,
    ("mine - theirs < window", "(mine - theirs).abs() < window"),
)
_misconception(
    "a window of the last keys",
    "for every query the window holds the last keys of all, and not those before itself.",
    3,
    ("mine - theirs < window", "theirs >= keys - window"),
)
_misconception(
    "a window is causal",
    "with a window nothing after a query is seen, causal or not.",
    3,
    ("(mine - theirs < window)", "((mine - theirs < window) & (theirs <= mine))"),
)


@visible.alternate("triangles")
def _(queries, keys, causal, padding, window):
    mask = torch.ones(queries, keys)
    offset = keys - queries
    if causal:
        mask = mask.tril(offset)
    if window is not None:
        mask = mask.triu(offset - window + 1)
    batch = 1 if padding is None else len(padding)
    mask = mask.bool().expand(batch, queries, keys).clone()
    if padding is not None:
        mask.masked_fill_(~padding.unsqueeze(1), False)
    return mask


@visible.alternate("a loop over queries")
def _(queries, keys, causal, padding, window):
    if padding is None:
        padding = torch.ones(1, keys, dtype=torch.bool)
    rows = []
    for query in range(queries):
        place = keys - queries + query
        row = padding.clone()
        if causal:
            row[:, place + 1 :] = False
        if window is not None:
            row[:, : max(0, place - window + 1)] = False
        rows.append(row)
    return torch.stack(rows, dim=1)


visible.equivalent(("padding[:, None, :]", "padding[:, None]"), because="it is the same view")
