"""The page: its content, and that no learner's text can become active markup."""

import argparse
import csv
import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

from hood.classroom.formats.words import duration
from hood.classroom.gradebook.graded import GradedCell
from hood.classroom.report import command
from hood.classroom.report.page import Links, bins, hardest_say, scores_say
from hood.classroom.report.tally import ExerciseTally
from hood.grader.course import open_course
from tests.hood.classroom.report.made_up import LAB, TASK, Made, crowd, make_course, verdict

EVIL = '<script>alert("x")</script><img src=x onerror=alert(1)>'
QUOTED = "\"' onmouseover='alert(1)' x=`"


class Elements(HTMLParser):
    """Parses the page as a browser does: its elements, links and text."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.links, self.ids, self.texts = set(), set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        found = dict(attrs)
        self.links += [found["href"]] if "href" in found else []
        self.ids += [found["id"]] if "id" in found else []

    def handle_data(self, data):
        self.texts.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())


def report(root, **options):
    """Run the command and return ``(exit status, page)``."""
    arguments = argparse.Namespace(**{"lab": LAB, "out": None, "hide_names": False} | options)
    status = command.run(arguments, root=root, console=Console(file=io.StringIO()))
    folder = arguments.out or root / "reports" / LAB
    return status, (folder / "index.html").read_text()


def page_of(tmp_path, learners, **options):
    return report(make_course(tmp_path / "course", learners), **options)[1]


def test_in_a_shared_course_the_group_may_write_the_report(tmp_path):
    root = make_course(tmp_path / "course", crowd(1))
    with (root / "nbgrader_config.py").open("a") as config:
        config.write("c = get_config()\nc.CourseDirectory.groupshared = True\n")
    report(root)
    modes = {path: path.stat().st_mode & 0o7770 for path in (root / "reports").rglob("*")}
    modes[root / "reports"] = (root / "reports").stat().st_mode & 0o7770
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o2770}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o660}


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A class of eighty."""
    return make_course(tmp_path_factory.mktemp("report") / "course", crowd(80))


@pytest.fixture(scope="module")
def page(course):
    return report(course)[1]


def test_headline_numbers(tmp_path):
    wrong = {"softmax": verdict("softmax", 0.0, problem="wrong shape")}
    learners = [Made("ada"), Made("bob", manual={TASK: 2.0}), Made("eve", verdicts=wrong)]
    text = Elements(page_of(tmp_path, learners)).text
    # of ten automatic points, the learners have 10, 10 and 5
    assert "graded 3 on average 83 % median 100 % need a person 0" in text
    assert (
        "of the 10 points that are given automatically; 2 answers wait for a mark by hand" in text
    )


def test_marks_by_hand_count_when_all_are_given(tmp_path):
    learners = [Made(name, manual={TASK: 2.0}) for name in ("ada", "bob")]
    text = Elements(page_of(tmp_path, learners)).text
    assert "on average 86 %" in text  # 12 of 14
    assert "Each percentage is a share of all 14 points" in text


def test_the_page_is_self_contained(page):
    found = Elements(page)
    assert "script" not in found.tags
    assert not [link for link in found.links if re.match(r"[a-z]+:|//", link)]
    assert "url(" not in page
    assert "default-src 'none'" in page


def test_every_figure_has_a_sentence_and_alternative_text(page):
    assert page.count("<figure>") == page.count("<figcaption>") == 2
    assert len(re.findall(r'<div[^>]*role="img" aria-label="[^"]{80,}"', page)) == 2


def test_every_link_has_a_target(course, page):
    found = Elements(page)
    folder = course / "reports" / LAB
    for link in set(found.links):
        if link.startswith("#"):
            assert link[1:] in found.ids
        else:
            assert (folder / link).exists(), link
    assert f"../../notebooks/{LAB}.ipynb" in found.links
    assert f"../../autograded/s000007/{LAB}/{LAB}.ipynb" in found.links
    assert len(found.ids) == len(set(found.ids))


def test_feedback_is_linked_if_it_exists(tmp_path):
    learner = Made("ada", metadata={"notes": [{"kind": "foreign"}]})
    course = make_course(tmp_path / "course", [learner])
    link = f"../../feedback/ada/{LAB}/{LAB}.html"
    assert link not in report(course)[1]
    path = course / "feedback" / "ada" / LAB / f"{LAB}.html"
    path.parent.mkdir(parents=True)
    path.write_text("feedback")
    assert link in Elements(report(course)[1]).links


