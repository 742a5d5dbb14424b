"""The messages of a set-up about the packages that it fetches."""

import runpy
import sys

from hood.phase_paths import ROOT

SCRIPT = ROOT / "lock" / "numbered.py"
SAID = """Looking in links: /opt/wheels
Ignoring colorama: markers 'os_name == "nt"' don't match your environment
Requirement already satisfied: attrs==26.1.0 in ./.venv/lib (from -r a.txt (line 1)) (26.1.0)
Collecting markupsafe==3.0.4 (from -r a.txt (line 9))
  Downloading markupsafe-3.0.4-cp311-cp311-manylinux2014_x86_64.whl.metadata (2.7 kB)
  Downloading markupsafe-3.0.4-cp311-cp311-manylinux2014_x86_64.whl (22 kB)
Collecting torch==2.13.0
  Using cached https://example.org/whl/torch-2.13.0%2Bcpu-cp311-cp311-linux_x86_64.whl (191.3 MB)
Processing /opt/wheels/wheel-0.45.1-py3-none-any.whl (from -r b.txt (line 2))
Installing collected packages: markupsafe, torch, wheel
Successfully installed markupsafe-3.0.4 torch-2.13.0 wheel-0.45.1
"""
NAMED = "attrs==26.1.0 \\\n    --hash=sha256:0\nmarkupsafe==3.0.4 \\\n    # via jinja2==3\n"
OTHERS = "colorama==0.4.6 ; os_name == 'nt' \\\nwheel==0.45.1 \\\ntorch==2.13.0 \\\n"


def run(tmp_path, status=0):
    """Run the script on a command that prints pip's output, and return main's result."""
    for name, text in (("a.txt", NAMED), ("b.txt", OTHERS), ("said", SAID)):
        (tmp_path / name).write_text(text)
    files = [word for name in ("a.txt", "b.txt") for word in ("-r", str(tmp_path / name))]
    pip = "import sys; print(open(sys.argv[1]).read(), end=''); sys.exit(int(sys.argv[2]))"
    main = runpy.run_path(str(SCRIPT))["main"]
    return main([sys.executable, "-c", pip, str(tmp_path / "said"), str(status), *files])


def test_each_fetched_package_has_its_number_and_size(tmp_path, capsys):
    assert run(tmp_path) == 0
    assert capsys.readouterr().out.splitlines() == [
        "   1 of 3  markupsafe 3.0.4 (22 kB)",
        "   2 of 3  torch 2.13.0%2Bcpu (191.3 MB)",
        "   3 of 3  wheel 0.45.1",
        "Unpacking them ...",
    ]


def test_a_failure_of_pip_is_a_failure_of_the_set_up(tmp_path):
    assert run(tmp_path, status=3) == 3
