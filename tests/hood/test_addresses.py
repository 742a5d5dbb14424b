"""The address of a lesson: the copy beside a lab, or the course's site."""

import pytest

from hood import UserError
from hood.addresses import codespaces_url, colab_url, lesson_url, link_to, repository_url
from hood.course import course
from hood.phase_paths import PhasePaths

SITE = "https://example.org/course/"


def write(root, settings):
    (root / "course.toml").write_text(settings)
    course.cache_clear()


def test_a_link_is_made_only_if_the_lesson_exists(tmp_path):
    phase = PhasePaths(tmp_path, "01_tensors")
    work, elsewhere = tmp_path / "work" / phase.name, tmp_path.parent / "fetched"
    assert link_to(phase, "Keys: two", work) == ""
    phase.page.parent.mkdir()
    phase.page.touch()
    assert link_to(phase, "Keys: two", work) == "../../notebooks/01_tensors.ipynb#cell-id=keys-two"
    assert link_to(phase, "Keys: two", elsewhere) == ""
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lesson_01_tensors.ipynb").touch()
    assert link_to(phase, "Keys: two", work) == "../lesson_01_tensors.ipynb#cell-id=keys-two"
    write(tmp_path, f'lesson_url = "{SITE[:-1]}"')
    for folder in (work, elsewhere):
        assert link_to(phase, "Keys: two", folder) == f"{SITE}lessons/01_tensors.html#keys-two"


def test_a_classs_own_site_comes_first(tmp_path):
    write(tmp_path, 'lesson_url = "https://a.org"')
    rules = tmp_path / "course.yml"
    rules.write_text("course: {title: Ours}")
    assert lesson_url(tmp_path) == "https://a.org/"
    rules.write_text(f"course: {{lesson_url: {SITE[:-1]}}}")
    assert lesson_url(tmp_path) == SITE
    rules.write_text("course: {lesson_url: /srv/site}")
    with pytest.raises(UserError, match=r"course\.yml: course.lesson_url: expected the address"):
        lesson_url(tmp_path)


@pytest.mark.parametrize("rules", ["", "labs:\n  01: {due: 2026-02-30}\n", "course: [1]\n"])
def test_one_key_of_a_classs_rules_is_read(rules, tmp_path):
    (tmp_path / "course.yml").write_text(rules)
    assert lesson_url(tmp_path) == ""


def test_a_classs_rules_must_be_yaml(tmp_path):
    (tmp_path / "course.yml").write_text("course: {")
    with pytest.raises(UserError, match=r"course\.yml can't be read"):
        lesson_url(tmp_path)


def test_addresses_in_the_old_place_are_refused_with_the_new_place(tmp_path):
    old = tmp_path / "pyproject.toml"
    old.write_text('[tool.open-the-hood]\nlesson_url = "https://a.org"\n')
    for address in (lesson_url, repository_url):
        with pytest.raises(UserError, match=r"Move its lesson_url .* to .*course\.toml"):
            address(tmp_path)
    old.write_text("[project]\nname = 'x'\n")
    assert lesson_url(tmp_path) == ""


@pytest.mark.parametrize("said", ['"/srv/site"', "3", '"https://x y"'])
def test_an_invalid_address_is_refused(said, tmp_path):
    write(tmp_path, f"lesson_url = {said}")
    with pytest.raises(UserError, match="lesson_url should be the address"):
        lesson_url(tmp_path)


def test_the_repository_has_the_set_address_or_none(tmp_path):
    assert repository_url(tmp_path) == ""
    assert repository_url() == ""  # this course's repository is not set
    write(tmp_path, 'repository_url = "https://a.org/c.git"')
    assert repository_url(tmp_path) == "https://a.org/c.git"
    write(tmp_path, 'repository_url = "a.org"')
    with pytest.raises(UserError, match="repository_url should be the address"):
        repository_url(tmp_path)


@pytest.mark.parametrize("end", ["", ".git", "/"])
def test_what_opens_a_repository_of_github_in_the_browser(end):
    repository = f"https://github.com/a-b/c.d{end}"
    assert codespaces_url(repository) == "https://codespaces.new/a-b/c.d?quickstart=1"
    lab = "release/01_rows/01_rows.ipynb"
    address = f"https://colab.research.google.com/github/a-b/c.d/blob/main/{lab}"
    assert colab_url(repository, lab) == address


@pytest.mark.parametrize(
    "repository", ["", "https://a.org/a/c.git", "https://github.com/a", "https://github.com/a/c/d"]
)
def test_another_repository_is_not_linked_there(repository):
    assert codespaces_url(repository) == ""
    assert colab_url(repository, "release/x.ipynb") == ""
