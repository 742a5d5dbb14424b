"""A cell's outputs are kept as in a notebook, in time proportional to the messages."""

from hood.grader.sandbox.outputs import MOST_OF_ONE, NOT_AGAIN, Outputs
from tests.growth import grows_too_fast


def display(text, name="a", kind="display_data"):
    data = {"text/plain": text}
    return {"kind": kind, "cell": 1, "data": data, "metadata": {}, "display_id": name}


def collected(*messages):
    outputs = Outputs()
    for message in messages:
        outputs.add(message)
    return [one.get("text") or one.data["text/plain"] for one in outputs.shown]


def test_an_update_changes_every_display_of_its_id():
    shown = [display("1"), display("2", None), display("3"), display("4", "b")]
    assert collected(*shown) == ["3", "2", "3", "4"]
    assert collected(*shown, display("5", "a", "update_display_data")) == ["5", "2", "5", "4"]


def test_some_of_many_displays_with_one_id_stay_and_show_the_last_update():
    many = [display(str(number)) for number in range(MOST_OF_ONE + 3)]
    after = [display("z", None)]
    last = str(MOST_OF_ONE + 2)
    assert collected(*many, *after) == [*[last] * MOST_OF_ONE, NOT_AGAIN, "z"]
    clear = {"kind": "clear_output", "cell": 1, "wait": True}
    assert collected(*many, clear, display("new")) == ["new"]


def test_many_displays_with_one_id_take_no_more_than_linear_time():
    def work(count):
        collected(*[display("x")] * count)

    assert not grows_too_fast(work, int, 500)
