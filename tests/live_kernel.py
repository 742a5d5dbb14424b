"""A kernel as JupyterLab starts one, for behaviour that only a kernel shows."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient as KernelClient
from jupyter_client.manager import KernelManager, start_new_kernel

from hood.phase_paths import ROOT


@contextmanager
def live_kernel() -> Iterator[tuple[KernelManager, KernelClient]]:
    """Start a kernel in the course's folder; end it when the context ends."""
    manager, client = start_new_kernel(cwd=str(ROOT))
    try:
        yield manager, client
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def run_cell(
    client: KernelClient, code: str, after: Callable[[Any], object] | None = None
) -> tuple[list[dict[str, Any]], str]:
    """Run a cell; return its displays and its final outputs.

    `after`: called after each display.

    Outputs without data, which show nothing, are left out.
    """
    shown: list[dict[str, Any]] = []

    def hook(message: dict[str, Any]) -> None:
        content = message["content"]
        if message["msg_type"] in ("display_data", "update_display_data") and content["data"]:
            shown.append(content["data"])
            if after:
                after(content["data"])
        elif message["msg_type"] == "stream":
            shown.append({"text/plain": content["text"]})

    reply = client.execute_interactive(code, output_hook=hook, timeout=120)["content"]
    return shown, "\n".join(reply.get("traceback", []))
