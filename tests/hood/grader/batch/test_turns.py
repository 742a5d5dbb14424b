"""Long submissions wait until the others are graded, and lose nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from hood.classroom.recording.command import FEW, OWN
from hood.grader.batch import pool as module
from hood.grader.batch.job import NotebookResult, Result
from hood.grader.batch.pool import Pool
from hood.grader.batch.turns import MOST_BYTES, Turns
from tests.hood.classroom.recording.small import answers, make_small

FULL = 300  # seconds of the lab
START = 1.0  # overhead of each turn, in seconds


def jobs(*names: str, size: int = 1) -> list:
    return [SimpleNamespace(name=name, submission=SimpleNamespace(bytes=size)) for name in names]


def play(turns: Turns, needs: dict[str, float]) -> list[tuple[str, float]]:
    """Grade one submission after the other. Return learner -> seconds from the start to the end."""
    ended, now = [], 0.0
    while turn := turns.next():
        name = turn.job.name
        seconds, need = FULL if name == OWN else turns.seconds(turn), needs[name]
        now += START + min(seconds, need, FULL)
        if need > seconds and seconds < FULL:
            turns.put_off(turn, seconds)
        else:
            turns.ended(min(need, FULL))
            ended.append((turn.job.name, now))
    return ended


@pytest.mark.parametrize("hostile_first", [True, False])
@pytest.mark.parametrize("usual", [0.5, 1.0, 3.0, 20.0])
def test_honest_learners_are_graded_in_twice_the_time_of_an_honest_class(
    usual: float, hostile_first: bool
) -> None:
    hostile, honest = [f"a{n}" for n in range(10)], [f"b{n}" for n in range(20)]
    needs = dict.fromkeys(hostile, 1e9) | dict.fromkeys(honest, usual)
    names = [*hostile, *honest] if hostile_first else [*honest, *hostile]
    names.insert(FEW, OWN)
    needs[OWN] = usual
    ended = play(Turns(jobs(*names)), needs)
    assert sorted(name for name, _ in ended) == sorted(needs)
    assert {name for name, _ in ended[-10:]} == set(hostile)
    assert ended[-11][1] <= 2 * 30 * (START + usual)


@pytest.mark.parametrize("usual", [0.5, 3.0, 20.0, 100.0])
def test_an_honest_class_takes_little_longer_than_without_turns(usual: float) -> None:
    names = [f"b{n}" for n in range(30)]
    names.insert(FEW, OWN)
    ended = play(Turns(jobs(*names)), dict.fromkeys(names, usual))
    assert ended[-1][1] <= 1.2 * 30 * (START + usual)


def test_among_long_submissions_the_shorter_ones_come_first() -> None:
    needs = {"endless": 1e9, "slow": 25.0} | {f"b{n}": 1.0 for n in range(8)}
    ended = [name for name, _ in play(Turns(jobs(*needs)), needs)]
    assert ended[-2:] == ["slow", "endless"]


def test_waiting_submissions_do_not_fill_the_memory() -> None:
    made = []

    def endless() -> Iterator:
        for n in range(100):
            made.append(n)
            yield from jobs(f"a{n}", size=MOST_BYTES // 4)

    turns = Turns(endless())
    turns.ended(1.0)
    for _ in range(5):
        turn = turns.next()
        assert turn is not None
        turns.put_off(turn, turns.seconds(turn))
    assert len(made) == 5
    again = turns.next()
    assert (again and again.job.name, len(made)) == ("a0", 5)


@pytest.mark.slow(5)
def test_the_pool_yields_each_job_once_and_the_long_ones_last(tmp_path, monkeypatch) -> None:
    seen: list[tuple[str, int]] = []

    def grade(_: object, job) -> Result:
        seen.append((job.student, job.turn))
        time.sleep(0.02)
        need = 100 if job.student in ("s0", "s1", "s2") else 1
        if job.turn and need > job.turn:
            return Result((), turn_over=True)
        return Result((NotebookResult("lab", b"", "", {}, {}, (), need),))

    monkeypatch.setattr(module.Workers, "grade", grade)
    every = list(answers(make_small(tmp_path / "course"), *["score 1"] * 12))
    with Pool(2, sandbox=False) as pool:
        found = [(job.student, job.turn) for job, _ in pool.run(iter(every))]
    assert sorted(found) == sorted((job.student, 0) for job in every)
    long = {"s0", "s1", "s2"}
    assert not long & {student for student, _ in found[:7]}
    whole = [student for student, turn in seen if not turn]  # when no other submission waits
    assert set(whole[-1:]) <= {*long, "s10", "s11"}
    assert {student for student, turn in seen if turn} >= long


def test_a_single_submission_has_no_turn(tmp_path, monkeypatch) -> None:
    seen: list[int] = []

    def grade(_: object, job) -> Result:
        seen.append(job.turn)
        return Result((NotebookResult("lab", b"", "", {}, {}),))

    monkeypatch.setattr(module.Workers, "grade", grade)
    with Pool(2, sandbox=False) as pool:
        list(pool.run(iter(answers(make_small(tmp_path / "course"), "score 1", "score 1"))))
    assert seen == [0, 0]
