"""Lays out a graph without cycles in rows: the users of a node are above it. No drawing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

Node = Any  # hashable
Edge = tuple[Node, Node]  # from a node to one of its inputs
GAP, LANE = 18, 14  # pixels between two items of a row, and the width of a passing edge


@dataclass(frozen=True)
class Layout:
    """A layout: the middle of each node, its row, and the bends of each edge."""

    rows: int
    row: dict[Node, int]
    x: dict[Node, float]
    bends: dict[Edge, list[tuple[int, float]]]  # (row, x) for each row that an edge passes


def layout(
    graph: Mapping[Node, Sequence[Node]], widths: Mapping[Node, float], left: float, right: float
) -> Layout:
    """Return a layout of `graph` (node -> its inputs), between `left` and `right`.

    Each node is below all its users. If an edge skips rows, it gets a lane in each skipped row.
    """
    row = dict.fromkeys(graph, 0)  # the longest path from a node without users, in edges
    for node in reversed(list(TopologicalSorter(graph).static_order())):
        for source in graph[node]:
            row[source] = max(row[source], row[node] + 1)
    rows: list[list] = [[] for _ in range(1 + max(row.values()))]
    for node in graph:
        rows[row[node]].append(node)
    above: dict[object, list] = {node: [] for node in graph}
    lanes: dict[Edge, list] = {}
    for node, inputs in graph.items():
        for source in dict.fromkeys(inputs):
            last: object = node
            lanes[node, source] = []
            for k in range(row[node] + 1, row[source]):
                lane = ("lane", node, source, k)
                rows[k].append(lane)
                above[lane] = [last]
                lanes[node, source].append(lane)
                last = lane
            above[source].append(last)
    x: dict[object, float] = {}
    for k, members in enumerate(rows):
        if k:
            members.sort(key=lambda m: sum(x[a] for a in above[m]) / max(1, len(above[m])))
        wide = [widths.get(m, LANE) for m in members]
        start = (left + right - sum(wide) - GAP * (len(wide) - 1)) / 2
        for member, width in zip(members, wide, strict=True):
            x[member] = start + width / 2
            start += width + GAP
    bends = {edge: [(lane[3], x[lane]) for lane in passed] for edge, passed in lanes.items()}
    return Layout(len(rows), row, {node: x[node] for node in graph}, bends)
