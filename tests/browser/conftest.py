"""JupyterLab on a free port over a copy of the course, and a headless Chromium that looks at it.

Nothing leaves the machine, and nothing of the person's own Jupyter is read or changed: home,
configuration, data, exchange and course folder are all temporary.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from tests.browser.course_site import build_site, served
from tests.patience import PATIENCE

ROOT = Path(__file__).parents[2]
COPIED = ("notebooks", "source", "release", "utils", "hood", "phases")
COPIED += ("nbgrader_config.py", "course.toml")
MILLISECONDS = 1000 * PATIENCE
expect.set_options(timeout=MILLISECONDS)
CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# JupyterLab asks no questions about news.
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
}
FLAGS = [
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-sync",
    # no request leaves the machine
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE *localhost",
    "--no-default-browser-check",
    "--no-first-run",
    *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
]


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab: its address, its token, and the copy of the course that it serves."""

    address: str
    token: str
    course: Path

    def url(self, path: str = "") -> str:
        """The address of a separate workspace, which opens a file of the course if one is given."""
        tree = f"/tree/{path}" if path else ""
        return f"{self.address}/lab/workspaces/{secrets.token_hex(4)}{tree}?token={self.token}"


# Closed after the last of these tests, not at the end of the session: Playwright keeps an event
# loop running in this thread, and then no other test could start one.
OPEN = contextlib.ExitStack()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    yield
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        OPEN.close()


@pytest.fixture(scope="package")
def chromium() -> str:
    """The path of the system's browser; without one, tests that need it are skipped."""
    if CHROMIUM is None:
        pytest.skip("not run: no chromium or google-chrome on PATH")
    return CHROMIUM


@pytest.fixture(scope="package")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The served site of the committed notebooks: its address and its folder."""
    folder = build_site(tmp_path_factory.mktemp("site"))
    with served(folder) as address:
        yield address, folder


@pytest.fixture(scope="package")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab over a copy of the course, with all cells of a notebook in the page."""
    folder = tmp_path_factory.mktemp("browser")
    variables = environment(folder)
    overrides = folder / "jupyter_config_dir" / "labconfig" / "default_setting_overrides.json"
    overrides.parent.mkdir()
    overrides.write_text(json.dumps(SETTINGS))
    with serving(folder, variables) as found:
        yield found


@pytest.fixture(scope="module")
def learners(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """JupyterLab with the settings of `make lab`, over a copy of the course."""
    folder = tmp_path_factory.mktemp("learners")
    ours = {"JUPYTER_CONFIG_PATH": str(folder / "course" / "hood" / "learner" / "jupyter")}
    with serving(folder, environment(folder) | ours) as found:
        yield found


@contextlib.contextmanager
def serving(folder: Path, variables: dict[str, str]) -> Iterator[Lab]:
    """Run a JupyterLab over a new copy of the course, `folder/course`."""
    course = folder / "course"
    course.mkdir()
    for name in COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, course / name)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    found = Lab(f"http://127.0.0.1:{port}", secrets.token_hex(16), course)
    log = folder / "jupyter.log"
    with log.open("wb") as output:
        server = subprocess.Popen(
            [
                *(sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root"),
                "--expose-app-in-browser",  # for `show` in test_journeys.py
                *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0"),
                f"--IdentityProvider.token={found.token}",
            ],
            cwd=course,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(found, server, log)
        yield found
    finally:
        # Kernels are in the server's session, so an orderly end stops them all.
        server.terminate()
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def environment(folder: Path) -> dict[str, str]:
    """The environment of a server, without the settings of the person who runs the tests."""
    bin_folder = str(Path(sys.executable).parent)
    private = ("HOME", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    places = {name: str(folder / name.lower()) for name in (*private, "OPEN_THE_HOOD_EXCHANGE")}
    for place in places.values():
        Path(place).mkdir()
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR", "USER") if name in os.environ}
    return {
        **kept,
        **places,
        "PATH": os.pathsep.join([bin_folder, os.environ["PATH"]]),
        "PYTHONPATH": str(folder / "course"),
        # the settings of hood/learner/jupyter are copied, because that folder would also hide
        # nbgrader's menu
        "PYTHONSTARTUP": str(folder / "course" / "hood" / "learner" / "startup.py"),
        "OMP_NUM_THREADS": "1",
    }


def wait_for(lab: Lab, server: subprocess.Popen, log: Path) -> None:
    """Wait until the server answers. If it never answers, fail with the end of its log."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and server.poll() is None:
        try:
            status = f"{lab.address}/api/status?token={lab.token}"
            urllib.request.urlopen(status, timeout=PATIENCE).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="package")
def profile(chromium: str) -> BrowserContext:
    """A profile of headless Chromium. The browser is the system's, so nothing is downloaded.

    All tests share this profile, because loading JupyterLab's scripts without a cache costs most.
    (Playwright's routes would turn the cache off, so the resolver of names blocks foreign
    addresses.)
    """
    playwright = OPEN.enter_context(sync_playwright())
    running = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
    OPEN.callback(running.close)
    context = running.new_context(viewport={"width": 1400, "height": 1000})
    context.set_default_timeout(MILLISECONDS)
    return context


@pytest.fixture(scope="package")
def window(profile: BrowserContext) -> Page:
    """The window that tests share, because opening a new window takes a second."""
    page = profile.new_page()
    page.on("dialog", lambda dialog: dialog.accept())  # leave without saving
    return page


@pytest.fixture
def page(window: Page) -> Iterator[Page]:
    """The empty window."""
    window.goto("about:blank")
    yield window
    window.goto("about:blank")
