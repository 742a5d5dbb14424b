"""The private names of other libraries that a sandbox's kernel leans on.

They are reached in two modules: ``kernel_app`` takes Jupyter's kernel off ZeroMQ, and ``preload``
names internals of torch and others. When a pinned version is raised, this is the place that fails
and says which name is gone.
"""

import importlib.util
from importlib.metadata import version

import pytest
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp

from grader.inside import kernel_app, preload

# What each class puts in the place of its base's own. A name that the base no longer has would
# silently be a new one that nobody calls.
REPLACED = {
    kernel_app.Publisher: ["close", "schedule", "start", "stop"],
    kernel_app.SandboxApp: [
        "init_connection_file",
        "init_heartbeat",
        "init_io",
        "init_kernel",
        "init_poller",
        "init_sockets",
        "kernel_class",
        "load_config_file",
        "log_connection_info",
        "write_connection_file",
    ],
    kernel_app.SandboxCompiler: ["get_code_name"],
    kernel_app.SandboxKernel: [
        "_execute_sleep",
        "_publish_status",
        "_supports_kernel_subshells",
        "compiler_class",
        "shell_class",
    ],
    kernel_app.SandboxSession: ["deserialize", "feed_identities", "send"],
    kernel_app.SandboxShell: ["transform_cell"],
    kernel_app.SandboxStream: ["_flush", "_schedule_flush", "write"],
}


@pytest.mark.parametrize("ours", REPLACED, ids=lambda ours: ours.__name__)
def test_what_is_replaced_is_still_there(ours):
    for name in REPLACED[ours]:
        said = f"{name} is gone: look at ipykernel {version('ipykernel')}"
        assert name in vars(ours), f"{ours.__name__}.{name} is listed here and defined nowhere"
        assert any(hasattr(base, name) for base in ours.__bases__), said


def test_what_is_called_is_still_there():
    called = {IPythonKernel: ["shell_main", "set_parent"], IPKernelApp: ["init_signal"]}
    for owner, names in called.items():
        for name in names:
            assert callable(getattr(owner, name, None)), f"{owner.__name__}.{name} is gone"


@pytest.mark.parametrize("listed", ["ALWAYS", "TRACER"])
def test_what_is_imported_ahead_exists(listed):
    gone = [name for name in getattr(preload, listed) if importlib.util.find_spec(name) is None]
    assert gone == [], f"no longer there in torch {version('torch')} or beside it"
