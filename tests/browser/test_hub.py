"""A real JupyterHub with the services of two courses, three learners and an instructor."""

import itertools
import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from playwright.sync_api import expect

from hood import UserError
from hood.authoring.sample_hub import find_proxy, prepare
from hood.classroom.service.hub import CONFIG
from hood.grader.sandbox import doctor
from tests.browser.conftest import COPIED, MILLISECONDS, ROOT, environment
from tests.hood.conftest import demand_sandboxes
from tests.patience import PATIENCE, eventually

# the hub's proxy needs npm and npm's registry
pytestmark = [pytest.mark.browser, pytest.mark.slow(150), pytest.mark.full]
LAB, PASSWORD = "01_tensors", "only for this test"
# More files that go into the learners' archive.
FOR_THE_ARCHIVE = ("pyproject.toml", "environment.yml", "LICENSE", "lock", "benchmarks")
PYTHON = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
WRONG = """def row_major_strides(shape):
    out = [1]
    for n in shape[:-1]:
        out.append(out[-1] * n)
    return tuple(out)"""
SECOND = """
load_subconfig({sample!r})
c = get_config()
c.JupyterHub.services.append({{
    "name": "second",
    "url": "http://127.0.0.1:{port}",
    "command": {command!r},
    "cwd": {course!r},
}})
for service in c.JupyterHub.services:
    service["timeout"] = {patience}  # seconds for its start, on a busy machine
c.JupyterHub.load_roles[0]["scopes"].append("access:services!service=second")
c.Spawner.server_token_scopes.append("access:services!service=second")
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def copied(course: Path) -> Path:
    course.mkdir()
    for name in (*COPIED, *FOR_THE_ARCHIVE):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, course / name)
    return course


class Hub:
    """A running hub: its address, and the folders of two courses and of its learners."""

    def __init__(self, folder: Path, proxy: Path):
        self.folder = folder
        self.course, self.second = copied(folder / "course"), copied(folder / "second")
        port = free_port()
        self.address = f"http://localhost:{port}"
        self.service = f"http://open-the-hood--service.localhost:{port}/services/open-the-hood/"
        settings = folder / "config.py"
        serve = [sys.executable, "-m", "hood", "serve", "--hub", "--workers", "1"]
        second, own = free_port(), free_port()
        self.of_second = f"http://127.0.0.1:{second}/services/second/"
        text = SECOND.format(
            sample=str(CONFIG),
            patience=PATIENCE,
            port=second,
            command=serve,
            course=str(self.second),
            hub_port=free_port(),
            api_port=free_port(),
        )
        settings.write_text(text)
        made = prepare(self.course, folder / "hub")
        self.homes = Path(made["OPEN_THE_HOOD_HOMES"])
        del made["PYTHONPATH"]  # each service uses its own course
        variables = {
            **environment(folder),
            **made,
            "OPEN_THE_HOOD_PASSWORD": PASSWORD,
            "OPEN_THE_HOOD_PROXY": str(proxy),
            "OPEN_THE_HOOD_BIND": f"http://127.0.0.1:{port}",
            "OPEN_THE_HOOD_SUBDOMAINS": self.address,
            "OPEN_THE_HOOD_PORT": str(own),
        }
        del variables["PYTHONPATH"]
        self._log = folder / "hub.log"
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "-f", str(settings)],
                cwd=folder,
                env=variables,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        eventually(self._runs, "the hub's start", step=0.3)

    def _runs(self) -> bool:
        said = self._log.read_text(errors="replace")
        assert self._process.poll() is None, said[-3000:]
        return "JupyterHub is now running" in said

    def close(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def server_of(self, name: str) -> str:
        """The address of somebody's server."""
        return f"{self.address.replace('//', f'//{name}.')}/user/{name}"

    def root_of(self, name: str) -> Path:
        """The folder that somebody's server shows. A teacher's server shows the course's folder."""
        return self.course if name == "teacher" else self.homes / name

    def checks(self, course: Path) -> list[tuple[str, str]]:
        """The requests to a course's service, with their senders, in order."""
        with sqlite3.connect(course / "gradebook.db") as db:
            asked = "SELECT learner, exercise FROM service_job ORDER BY received"
            return db.execute(asked).fetchall()


