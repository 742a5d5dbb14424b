"""nbgrader's own tests give the same with a kernel in a sandbox, but where that is explained."""

import pytest

from tests.nbgrader_suite.__main__ import main

pytestmark = [pytest.mark.full, pytest.mark.slow(900)]


def test_nbgraders_own_tests(capsys):
    status = main([])
    assert status == 0, capsys.readouterr().out
