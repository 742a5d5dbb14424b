"""Tables from spreadsheet programs and learning platforms are read by one reader."""

import tracemalloc
import unicodedata
from pathlib import Path

import pytest

from hood import UserError
from hood.classroom.formats.tables import MAX_BYTES, read_table, table_of

WANTED = [["Username", "First name"]]
ROWS = [
    {"Username": "ana", "First name": "Ana Mar\xeda", "Group": "A"},
    {"Username": "jos\xe9", "First name": "Jos\xe9", "Group": "B; C"},
]
COMMAS = 'Username,First name,Group\nana,Ana Mar\xeda,A\njos\xe9,Jos\xe9,"B; C"\n'
SEMICOLONS = 'Username;First name;Group\r\nana;Ana Mar\xeda;A\r\njos\xe9;Jos\xe9;"B; C"\r\n'
TABS = COMMAS.replace(",", "\t")
FORMS = {
    "commas": COMMAS.encode(),
    "semicolons": SEMICOLONS.encode(),
    "tabs": TABS.encode(),
    "a mark": COMMAS.encode("utf-8-sig"),
    "Windows-1252": SEMICOLONS.encode("cp1252"),
    "what Excel calls Unicode": TABS.encode("utf-16"),
    "UTF-16 the other way": b"\xfe\xff" + TABS.encode("utf-16-be"),
    "UTF-16 without a mark": TABS.encode("utf-16-le"),
    "UTF-16 the other way without a mark": TABS.encode("utf-16-be"),
    "decomposed": unicodedata.normalize("NFD", COMMAS).encode(),
    "spaces around and others in it": COMMAS.replace("Username,", " Username\xa0,\u200b")
    .replace("First name", "First\xa0name ")
    .replace("Ana Mar", "Ana\u2003Mar")
    .encode(),
    "a quoted line break": COMMAS.replace("Ana Mar\xeda", '"Ana\nMar\xeda"').encode(),
    "empty lines": ("\n\n" + COMMAS + ",,\n\n\n").encode(),
    "old line ends": COMMAS.replace("\n", "\r").encode(),
    "what separates said": ("sep=;\r\n" + SEMICOLONS).encode(),
    "a title above": ("The class of 2026, all groups, and more\n\n" + COMMAS).encode(),
    "headings again": (COMMAS + COMMAS.partition("\n")[0] + "\n").encode(),
    "separators at the ends": SEMICOLONS.replace("\r", ";;\r").encode(),
    "every cell quoted": COMMAS.replace("ana,Ana Mar\xeda,A", '"ana","Ana Mar\xeda","A"').encode(),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_read_from_any_program(form):
    table = table_of(FORMS[form], "class.csv", WANTED)
    rows = [{k: v for k, v in row.cells.items() if k} for row in table.rows]
    assert rows == ROWS
    assert bool(table.note) == (form == "Windows-1252")
    assert (
        "class.csv is not in UTF-8, so it was read as Windows-1252" in table.note or not table.note
    )


def test_each_row_has_the_number_of_its_first_line():
    text = 'a,b\n\n"1\n1",2\n3,4\n'
    table = table_of(text.encode(), "t.csv")
    assert [(row.line, row.cells) for row in table.rows] == [
        (3, {"a": "1 1", "b": "2"}),
        (5, {"a": "3", "b": "4"}),
    ]
    assert table.where(5, "b") == "t.csv:5, column 'b'"


def test_a_row_may_be_shorter_than_the_header():
    assert table_of(b"a,b,c\n1\n", "t.csv").rows[0].cells == {"a": "1", "b": "", "c": ""}


def test_a_table_may_have_no_rows():
    assert table_of(b"", "t.csv").columns == []
    assert table_of(b"a;b\n", "t.csv", [["c"]]).columns == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"a,b\n1,2\n3,4,5\n", "t.csv:3: expected 2 cells, one for each heading, got 3"),
        (b'a,b\n"1,2\n3,4\n', "t.csv:2: expected quotation marks only around a whole cell"),
        (b"a,a,b\n1,2,3\n", "t.csv has two columns 'a'"),
        (b"PK\x03\x04...", "t.csv is a spreadsheet, expected CSV: save it as CSV in UTF-8"),
        (b"a,b\n\x81,2\n", "t.csv is not text in UTF-8, UTF-16 or Windows-1252"),
        (b"a,b\n\x00,2\n", "t.csv is not text in UTF-8, UTF-16 or Windows-1252"),
        (b"a" + b"," * 5_000 + b"\n", "t.csv has 5001 columns, expected at most 1000"),
        (b"a,b\n" + b"x" * 200_000, "t.csv:2: expected quotation marks"),
        (b"a" * (MAX_BYTES + 1), "t.csv is larger than 16 MB"),
    ],
)
def test_an_invalid_table_is_refused_with_its_place(data, said):
    with pytest.raises(UserError) as refused:
        table_of(data, "t.csv", [["a"]])
    assert said in str(refused.value)


def test_an_endless_file_is_read_only_up_to_the_limit_of_a_table():
    tracemalloc.start()
    try:
        with pytest.raises(UserError, match="larger than 16 MB"):
            read_table(Path("/dev/zero"))
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_BYTES
    finally:
        tracemalloc.stop()


def test_a_missing_file_is_reported(tmp_path):
    with pytest.raises(UserError, match=r"class.csv can't be read: .*No such file"):
        read_table(tmp_path / "class.csv")
