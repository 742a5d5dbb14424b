"""Data that is small to send and expensive for the grader to read, compare, clean or show."""

from __future__ import annotations

from nbformat import from_dict

from tests.attacks.catalogue import Family
from tests.attacks.connection import CONNECTION
from tests.attacks.submission import Work

family = Family("costs")
attack = family.attack


def reply(value: str) -> str:
    """Return code that answers every request with hand-written JSON as the value.

    Args:
        value: a Python expression for the text of the JSON.
    """
    return (
        CONNECTION
        + f"""
VALUE = {value}
def serve(thing):
    while True:
        request = rpc_server.receive(_connection)
        if request is None or request["do"] == "end":
            return
        head = '{{"dict": [["id", "after", "value"], ["%s", [], ' % request["id"]
        text = (head + VALUE + ']]}}').encode()
        _connection.sendall(codec.HEADER.pack(len(text), 0) + text)
rpc_server.serve = serve
"""
    )


ZEROS = "'],[0' + ',0' * 48_999 + ']]}'"
COLLIDING = "'{\"dict\": [[' + ','.join(str(k * (2**61 - 1)) for k in range(49_000)) + " + ZEROS
SMALL = "'{\"dict\": [[' + ','.join(str(k << 40) for k in range(49_000)) + " + ZEROS
FIELDS = "'{\"array\": [0, 0, \"' + ','.join(['i1'] * 2_000_000) + '\", [0], \"C\"]}'"
LISTS = "'[' + '[],' * ((1 << 24) // 3 - 100) + '[]]'"
OBJECTS = "'[' + '{\"\":0},' * ((1 << 24) // 7 - 100) + '0]'"
DIGITS = "'[' + ','.join(['9' * 4300] * 3800) + ']'"
CONFIG = (
    '\'{"config": ["hood.judge.checks.compare", "Tolerance", '
    '{"rtol": [[]], "atol": 0, "reason": ""}]}\''
)


@attack(costs=("row_sums", "corner"), tells="a dict with unsuitable keys", cell_seconds=20)
def replies_with_keys_that_collide(work: Work) -> None:
    """Answers with a dict of 49,000 integers that all have the same hash."""
    work.before("row_sums", reply(COLLIDING))


@attack(costs=("row_sums", "corner"), tells="a dict with unsuitable keys", cell_seconds=20)
def replies_with_many_keys_that_are_numbers(work: Work) -> None:
    """Answers with a dict of 49,000 integers of moderate size that have the same low bits."""
    work.before("row_sums", reply(SMALL))


@attack(costs=("row_sums", "corner"), tells="values", cell_seconds=20)
def replies_with_a_dtype_of_millions_of_fields(work: Work) -> None:
    """Answers with an array whose dtype is six million characters long."""
    work.before("row_sums", reply(FIELDS))


@attack(costs=("row_sums", "corner"), tells="values", cell_seconds=20)
def replies_with_millions_of_empty_lists(work: Work) -> None:
    """Answers with 16 MiB of empty lists, which take forty times as much memory."""
    work.before("row_sums", reply(LISTS))


@attack(costs=("row_sums", "corner"), tells="values", cell_seconds=20)
def replies_with_millions_of_small_objects(work: Work) -> None:
    """Answers with 16 MiB of JSON objects of one entry each."""
    work.before("row_sums", reply(OBJECTS))


@attack(costs=("row_sums", "corner"), cell_seconds=20)
def replies_with_numbers_of_thousands_of_digits(work: Work) -> None:
    """Answers with thousands of integers of 4,300 digits, slow to read and to print."""
    work.before("row_sums", reply(DIGITS))


@attack(costs=("row_sums", "corner"), cell_seconds=20)
def replies_with_what_cannot_be_compared(work: Work) -> None:
    """Answers with arrays and data classes that no comparison supports."""
    work.answer(
        "row_sums",
        """
        import numpy
        def row_sums(x): return numpy.zeros(1, numpy.longdouble)
        """,
    )
    work.before("corner", reply(CONFIG))


@attack(tells="could not be read", cell_seconds=20)
def sends_millions_of_empty_lists(work: Work) -> None:
    """Sends 8 MiB of empty lists itself, without the kernel, as a message about a display."""
    work.first(
        """
        from hood.grader.inside import messages
        head = b'{"kind": "display_data", "cell": "", "metadata": {}, "data": {"a": ['
        for packet in messages.packets(head + b"[]," * 2_700_000 + b"0]}}"):
            get_ipython().sender.end.send(packet)
        """
    )


@attack(seconds=30.0, cell_seconds=20)
def displays_one_thing_thousands_of_times(work: Work) -> None:
    """Gives thousands of displays the same id, so that each changes all earlier displays."""
    work.first(
        """
        from IPython.display import display
        for _ in range(6000):
            display({"text/plain": "x"}, raw=True, display_id="a")
        large = {"text/plain": "", "image/png": "A" * 500_000}
        display(large, raw=True, display_id="a", update=True)
        """
    )


def nested(unit: str, times: int) -> list[str]:
    """Return the same text twice: in a text cell, and in code that displays it."""
    return [unit * times, f"from IPython.display import HTML\ndisplay(HTML({unit!r} * {times}))"]


DISTINCT = "".join(f"<b class={number}><p>" for number in range(4000))


@attack(cell_seconds=20)
def nests_markup(work: Work) -> None:
    """Shows unclosed tags, which a page's parser opens again in each paragraph."""
    for unit, times in (("<b><p>", 16_000), ("<div>", 30_000), ("<b>x</i>", 16_000)):
        text, code = nested(unit, times)
        work.first(code)
        if len(text) < 100_000:
            work.text(text)


@attack(cell_seconds=20)
def opens_thousands_of_different_tags(work: Work) -> None:
    """Opens 4,000 different tags; every later paragraph opens all of them again."""
    work.text(DISTINCT)
    work.first(
        "from IPython.display import HTML\n"
        "HTML(''.join(f'<b class={number}><p>' for number in range(4000)))"
    )


@attack(cell_seconds=20)
def writes_a_tag_of_thousands_of_attributes(work: Work) -> None:
    """Shows one tag with 20,000 attributes; the parser compares each with all earlier ones."""
    text = "<p " + " ".join(f"a{number}" for number in range(10_000)) + ">"
    work.text(text)
    work.first(
        "from IPython.display import HTML\n"
        "HTML('<p ' + ' '.join(f'a{number}' for number in range(25_000)) + '>')"
    )


@attack(cell_seconds=20)
def names_one_picture_hundreds_of_times(work: Work) -> None:
    """Pastes one picture of 2 MB into a text cell, and names it 240 times."""
    work.text("![x](attachment:a.png)\n" * 240)
    work.nb.cells[-1].attachments = from_dict({"a.png": {"image/png": "A" * 2_000_000}})


@attack(cell_seconds=20, seconds=60)
def writes_markdown_that_is_slow(work: Work) -> None:
    """Writes and displays tens of thousands of brackets, stars and quotes, each kind in a cell."""
    for number, unit in enumerate(("[", "> ", "*_", "`", "![", "- ", "| a ", "[x](", "**a", "$")):
        if number < 4:
            work.text(unit * (30_000 // len(unit)))
        work.first(f"from IPython.display import Markdown\ndisplay(Markdown({unit!r} * 20_000))")