@pytest.fixture(scope="module")
def hub(chromium, tmp_path_factory):
    demand_sandboxes([str(problem) for problem in doctor.problems()])
    folder = tmp_path_factory.mktemp("hub")
    try:
        proxy = find_proxy(folder / "proxy")
    except UserError as error:
        pytest.skip(f"not run: {error}")
    found = Hub(folder, proxy)
    yield found
    found.close()


@pytest.fixture
def log_in(hub, profile):
    """Log a user in, in a new browser context, and return the page of their JupyterLab."""
    contexts = []

    def enter(name):
        context = profile.browser.new_context(viewport={"width": 1300, "height": 1000})
        context.set_default_timeout(MILLISECONDS)
        contexts.append(context)
        page = context.new_page()
        page.goto(f"{hub.address}/hub/login")
        page.fill("#username_input", name)
        page.fill("#password_input", PASSWORD)
        page.click("#login_submit")
        page.wait_for_url(f"**/user/{name}/**")
        return page

    yield enter
    for context in contexts:
        context.close()


def runs(hub, page, name, nb, path):
    """Have a user run all cells of a notebook in JupyterLab; return it with its outputs."""
    file = hub.root_of(name) / path
    file.parent.mkdir(parents=True, exist_ok=True)
    nb.cells.append(nbformat.v4.new_code_cell("print('all has run')"))
    nbformat.write(nb, file)
    page.goto(f"{hub.server_of(name)}/lab/workspaces/{name}/tree/{path}")
    page.wait_for_selector(".jp-Notebook .jp-Cell")
    page.wait_for_selector(".jp-Notebook-ExecutionIndicator[data-status='idle']")
    looks = itertools.count()

    def saved():
        # JupyterLab asks for a kernel if it has not yet heard of the starting one
        if page.locator(".jp-Dialog").is_visible():
            page.locator(".jp-Dialog .jp-mod-accept").click()
        page.keyboard.press("Control+s")
        page.wait_for_timeout(500)
        try:
            found = nbformat.read(file, 4)
        except nbformat.reader.NotJSONError:  # it is being saved
            return None
        begun = any(cell.get("execution_count") for cell in found.cells)
        if not begun and next(looks) % 30 == 0:  # it may not have heard of the kernel yet
            page.get_by_role("menuitem", name="Run", exact=True).click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        return found if found.cells[-1].outputs else None

    return eventually(saved, "the notebook's last cell", step=0.2)


def shown(nb, cell_id=""):
    """The text of the outputs of a notebook, or of its cells with this id."""
    outputs = [o for c in nb.cells if c.id == cell_id or not cell_id for o in c.get("outputs", [])]
    found = [str(o.get("text") or o.get("data", o.get("evalue"))) for o in outputs]
    return "\n".join(found)


def solved_by(hub, name, **answers):
    """A learner's answered copy of the lab, up to its second exercise."""
    nb = nbformat.read(hub.homes / name / "work" / LAB / f"{LAB}.ipynb", 4)
    for cell in nb.cells:
        cell.source = answers.get(cell.id, cell.source)
    last = [cell.id for cell in nb.cells].index("row_major_strides")
    nb.cells = nb.cells[: last + 1]
    return nb


def calls(*lines):
    # import by name: an `import *` before an answer may replace what the answer uses
    service = (
        "from hood.learner import service\n"
        "from hood.learner.service import feedback, labs, submit\n"
    )
    return nbformat.v4.new_code_cell(service + "\n".join(lines))


