"""Views of the compiler: a rewritten graph, guards, passes, and what is saved."""

from __future__ import annotations

import importlib
import operator

import pytest
import torch

from tests.utils.views.examples import (
    CALLS,
    PAIR,
    a_line_that_is_too_long,
    by_columns,
    by_rows,
    half,
    names_of_the_length,
    without_the_sum,
)
from tests.utils.views.sheets import check
from utils import views
from utils.instruments.compiling import captured, replay

pytestmark = pytest.mark.slow(15)


def view(name):
    return importlib.import_module(f"utils.views.{name}")


NAMES = ("graph_rewrite", "guard_counter", "fusion_map", "saved_bytes")
rewrite, guards, fusion, saved = map(view, NAMES)


@pytest.fixture(scope="module")
def pictures():
    """Name -> the pictures of a view in all its states."""
    pairs = rewrite.aligned(
        rewrite.read(captured(half, PAIR[0])[0]),
        rewrite.read(without_the_sum(captured(half, PAIR[0])[0])),
    )
    answers = dict(zip(CALLS, replay(names_of_the_length, list(CALLS.values())), strict=True))
    wanted = [one.clone().requires_grad_() for one in PAIR]
    ways = [saved.eager(by_rows, wanted)]
    ways += [saved.compiled(name, by_rows, wanted) for name in saved.CUTS]
    return {
        "graph_rewrite": [lambda: rewrite.draw(pairs)],
        "guard_counter": [lambda n=n: guards.draw(answers, n + 1) for n in range(len(answers))],
        "saved_bytes": [lambda n=n: saved.draw(ways, n + 1) for n in range(len(ways))],
    }


@pytest.fixture(scope="module")
def fusion_maps(compiler):
    versions = {"by rows": by_rows, "by columns": by_columns, "long": a_line_that_is_too_long}
    maps = [fusion.read(name, one, PAIR, "cpu") for name, one in versions.items()]
    return [lambda n=n: fusion.draw(maps, n + 1) for n in range(len(maps))]


@pytest.fixture
def drawn(name, request):
    """The pictures of one view."""
    if name == "fusion_map":
        return request.getfixturevalue("fusion_maps")
    return request.getfixturevalue("pictures")[name]


WORDS = {
    "graph_rewrite": ["1 node removed, 0 nodes added", "add, add(mul, 1)", "truediv"],
    "guard_counter": ["7 calls, 5 graphs", "5 rows: graph 2 takes it", "The first graph is made"],
    "fusion_map": ["by rows: ", "from “y = x * torch.sigmoid(gate)”", "reads 24.6 kB"],
    "saved_bytes": ["eager: ", "minimum cut: ", "budget 0: ", "Lit: eager"],
}


@pytest.mark.parametrize("name", NAMES)
def test_the_text_describes_the_drawing(name, drawn):
    check(*drawn[0](), *WORDS[name])


def with_a_root(gm):
    """The graph with one more node, which no node reads."""
    (total,) = (node for node in gm.graph.nodes if node.target is operator.add)
    with gm.graph.inserting_after(total):
        gm.graph.call_function(torch.sqrt, (total,))
    return gm


@pytest.mark.parametrize(
    ("change", "end"),
    [
        (lambda gm: gm, "output, returns truediv."),
        (without_the_sum, "Removed: add, read by pow_1."),
        (with_a_root, "Added: sqrt, read by nobody."),
    ],
)
def test_removed_and_added_nodes_are_named_with_their_readers(change, end):
    graphs = captured(half, PAIR[0])[0], change(captured(half, PAIR[0])[0])
    _, alt = rewrite.draw(rewrite.aligned(*map(rewrite.read, graphs)))
    assert alt.strip().endswith(end)


def test_a_call_tells_why_it_was_refused(pictures):
    told = [draw()[1] for draw in pictures["guard_counter"]]
    assert "Graph 1 refuses: tensor x size mismatch at index 0. expected 3, actual 1." in told[3]
    assert "Graph 2 refuses: it needs 2 <= x.size()[0]. So graph 3 is made." in told[3]


def test_a_call_beyond_the_limit_says_so():
    calls = {f"“{'a' * n}”": (torch.ones(2), "a" * n) for n in range(1, 11)}
    answers = dict(zip(calls, replay(lambda x, k: x * len(k), list(calls.values())), strict=True))
    figure, alt = guards.draw(answers, 10)
    check(figure, alt, "10 calls, 8 graphs; 2 ran without the compiler", "the limit is reached")


def test_a_sum_over_columns_takes_a_pass_more(fusion_maps):
    rows, columns = (draw()[1].split(".")[1] for draw in fusion_maps[:2])
    assert "2 passes" in rows
    assert "3 passes" in columns


def test_bytes_of_all_ways():
    wanted = [one.clone().requires_grad_() for one in PAIR]
    size = 64 * 48 * 4
    eager, plain, cut = (
        saved.eager(by_rows, wanted),
        *(saved.compiled(name, by_rows, wanted) for name in ("plain cut", "minimum cut")),
    )
    assert eager.inputs == size  # x; of the gate only the sigmoid is saved
    assert cut.total < plain.total <= eager.total
    assert cut.inputs == 2 * size
    layer = torch.nn.Linear(48, 3)
    assert saved.eager(torch.nn.Sequential(layer, layer.__class__(3, 2)), [PAIR[0]]).made


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: views.guard_counter(half, {}), "1 to 12 calls, got 0"),
        (lambda: views.guard_counter(half, {"a": (PAIR[0],)}, call=2), "1 to 1, got 2"),
        (lambda: views.fusion_map({}), "at least one"),
        (lambda: views.saved_bytes(half, PAIR[0].requires_grad_(), way=6), "1 to 5 ways, got 6"),
    ],
)
def test_invalid_graphs_and_calls_are_refused(call, words):
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.usefixtures("compiler")
def test_a_version_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="1 to 1, got 0"):
        views.fusion_map({"a": half}, PAIR[0], version=0)
