"""A lesson is executed again when something changed that it depends on, and only then."""

from hood.authoring.digest import lesson_digest, used_files
from tests.hood.authoring.example import HEADER, lesson

CODE = HEADER + "# %%\n%matplotlib inline\nfrom utils.views import strip\n"


def test_the_imported_part_of_utils_and_the_data_beside_it(project):
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


def test_the_digest_follows_text_utils_and_others(project):
    digests = [lesson_digest(lesson(CODE), project.root)]
    digests.append(lesson_digest(lesson(CODE + "x = 1\n"), project.root))
    digests.append(lesson_digest(lesson(CODE), project.root, ["01_rows"]))
    project.write("utils/__init__.py", "changed = 1\n")
    digests.append(lesson_digest(lesson(CODE), project.root))
    assert len(set(digests)) == 4
    project.write("utils/other.py", "")
    assert lesson_digest(lesson(CODE), project.root) == digests[-1]