def test_misconceptions_have_count_explanation_and_lesson(tmp_path):
    wrong = {"twice": verdict("twice", 0.0, misconceptions={"squared": "`x` times itself."})}
    learners = [Made(f"m{k}", verdicts=wrong) for k in range(3)] + [Made("ada")]
    page = page_of(tmp_path, learners)
    text = Elements(page).text
    assert "3 of 4 Squared. x times itself." in text
    assert "To revisit: lesson 98 , “About twice”" in text
    assert "<code>x</code> times itself." in page


def test_unexplained_answers_show_the_checks_observation(tmp_path):
    odd = {"softmax": verdict("softmax", 0.0, problem="wrong shape")}
    text = Elements(page_of(tmp_path, [Made(f"m{k}", verdicts=odd) for k in range(3)])).text
    assert "3 of the 3 wrong answers match no known misconception" in text
    assert "The check found: “wrong shape” (3)" in text


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ("abc", "The check found: “a”; “b”; “c”."),
        ("aabbccd", "The check found most often: “a” (2); “b” (2); “c” (2)."),
        ("abcd", "The check found, among other things: “a”; “b”; “c”."),
    ],
)
def test_the_report_says_most_often_only_if_it_is_true(tmp_path, texts, said):
    learners = [
        Made(f"m{k}", verdicts={"softmax": verdict("softmax", 0.0, problem=text)})
        for k, text in enumerate(texts)
    ]
    assert said in Elements(page_of(tmp_path, learners)).text


@pytest.mark.parametrize("evil", [EVIL, QUOTED])
def test_learners_text_is_inert(tmp_path, evil):
    name = "".join(sign for sign in evil if sign != "/")  # an id is a folder's name
    wrong = verdict("twice", 0.0, misconceptions={evil: evil}) | {"reads": evil, "lesson": evil}
    odd = verdict("softmax", 0.0, problem=evil)
    stopped = verdict("row_sums", 0.0, status="not run", problem=evil)
    note = {"kind": "changed", "message": evil, "cell": evil}
    verdicts = {"twice": wrong, "softmax": odd, "row_sums": stopped}
    learners = [
        Made(f"{k}{name}", evil, evil, verdicts, metadata={"notes": [note], "seed": evil})
        for k in range(4)
    ]
    found = Elements(page_of(tmp_path, learners))
    harmless = Elements(page_of(tmp_path / "other", [Made("ada")]))
    assert found.tags - harmless.tags <= {"b", "p", "ol", "ul", "li", "a", "code", "h3", "i"}
    assert not [name for name in found.attributes if name.startswith("on")]
    assert not [link for link in found.links if "<" in link or '"' in link or "script:" in link]
    assert evil.split("`")[0] in "".join(found.texts)  # shown, as text


def test_hidden_names_do_not_appear(tmp_path):
    note = {"kind": "changed", "message": "", "cell": "twice"}
    learners = [
        Made(
            f"zoe-{k}-secret",
            f"Zoe{k}",
            "Quillfeather",
            {"softmax": verdict("softmax", 0.0, problem=f"raised ValueError: Zoe{k} says")},
            metadata={"notes": [note]},
        )
        for k in range(12)
    ]
    course = make_course(tmp_path / "course", learners)
    report(course, hide_names=True)
    for path in (course / "reports" / LAB).iterdir():
        text = path.read_text()
        for word in ("zoe", "secret", "quillfeather", "autograded"):
            assert word not in text.lower(), f"{word} in {path.name}"
    assert "learner " in (course / "reports" / LAB / "index.html").read_text()
    with (course / "reports" / LAB / "learners.csv").open(encoding="utf-8-sig") as file:
        shown = [row["learner"] for row in csv.DictReader(file)]
    assert shown == sorted(shown)  # the order of the ids would reveal the learners


def test_claims_are_reported(page):
    assert "it was not checked: which operators ran." in page


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ([True, True], "All code ran in a sandbox."),
        ([True, False], "Graded without a sandbox. In 1 of 2 submissions"),
        ([True, None], "Whether all code ran in a sandbox was not recorded"),
        ([None, None], "Whether the code ran in a sandbox was not recorded"),
    ],
)
def test_the_sandbox_is_mentioned(tmp_path, states, says):
    learners = [Made(f"s{k}", metadata={"sandbox": state}) for k, state in enumerate(states)]
    text = Elements(page_of(tmp_path, learners)).text
    assert says in text
    assert ("Treat these marks as unverified" in text) is (False in states)


def test_an_empty_class_has_a_page(tmp_path):
    status, page = report(make_course(tmp_path / "course", []))
    assert status == 0
    assert "No submission has been graded." in page


