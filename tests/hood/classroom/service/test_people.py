"""Tokens: whose they are, and what is none."""

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


def test_those_who_teach_are_named_by_the_instructor(people):
    assert people.whose(people.token("marta")) == Person("marta", teaches=True)


def test_whatever_was_not_handed_out_is_no_token(people, tmp_path):
    ana, marta = people.token("ana"), people.token("marta")
    swapped = f"{marta.partition('.')[0]}.{ana.partition('.')[2]}"
    odd = ["", ".", "ana", "ana.", ana[:-1], ana + "0", swapped, "Ā.ā", "a" * 10**6, "\0." * 9]
    assert [token for token in odd if people.whose(token) is not None] == []


def test_another_course_or_a_new_key_makes_other_tokens(people, tmp_path):
    old = people.token("ana")
    (tmp_path / KEY_FILE).unlink()
    assert OfFile(tmp_path, []).whose(old) is None


def test_the_key_is_its_owners_alone(people, tmp_path):
    path = tmp_path / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    path.chmod(0o644)
    with pytest.raises(UserError, match="others can read"):
        OfFile(tmp_path, [])


def test_a_key_that_is_not_whole_makes_nobody_a_teacher(tmp_path):
    """With a key that is empty, anybody could sign a token."""
    (tmp_path / KEY_FILE).touch(0o600)
    with pytest.raises(UserError, match="should hold the service's key"):
        OfFile(tmp_path, ["marta"])


def test_without_a_hub_it_says_how_to_get_one(monkeypatch):
    pytest.importorskip("jupyterhub")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "")
    with pytest.raises(UserError, match="list this command as a service"):
        OfHub(["instructors"])
    assert os.environ["JUPYTERHUB_API_TOKEN"] == ""
