"""Tokens: their owners, and invalid ones."""

import os

import pytest

from hood import UserError
from hood.classroom.service.people import KEY_FILE, OfFile, OfHub, Person


@pytest.fixture
def people(tmp_path):
    return OfFile(tmp_path, ["marta"])


@pytest.mark.parametrize("name", ["ana", "josé", "a.b@example.org", "x" * 128])
def test_a_token_names_its_owner(people, name):
    assert people.whose(people.token(name)) == Person(name)


def test_instructors_are_named_in_the_settings(people):
    assert people.whose(people.token("marta")) == Person("marta", teaches=True)


def test_only_issued_tokens_are_valid(people, tmp_path):
    ana, marta = people.token("ana"), people.token("marta")
    swapped = f"{marta.partition('.')[0]}.{ana.partition('.')[2]}"
    odd = ["", ".", "ana", "ana.", ana[:-1], ana + "0", swapped, "Ā.ā", "a" * 10**6, "\0." * 9]
    assert [token for token in odd if people.whose(token) is not None] == []


def test_another_course_or_a_new_key_invalidates_tokens(people, tmp_path):
    old = people.token("ana")
    (tmp_path / KEY_FILE).unlink()
    assert OfFile(tmp_path, []).whose(old) is None


def test_only_the_owner_can_read_the_key(people, tmp_path):
    path = tmp_path / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(UserError, match="other accounts can read"):
        OfFile(tmp_path, [])


def test_an_incomplete_key_makes_nobody_an_instructor(tmp_path):
    """With an empty key, anybody could sign a token."""
    (tmp_path / KEY_FILE).touch(0o600)
    with pytest.raises(UserError, match="should contain the service's key"):
        OfFile(tmp_path, ["marta"])


def test_without_a_hub_it_says_how_to_get_one(monkeypatch):
    pytest.importorskip("jupyterhub")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "")
    with pytest.raises(UserError, match="list this command as a service"):
        OfHub(["instructors"])
    assert os.environ["JUPYTERHUB_API_TOKEN"] == ""