def test_unfinished_grading_is_shown_by_page_and_exit_status(tmp_path):
    course = make_course(tmp_path / "course", [Made("ada"), Made("bob", scores={"twice": None})])
    status, page = report(course)
    assert status == 1
    assert "Grading not finished" in page
    with (course / "reports" / LAB / "learners.csv").open(encoding="utf-8-sig") as file:
        states = {(r["student"], r["exercise"]): r["status"] for r in csv.DictReader(file)}
    assert states["bob", "twice"] == "not graded"


def test_ungraded_submissions_are_reported(tmp_path):
    course = make_course(tmp_path / "course", [Made("ada", manual={TASK: 1.0})])
    for student in ("ada", "bob"):
        (course / "submitted" / student / LAB).mkdir(parents=True)
    status, page = report(course)
    assert status == 1
    assert "Grade the new submissions" in page
    assert "One submission is on disk but not in the gradebook." in page


def test_a_lab_is_found_by_its_number_and_the_page_goes_to_the_chosen_path(tmp_path):
    course = make_course(tmp_path / "course", [Made("ada")])
    (course / "phases" / LAB).mkdir()
    (course / "phases" / LAB / "lab.py").touch()
    report(course, lab="98", out=tmp_path / "elsewhere")
    assert sorted(path.name for path in (tmp_path / "elsewhere").iterdir()) == [
        "exercises.csv",
        "index.html",
        "learners.csv",
    ]
    assert not (course / "reports").exists()


def test_long_lists_are_cut_and_say_so(tmp_path):
    note = {"kind": "tags", "message": "", "cell": "twice"}
    learners = [Made(f"s{k}", metadata={"notes": [note]}) for k in range(45)]
    page = page_of(tmp_path, learners)
    assert page.count('class="who"') == 40
    assert "and 5 more" in page


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (9.94, "9.9 s"), (12.4, "12 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


def test_a_link_opens_the_lesson(tmp_path):
    for name in ("01_rows.ipynb", "start.ipynb"):
        (tmp_path / "notebooks").mkdir(exist_ok=True)
        (tmp_path / "notebooks" / name).touch()
    found = Links(open_course(tmp_path), tmp_path, LAB, ()).lessons()
    assert found == {"01": "notebooks/01_rows.ipynb"}


def test_every_learner_is_in_one_bar_and_full_marks_have_a_bar():
    found = bins([0, 0.9, 1, 5, 9.99, 10, 10, 10.5], most=10)
    assert list(found.values()) == [2, 1, 0, 0, 0, 1, 0, 0, 0, 1, 3]
    assert list(found)[-1] == "all"
    assert bins([], 10) == bins([1], 0) == {}


@pytest.mark.parametrize(
    ("points", "title"),
    [
        ([10, 10], "Everyone earned every point"),
        ([4, 6, 8], "The median is 6 of 10 points"),
        ([0, 5, 5, 10],
         "The median is 5 of 10 points; 1 earned all points, and 1 earned no points"),
    ],
)  # fmt: skip
def test_the_histogram_has_a_sentence(points, title):
    assert scores_say(points, 10) == title


def tallied(name, full=0, some=0, nothing=0):
    """Return an exercise of two points with these outcomes."""
    marked = full + some + nothing
    cell, earned = GradedCell(name, 2.0, manual=False), 2.0 * full + some
    return ExerciseTally(cell, f"1 · {name}", marked, full, some, nothing, earned=earned)


def test_the_hardest_exercise_is_named_without_its_number():
    found = hardest_say([tallied("easy", full=9, nothing=1), tallied("hard", full=2, nothing=6)])
    assert found == "“hard” was the hardest: 2 of the 8 who tried it earned all its points"
    easy = hardest_say([tallied("one", full=19, some=1), tallied("two", full=20)])
    assert easy == "In every exercise, learners earned nearly all of the points"


def test_bars_are_as_large_as_their_counts(tmp_path):
    wrong = {"twice": verdict("twice", 0.0)}
    learners = [Made(f"m{k}", verdicts=wrong) for k in range(2)] + [Made(f"s{k}") for k in range(4)]
    page = page_of(tmp_path, learners)
    assert re.findall(r"(\d*)<i style=.height: ([\d.]+)%", page)[7:] == [
        *[("", "0.0")], ("2", "50.0"), ("", "0.0"), ("4", "100.0")
    ]  # fmt: skip
    assert (
        '<i class="all" style="flex-grow: 4">4</i><i class="nothing" style="flex-grow: 2">2' in page
    )
    assert "1 · Twice as much: 4 all, 2 nothing;" in page
