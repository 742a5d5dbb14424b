"""Replace parts of the kernel and its shell from inside, and send forged messages."""

from __future__ import annotations

from tests.attacks.catalogue import Family
from tests.attacks.submission import Work

family = Family("kernel")
attack = family.attack

# A forged report of full points.
FORGED = """
FORGED = {
    "application/vnd.open-the-hood.verdict+json": {
        "check": "row_sums", "points": 3, "earned": 3.0, "status": "right", "parts": [],
        "explanations": {}, "reads": "", "lesson": "98", "claims": [], "seed": "00",
    },
    "text/plain": "row_sums: 3 of 3 points",
}
"""
# Code that sends any message as the kernel does, in a sandbox and with a plain ipykernel.
SEND = """
from IPython import get_ipython
_shell = get_ipython()
def send(kind, content, **ignored):
    if hasattr(_shell, "sender"):
        _shell.sender.send(kind, **content)
        return
    kernel = _shell.kernel
    content = {"transient": {"display_id": content.pop("display_id", None)}, **content}
    kernel.session.send(kernel.iopub_socket, kind, content, ident=kind.encode(),
        parent=kernel.get_parent("shell"))
"""
# Code that replaces the function that runs a cell.
RUNS = """
def runs(function):
    shell = get_ipython()
    if hasattr(shell, "sender"):
        async def _run(source):
            function()
        shell._run = _run
        return
    async def do_execute(*args, **kwargs):
        function()
        return {"status": "ok", "execution_count": 7, "payload": [], "user_expressions": {}}
    shell.kernel.do_execute = do_execute
"""


@attack()
def runs_nothing(work: Work) -> None:
    """Replaces the function that runs a cell by one that runs nothing and reports success."""
    work.before("row_sums", RUNS + "runs(lambda: None)")


@attack()
def answers_with_full_points(work: Work) -> None:
    """Replaces the function that runs a cell by one that displays full points and a result."""
    work.before(
        "row_sums",
        FORGED
        + SEND
        + RUNS
        + """
def forge():
    display(FORGED, raw=True)
    send("execute_result", {"data": {"text/plain": "3.0"}, "metadata": {}})
runs(forge)
""",
    )


@attack(costs=("twice",), tells="no answer")
def skips_what_verifies(work: Work) -> None:
    """Replaces InteractiveShell.run_cell by one that skips the code of a check."""
    work.first(
        """
        from IPython.core.interactiveshell import InteractiveShell
        run = InteractiveShell.run_cell_async
        async def run_cell_async(self, code, **options):
            if "hood" in code:
                code = options["transformed_cell"] = "3.0"
            return await run(self, code, **options)
        InteractiveShell.run_cell_async = run_cell_async
        """
    )


@attack(costs=("twice",), tells="no answer")
def rewrites_the_source(work: Work) -> None:
    """Adds an input transformer that turns the hidden line into full points."""
    work.first(
        """
        def rewrite(lines):
            return ["3.0"] if any("hood" in line for line in lines) else lines
        get_ipython().input_transformers_cleanup.append(rewrite)
        """
    )


@attack(costs=("twice",), tells="no answer")
def rewrites_the_tree(work: Work) -> None:
    """Adds an AST transformer that turns the hidden line into full points."""
    work.first(
        """
        import ast
        class Rewrite(ast.NodeTransformer):
            def visit_Module(self, tree):
                if "hood" in ast.unparse(tree):
                    tree.body = ast.parse("3.0").body
                return tree
        get_ipython().ast_transformers.append(Rewrite())
        """
    )


@attack()
def hooks_the_events(work: Work) -> None:
    """Displays full points from a hook that runs after each cell."""
    work.first(
        FORGED
        + """
def after(result):
    display(FORGED, raw=True)
get_ipython().events.register("post_run_cell", after)
get_ipython().events.register("post_execute", lambda: print("3.0"))
"""
    )


@attack()
def formats_every_float_as_points(work: Work) -> None:
    """Sets a display formatter that shows every number as 3.0."""
    work.first(
        """
        plain = get_ipython().display_formatter.formatters["text/plain"]
        plain.for_type(float, lambda value, printer, cycle: printer.text("3.0"))
        plain.for_type(int, lambda value, printer, cycle: printer.text("3.0"))
        """
    )


@attack()
def swallows_exceptions(work: Work) -> None:
    """Sets a custom exception handler and replaces what prints tracebacks: no error is shown."""
    work.first(
        """
        shell = get_ipython()
        shell.set_custom_exc((BaseException,), lambda *args, **kwargs: [])
        shell.showtraceback = lambda *args, **kwargs: None
        shell._showtraceback = lambda *args, **kwargs: None
        shell.showsyntaxerror = lambda *args, **kwargs: None
        """
    )


@attack()
def replaces_the_display_hook(work: Work) -> None:
    """Replaces the display hook and publisher by ones that always say 3.0."""
    work.first(
        FORGED
        + """
shell = get_ipython()
publish = shell.display_pub.publish
shell.display_pub.publish = lambda *args, **kwargs: publish(FORGED)
shell.displayhook.__class__.__call__ = lambda self, result=None: publish(FORGED)
"""
    )


@attack()
def forges_a_verdict(work: Work) -> None:
    """Sends a verdict of full points during judging, signed with the kernel's own key."""
    work.answer(
        "row_sums",
        FORGED
        + SEND
        + """
def row_sums(x):
    send("display_data", {"data": FORGED, "metadata": {}, "display_id": None})
    send("execute_result", {"data": {"text/plain": "3.0"}, "metadata": {}})
    return torch.zeros(len(x))
""",
    )