def test_three_learners_and_an_instructor(hub, log_in):
    source = nbformat.read(hub.course / "source" / LAB / f"{LAB}.ipynb", 4)
    right = {cell.id: cell.source for cell in source.cells if cell.id.endswith("_solution")}

    ana = log_in("ana")
    nb = solved_by(hub, "ana", **right)
    nb.cells += [calls("submit()"), calls("labs()")]
    done = runs(hub, ana, "ana", nb, f"work/{LAB}/{LAB}.ipynb")
    assert "bytes_of: 2 of 2 points" in shown(done, "bytes_of")
    assert "row_major_strides: 3 of 3 points" in shown(done, "row_major_strides")
    assert f"{LAB} was handed in" in shown(done)
    seen = ana.get_by_text("3 of 3 points").all_inner_texts()
    assert seen.count("3 of 3 points") == 1  # the card itself
    assert ana.get_by_role("menuitem", name="Nbgrader").count() == 0
    service = hub.service
    ana.goto(service)
    expect(ana.get_by_role("heading", name="You are ana")).to_be_visible()
    expect(ana.get_by_role("listitem").filter(has_text=LAB)).to_contain_text("Handed in on")
    pages = f"{service}marking/"
    ana.goto(pages)
    expect(ana.get_by_text("only teachers may do this")).to_be_visible()
    handed_in = hub.course / "submitted" / "ana" / LAB / f"{LAB}.ipynb"
    assert b"row_major_strides" in handed_in.read_bytes()

    ben = log_in("ben")
    nb = solved_by(hub, "ben", row_major_strides_solution=WRONG)
    done = runs(hub, ben, "ben", nb, f"work/{LAB}/{LAB}.ipynb")
    assert "bytes_of: 0 of 2 points" in shown(done, "bytes_of")
    assert "0 of 3 points" in shown(done, "row_major_strides")
    assert "row_major_strides((" in shown(done, "row_major_strides")  # a call that fails

    cleo = log_in("cleo")
    nb = solved_by(hub, "cleo", **right)
    other = f"import os\nos.environ[service.ADDRESS] = {hub.of_second!r}"
    nb.cells.insert(0, calls(other))
    nb.cells += [
        calls("try: service._json('queue')", "except service.ServiceError as error: print(error)"),
        calls("print([one['exercise'] for one in service._json('jobs')])"),
    ]
    done = runs(hub, cleo, "cleo", nb, f"work/{LAB}/{LAB}.ipynb")
    assert "row_major_strides: 3 of 3 points" in shown(done, "row_major_strides")
    assert "only teachers may do this" in shown(done)
    assert hub.checks(hub.second) == [("cleo", "bytes_of"), ("cleo", "row_major_strides")]
    assert {who for who, _ in hub.checks(hub.course)} == {"ana", "ben"}

    teacher = log_in("teacher")
    nb = nbformat.v4.new_notebook(metadata=PYTHON)
    nb.cells = [
        calls(
            "import time",
            f"said = service._json('labs/{LAB}/grading', b'', 'POST')",
            "while said['status'] is None: time.sleep(1); said = service._json('grading')",
            "print(said)",
            "import os, subprocess",
            "print(os.getcwd(), subprocess.getoutput('python -m hood grade --help')[:200])",
        )
    ]
    done = runs(hub, teacher, "teacher", nb, "work/teach.ipynb")
    assert "'status': 0" in shown(done), shown(done)
    assert f"{hub.course}/work" in shown(done)
    assert "grade" in shown(done)
    assert "No module named" not in shown(done)
    teacher.goto(f"{hub.server_of('teacher')}/formgrader")
    expect(teacher.get_by_role("link", name=LAB, exact=True)).to_be_visible()
    teacher.goto(service)
    expect(teacher.get_by_role("heading", name="You are teacher")).to_be_visible()
    expect(teacher.get_by_role("listitem").filter(has_text=LAB)).to_contain_text("1 handed in")
    made = subprocess.run(
        [sys.executable, "-m", "hood.grader.nbgrader", "generate_feedback", LAB],
        cwd=hub.course,
        env={**environment_of(hub), "PYTHONPATH": str(hub.course)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert made.returncode == 0, made.stderr

    teacher.goto(service)
    teacher.get_by_role("link", name="Mark answers in words").click()
    teacher.locator(".tasks a").first.click()
    expect(teacher.locator("#who")).to_contain_text("1 of 1")
    expect(teacher.locator("#words")).not_to_have_text("…")
    teacher.keyboard.press("0")
    teacher.keyboard.press("j")
    expect(teacher.locator("#progress")).to_have_text("1 of 1 marked.")

    nb = nbformat.v4.new_notebook(metadata=PYTHON, cells=[calls("labs()", f"feedback('{LAB}')")])
    done = runs(hub, ana, "ana", nb, "work/marks.ipynb")
    assert " of 40" in json.dumps(done)
    assert "It is in work/" in shown(done)
    assert (hub.homes / "ana" / "work" / LAB / f"{LAB}_feedback.html").stat().st_size > 10_000


def environment_of(hub):
    private = hub.folder / "home"
    return {"PATH": os.environ["PATH"], "HOME": str(private)}
