"""nbgrader's own tests give the same results in a sandbox, except for explained differences."""

import pytest

from tests.nbgrader_suite.__main__ import main

pytestmark = [pytest.mark.full, pytest.mark.slow(900)]


def test_nbgraders_own_tests_give_the_same_results(capsys):
    status = main([])
    assert status == 0, capsys.readouterr().out
