"""Four paths on this machine, each from a line of code through a library to a device."""

from __future__ import annotations

from dataclasses import dataclass

from hood.audience import building
from utils.instruments.machine import Machine, this_machine
from utils.instruments.toolchain import Lack
from utils.notebook.style import CARD, IDLE, INK, KERNEL, MUTED, RULE
from utils.views._canvas import INNER, LEADING, MARGIN, RIGHT, SMALL, Canvas, Drawing
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import cut, text_width
from utils.views._view import present

BOX_H, ROW, GAP = 58, 76, 34
WIDE = (INNER - 2 * GAP) / 3
LEFTS = tuple(MARGIN + column * (WIDE + GAP) for column in range(3))
RUNS = "it runs"
HEADS = ("what you write", "who chooses the code", "what the code runs on")


@dataclass(frozen=True)
class Way:
    """A line of code, the library that runs it, and the device. Each has a headline and a note."""

    code: tuple[str, str]
    library: tuple[str, str]
    device: tuple[str, str]
    missing: bool = False  # the path is closed on this machine, and the last text says why
    opens: str = ""  # how to open the path, such as a command; "" if there is no simple way


def machine_report() -> None:
    """Show what runs on this machine when a cell runs, from Python down to the devices."""
    present(lambda: draw(this_machine(), building=building()))


def draw(machine: Machine, *, building: bool = False) -> Drawing:
    """Draw the report.

    building: whether a lesson is being built. Readers have another machine, so the title then says
        which machine the report is about.
    """
    canvas = Canvas(sentence(machine, building=building))
    y = canvas.top + 26
    found = ways(machine)
    for x, head in zip(LEFTS, HEADS, strict=True):
        canvas.note(x, y - 12, head)
    canvas.note(RIGHT, y - 12, RUNS, "right")
    left_of_it = RIGHT - text_width(RUNS, size=SMALL) - 12
    canvas.marker(left_of_it, y - 12, KERNEL.marker, 12, KERNEL.colour)
    parts = [f"Machine report. {canvas.title}"]
    for way in found:
        middle = y + BOX_H / 2
        for column, dashed in ((0, False), (1, way.missing)):
            x, colour = LEFTS[column] + WIDE, MUTED if dashed else INK
            canvas.line([(x, middle), (x + GAP - 6, middle)], colour, 1.4, dashed=dashed)
            tip = x + GAP
            back = [(tip - 9, middle - 4.5), (tip - 9, middle + 4.5)]
            canvas.polygon([(tip, middle), *back], colour)
        _draw_box(canvas, 0, y, way.code, CARD, mono=True)
        _draw_box(canvas, 1, y, way.library, IDLE)
        _draw_box(canvas, 2, y, way.device, CARD if way.missing else KERNEL.tint, way.missing)
        if not way.missing:
            canvas.marker(RIGHT - 20, y + 19, KERNEL.marker, 14, KERNEL.colour)
        opens = f"; to open it: {way.opens}" if way.opens else ""
        state = f" (closed here{opens})" if way.missing else ""
        steps = [f"{head} ({note})" for head, note in (way.code, way.library, way.device)]
        parts.append(f"{' to '.join(steps)}{state}.")
        y += ROW
    y += 4
    for line in opening(found):
        canvas.note(RIGHT, y, line, "right")
        y += LEADING
    canvas.line([(MARGIN, y), (RIGHT, y)])
    memory = human_bytes(machine.memory) if machine.memory else "unknown"
    facts = (
        (f"Python {machine.python}", f"{machine.system}, {machine.architecture}"),
        (count(machine.cores, "core"), "that this process may use"),
        (memory, "of main memory, at the most"),
    )
    for x, (head, note) in zip(LEFTS, facts, strict=True):
        canvas.text(x, y + 20, head, size=13)
        canvas.note(x, y + 40, note)
    held = "; ".join(f"{head}, {note}" for head, note in facts)
    return canvas.finish(y + 70, " ".join([*parts, f"{held}."]))


