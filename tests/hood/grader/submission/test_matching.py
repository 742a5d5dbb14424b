"""Which file of a folder counts as which notebook of the lab."""

import pytest

from hood.grader.submission.matching import match


@pytest.mark.parametrize(
    ("names", "p1", "p2"),
    [
        ("p1.ipynb p2.ipynb", "p1.ipynb", "p2.ipynb"),
        ("p1_(1).ipynb P2.ipynb", "p1_(1).ipynb", "P2.ipynb"),
        ("p1_jane.ipynb Copy_of_p2.ipynb", "p1_jane.ipynb", "Copy_of_p2.ipynb"),
        ("p1.IPYNB p2.ipynb.txt", "p1.IPYNB", "p2.ipynb.txt"),
        ("p1.ipynb.json p2.html", "p1.ipynb.json", "p2.html"),
        ("p1.ipynb p1-Copy1.ipynb", "p1.ipynb", ""),  # a copy of p1 is not p2
        ("P1.ipynb p1-Copy1.ipynb p2.ipynb", "P1.ipynb", "p2.ipynb"),
        ("p1.ipynb homework.ipynb", "p1.ipynb", "homework.ipynb"),
        ("p1_(1).ipynb p1_(2).ipynb", "", ""),  # which of them?
        ("p10.ipynb homework.ipynb", "", ""),
        ("p1.ipynb p2.json homework.ipynb", "p1.ipynb", "homework.ipynb"),  # data is data
        ("p1.ipynb ._p2.ipynb p2.zip", "p1.ipynb", ""),
    ],
)
def test_each_notebook_gets_the_one_file_that_fits_it_best(names, p1, p2):
    found = match(["p1.ipynb", "p2.ipynb"], names.split())
    assert (found["p1.ipynb"].taken, found["p2.ipynb"].taken) == (p1, p2)


def test_a_file_belongs_to_the_longest_name_in_it():
    found = match(["lab.ipynb", "lab_extra.ipynb"], ["lab_extra (1).ipynb", "lab (1).ipynb"])
    assert found["lab.ipynb"].taken == "lab (1).ipynb"
    assert found["lab_extra.ipynb"].taken == "lab_extra (1).ipynb"


def test_other_versions_are_named():
    [found] = match(["p1.ipynb"], ["p1.ipynb", "p1-Copy1.ipynb", "p12.ipynb", "x.ipynb"]).values()
    assert found == ("p1.ipynb", ["p1-Copy1.ipynb", "p12.ipynb"])