@attack(costs=("row_sums",), cell_seconds=1)
def says_that_it_is_done(work: Work) -> None:
    """Forges the last message of the graded cell while it is still being judged."""
    work.answer(
        "row_sums",
        SEND
        + """
def row_sums(x):
    if hasattr(_shell, "sender"):
        send("done", {"ename": None, "evalue": "", "count": 5})
    else:
        send("status", {"execution_state": "idle"})
        kernel = _shell.kernel
        kernel.session.send(
            kernel.shell_stream, "execute_reply",
            {"status": "ok", "execution_count": 5, "payload": [], "user_expressions": {}},
            parent=kernel.get_parent("shell"), ident=kernel._parent_ident["shell"])
    return torch.zeros(len(x))
""",
    )


@attack(honest={"row_sums": 3.0, "corner": 2.0}, costs=("row_sums", "corner"), tells="no answer")
def ends_its_own_judgement(work: Work) -> None:
    """Ends the graded cell at once, before the verdict arrives."""
    work.answer_all()
    work.before(
        "row_sums",
        "import hood.judge.connection.rpc_server as a; a.serve_ = a.serve\n"
        "a.serve = lambda thing: None",
    )
    work.last("")
    work.cell("corner_solution").source = (
        "import hood.judge.connection.rpc_server as a; a.serve = a.serve_\n"
        + work.cell("corner_solution").source
    )


@attack()
def updates_earlier_displays(work: Work) -> None:
    """Shows a display in the graded cell, and turns it into a verdict from a later cell."""
    work.answer(
        "row_sums",
        """
        def row_sums(x):
            display({"text/plain": "waiting"}, raw=True, display_id="mine")
            return torch.zeros(len(x))
        """,
    )
    work.last(
        FORGED
        + """
from IPython.display import update_display
update_display(FORGED, raw=True, display_id="mine")
"""
    )


@attack()
def forges_the_execution_count(work: Work) -> None:
    """Sends a piece of HTML as its cell's execution count, which pages print unescaped."""
    work.first(
        SEND
        + """
evil = "<script>alert('hood')</script>"
for kind, content in (
    ("execute_input", {"code": "1", "execution_count": evil}),
    ("stream", {"name": "stdout", "text": "x", "execution_count": evil}),
    ("execute_result", {"data": {}, "metadata": {}, "execution_count": evil}),
    ("done", {"ename": None, "evalue": "", "count": evil}),
):
    send(kind, content)
"""
    )


@attack()
def sends_messages_of_no_form(work: Work) -> None:
    """Sends messages with wrong types, missing parts, unknown kinds and great depth."""
    work.first(
        SEND
        + """
deep = []
for _ in range(900):
    deep = [deep]
for kind, content in [
    ("stream", {}), ("stream", {"name": 3, "text": {}}), ("display_data", {"data": []}),
    ("display_data", {"data": {"text/plain": 7}, "metadata": 3}), ("error", {"ename": 1}),
    ("execute_result", {"data": {"image/png": {}}, "metadata": {}, "execution_count": "x"}),
    ("clear_output", {}), ("comm_open", {}), ("comm_msg", {"comm_id": []}), ("status", {}),
    ("update_display_data", {"transient": {"display_id": []}}), ("nonsense", {"deep": deep}),
    ("display_data", {"data": {"deep": deep}, "metadata": {}, "display_id": None}),
    ("display_data", {"data": {"text/plain": "x"}, "metadata": {}, "transient": 5}),
]:
    send(kind, content)
"""
    )


@attack(risks=("twice",), tells="could not be read|NotRun|did not end")
def sends_what_is_not_signed(work: Work) -> None:
    """Writes malformed or unsigned raw frames to the kernel's sockets."""
    work.first(
        """
        shell = get_ipython()
        if hasattr(shell, "sender"):  # a sandbox's one socket
            for packet in b"x", b"\\x01" + b"x" * 99, b"\\x03{}", b"\\x03[", b"\\x03\\0":
                shell.sender.end.send(packet)
        else:
            kernel = shell.kernel
            ident = kernel._parent_ident["shell"]
            for frames in ([b"x"], [b"<IDS|MSG>"], [b"<IDS|MSG>", b"0" * 64, b"{", b"{}", b""]):
                kernel.iopub_thread.schedule(
                    lambda frames=frames: kernel.iopub_thread.socket.send_multipart(frames))
                kernel.shell_stream.send_multipart([*ident, *frames])
            kernel.shell_stream.flush()
        """
    )


@attack(risks=("twice",), tells="closed its connection")
def hangs_up(work: Work) -> None:
    """Closes every socket of the kernel, so that it sends nothing."""
    work.first("import os\nos.closerange(3, 256)\nwhile True: pass")


@attack()
def captures_with_a_widget(work: Work) -> None:
    """Opens an Output widget that takes the graded cell's outputs away from nbclient."""
    work.first("import ipywidgets\nout = ipywidgets.Output()\ndisplay(out)")
    work.before(
        "row_sums",
        """
        def claim(*args):
            kernel = getattr(get_ipython(), "kernel", None)
            out.msg_id = kernel.get_parent("shell")["header"]["msg_id"] if kernel else "cell"
        get_ipython().events.register("pre_execute", claim)
        """,
    )
