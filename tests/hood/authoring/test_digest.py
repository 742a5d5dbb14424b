"""A lesson is executed again exactly when something that it depends on has changed."""

from hood.authoring.digest import lesson_digest, used_files
from tests.hood.authoring.example import HEADER, lesson

CODE = HEADER + "# %%\n%matplotlib inline\nfrom utils.views import strip\n"


UTILS = 'packages = ["utils"]\nrecords = ["records"]\n'


def test_the_imported_part_of_utils_and_its_data_count(project):
    project.write("course.toml", UTILS)
    project.write("records/gpu/times.json", "{}")
    project.write(
        "utils/views/__init__.py", "from utils.notebook import style\nfrom .strip import strip\n"
    )
    project.write("utils/views/strip.py", "import numpy\n")
    project.write("utils/views/weights.json", "{}")
    project.write("utils/views/.hidden", "")
    project.write("utils/views/data/trained/model.safetensors", "")
    project.write("utils/views/data/.cache/model", "")
    project.write("utils/views/other/__init__.py", "")
    project.write("utils/views/other/numbers.json", "")
    project.write("utils/notebook/__init__.py", "")
    project.write("utils/notebook/style.py", "")
    project.write("utils/unused.py", "")
    used = used_files(lesson(CODE), project.root)
    files = [path.relative_to(project.root).as_posix() for path in used]
    assert files == [
        "utils/__init__.py",
        "utils/notebook/__init__.py",
        "utils/notebook/style.py",
        "utils/views/__init__.py",
        "utils/views/data/trained/model.safetensors",
        "utils/views/strip.py",
        "utils/views/weights.json",
    ]


def test_records_count_if_a_module_names_their_folder(project):
    project.write("course.toml", UTILS)
    project.write("records/gpu/times.json", "{}")
    project.write("utils/__init__.py", "")
    project.write("utils/views.py", 'FOLDER = "records"\n')
    used = used_files(lesson(CODE), project.root)
    assert project.root / "records/gpu/times.json" in used


def test_comments_count_only_if_a_lesson_may_show_code(project):
    project.write("course.toml", UTILS)
    project.write("utils/__init__.py", "")
    project.write("utils/views.py", "x = 1\n")

    def changed(text):
        before = lesson_digest(lesson(text), project.root)
        with (project.root / "utils/views.py").open("a") as file:
            file.write("# a remark\n")
        return lesson_digest(lesson(text), project.root) != before

    assert not changed(CODE)
    assert changed(CODE + "import inspect\nprint(inspect.getsource(strip))\n")
    # a view that shows the code of its argument, and others that don't
    project.write("utils/views.py", "from .listing import listing\n")
    project.write("utils/listing.py", "import inspect\nshown = inspect.getsource\n")
    assert not changed(CODE)
    assert changed(CODE + "from utils.listing import shown\n")


def test_the_digest_follows_text_utils_and_others(project):
    project.write("course.toml", UTILS)
    digests = [lesson_digest(lesson(CODE), project.root)]
    digests.append(lesson_digest(lesson(CODE + "x = 1\n"), project.root))
    digests.append(lesson_digest(lesson(CODE), project.root, ["01_rows"]))
    project.write("utils/__init__.py", "changed = 1\n")
    digests.append(lesson_digest(lesson(CODE), project.root))
    assert len(set(digests)) == 4
    project.write("utils/other.py", "")
    assert lesson_digest(lesson(CODE), project.root) == digests[-1]