def ways(machine: Machine) -> list[Way]:
    """Return the paths of ops on CPU and GPU tensors, of a kernel and of a compiled function."""
    gpu_code = "Apple's GPU" if machine.gpu_device == "mps" else machine.build
    also = "" if gpu_code == "CPU" else f" and {gpu_code}"
    torch = f"PyTorch {machine.torch}", f"built for the CPU{also}"
    cpu = f"up to {count(machine.threads, 'thread')} an op"
    # This is PyTorch's name for a CPU whose special instructions PyTorch does not use.
    if machine.instructions.upper() not in ("DEFAULT", "NO AVX", ""):
        cpu = f"{machine.instructions}, {cpu}"
    found = [Way(("x + y", "x and y on the CPU"), torch, ("the CPU", cpu))]
    device = machine.gpu_device or "cuda"
    code = "x + y", f'x and y on "{device}"'
    if machine.gpus:
        gpu = machine.gpus[0]
        notes = [gpu.target, human_bytes(gpu.memory) if gpu.memory else "shares the CPU's memory"]
        more = f" (and {len(machine.gpus) - 1} more)" if len(machine.gpus) > 1 else ""
        runs = gpu.name + more, ", ".join(filter(None, notes))
        found.append(Way(code, torch, runs))
    else:
        why = f"built for {machine.build}, but no GPU is found"
        if machine.build == "CPU":
            why = "this build has no code for a GPU"
        found.append(Way(code, torch, ("an error", why), missing=True))
    code = "kernel[grid](x, y)", "a Triton kernel of yours"
    if machine.triton is None:
        reason = "there is none for macOS" if machine.system == "macOS" else "not installed"
        error = "an error", "the lesson goes on without it"
        found.append(Way(code, ("no Triton", reason), error, missing=True))
    else:
        triton = f"Triton {machine.triton}"
        if machine.triton_runs == "" and machine.triton_lacks:
            found.append(_closed(code, triton, machine.triton_lacks))
        elif machine.triton_runs == "gpu":
            gpu = machine.gpus[0]
            library = triton, f"compiles it for {gpu.target}"
            found.append(Way(code, library, (gpu.name, "many programs at once")))
        else:
            library = triton, "its interpreter: NumPy, no compiler"
            found.append(Way(code, library, ("the CPU", "one program after another")))
    code = "torch.compile(f)(x)", "x on the CPU"
    if machine.inductor_lacks:
        found.append(_closed(code, "Inductor", machine.inductor_lacks))
    else:
        library = "Inductor", f"writes C++, which {machine.compiler} compiles"
        found.append(Way(code, library, ("the CPU", "machine code made for f")))
    return found


def _closed(code: tuple[str, str], library: str, lack: Lack) -> Way:
    """Return a path that is closed because a compiler is missing, and the command that opens it."""
    missing = " and ".join(f"no {tool}" for tool in lack.tools)
    error = "an error", "the code that it writes is not compiled"
    return Way(code, (library, missing), error, missing=True, opens=lack.how)


def opening(found: list[Way]) -> list[str]:
    """Return a line for each command that opens closed paths. A command may open several paths."""
    return list(dict.fromkeys(f"To open it: {way.opens}" for way in found if way.opens))


def sentence(machine: Machine, *, building: bool = False) -> str:
    ops = f"on the CPU and on {machine.gpus[0].name}" if machine.gpus else "on the CPU"
    kernels = {
        "gpu": "Triton's kernels on the GPU.",
        "interpreter": "Triton's kernels in an interpreter.",
        "": "no Triton kernel at all.",
    }[machine.triton_runs]
    joint = "and" if machine.triton_runs else "but"
    where = "On the machine that built this page" if building else "Here"
    return f"{where}, PyTorch's ops run {ops}, {joint} {kernels}"


def _draw_box(
    canvas: Canvas,
    column: int,
    y: float,
    texts: tuple[str, str],
    fill: str,
    dashed: bool = False,
    mono: bool = False,
) -> None:
    left, edge = LEFTS[column], MUTED if dashed else RULE
    canvas.box((left, y, WIDE, BOX_H), fill, edge=edge, line=1.2, radius=7, dashed=dashed)
    head, note = texts
    room = WIDE - 24 - (16 if column == 2 else 0)
    head = cut(head, room, size=13, mono=mono, middle=False)
    canvas.text(left + 12, y + 20, head, size=13, mono=mono)
    canvas.note(left + 12, y + 40, note)
