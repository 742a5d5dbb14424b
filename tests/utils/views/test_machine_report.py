"""The report of machines that this one isn't: with a GPU, without Triton, with odd names."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from hood import audience
from utils.instruments.machine import Gpu, Machine
from utils.instruments.toolchain import Lack
from utils.notebook.figures import mime_bundle
from utils.views import machine_report

report = importlib.import_module("utils.views.machine_report")

LAPTOP = Machine(
    python="3.12.1",
    system="Linux",
    architecture="x86_64",
    torch="2.13.0",
    build="CPU",
    triton="3.7.1",
    cores=8,
    threads=4,
    instructions="AVX2",
    memory=16 * 2**30,
)
H200 = Gpu("NVIDIA H200", "sm_90", 140 * 2**30)
SERVER = replace(LAPTOP, build="CUDA 12.8", gpus=(H200, H200), gpu_device="cuda")
MAC = replace(
    LAPTOP,
    system="macOS",
    architecture="arm64",
    triton=None,
    instructions="DEFAULT",
    gpus=(Gpu("Apple GPU"),),
    gpu_device="mps",
)
BARE = Lack(
    ("g++", "Python.h"), ("g++", "python3.13-dev"), "sudo apt-get install g++ python3.13-dev"
)
MACHINES = {
    "laptop": (LAPTOP, "AVX2, up to 4 threads an op", "its interpreter", "no code for a GPU"),
    "server": (SERVER, "NVIDIA H200 (and 1 more)", "sm_90, 140 GiB", "compiles it for sm_90"),
    "no driver": (replace(LAPTOP, build="CUDA 12.8"), "built for CUDA 12.8, but no GPU is found"),
    "mac": (MAC, "no Triton (there is none for macOS)", "an error (the lesson goes on", '"mps"'),
    "one of everything": (
        replace(LAPTOP, cores=1, threads=1, memory=None),
        "1 core, ",
        "1 thread an op",
        "unknown",
    ),
    "a long name": (
        replace(SERVER, gpus=(Gpu("NVIDIA RTX PRO 6000 Max-Q Workstation", "sm_120", 1),)),
        "Workstation",
    ),
    "no compiler": (
        replace(LAPTOP, inductor_lacks=BARE),
        "Inductor (no g++ and no Python.h) to an error",
        "closed here; to open it: sudo apt-get install g++ python3.13-dev",
    ),
    "a server without one": (
        replace(SERVER, inductor_lacks=BARE, triton_lacks=BARE),
        "but no Triton kernel at all",
        "Triton 3.7.1 (no g++ and no Python.h)",
    ),
    "another compiler": (replace(MAC, compiler="clang++"), "writes C++, which clang++ compiles"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_each_machine_is_drawn_and_described(name):
    machine, *words = MACHINES[name]
    figure, alt = report.draw(machine)
    for word in words:
        assert word in alt
    assert mime_bundle(figure, alt=alt)["text/html"]


@pytest.mark.parametrize(
    ("name", "closed"),
    [
        ("laptop", [False, True, False, False]),
        ("server", [False, False, False, False]),
        ("mac", [False, False, True, False]),
        ("no compiler", [False, True, False, True]),
        ("a server without one", [False, False, True, True]),
    ],
)
def test_a_way_is_closed_where_it_ends_in_an_error(name, closed):
    assert [way.missing for way in report.ways(MACHINES[name][0])] == closed


def test_one_command_opens_all_ways_that_lack_the_same():
    says = ["To open it: sudo apt-get install g++ python3.13-dev"]
    assert report.opening(report.ways(MACHINES["a server without one"][0])) == says
    assert report.opening(report.ways(LAPTOP)) == []


def test_a_built_page_says_whose_machine_it_shows(monkeypatch, capsys):
    monkeypatch.setenv(audience.BUILD, "1")
    machine_report()
    assert "On the machine that built this page" in capsys.readouterr().out
    monkeypatch.delenv(audience.BUILD)
    machine_report()
    assert "Here, PyTorch's ops run" in capsys.readouterr().out
