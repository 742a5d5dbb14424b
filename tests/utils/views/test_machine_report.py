"""The report of machines that this one isn't: with a GPU, without Triton, with odd names."""

from __future__ import annotations

import importlib
from dataclasses import replace

import pytest

from utils import audience
from utils.figures import mime_bundle
from utils.machine import Gpu, Machine
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
}


@pytest.mark.parametrize("name", MACHINES)
def test_each_machine_is_drawn_and_said(name):
    machine, *words = MACHINES[name]
    figure, alt = report.draw(machine)
    for word in words:
        assert word in alt
    assert mime_bundle(figure, alt=alt)["text/html"]


def test_only_a_mac_has_a_closed_way_for_kernels():
    assert [way.missing for way in report.ways(LAPTOP)] == [False, True, False]
    assert [way.missing for way in report.ways(SERVER)] == [False, False, False]
    assert [way.missing for way in report.ways(MAC)] == [False, False, True]


def test_a_built_page_says_whose_machine_it_shows(monkeypatch, capsys):
    monkeypatch.setenv(audience.BUILD, "1")
    machine_report()
    assert "On the machine that built this page" in capsys.readouterr().out
    monkeypatch.delenv(audience.BUILD)
    machine_report()
    assert "Here, PyTorch's ops run" in capsys.readouterr().out
