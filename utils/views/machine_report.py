"""What runs when a cell runs: four ways from a line of code to the device of this machine."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.figure import Figure

from utils.instruments.machine import Machine, this_machine
from utils.instruments.toolchain import Lack
from utils.notebook.audience import building
from utils.notebook.figures import show
from utils.notebook.style import CARD, IDLE, INK, KERNEL, MUTED, RULE
from utils.views._canvas import INNER, LEADING, MARGIN, SMALL, Canvas, title_height
from utils.views._numbers import count, human_bytes
from utils.views._text_outlines import text_width, wrap

BOX_H, ROW, GAP = 58, 76, 34
WIDE = (INNER - 2 * GAP) / 3
RUNS = "it runs"
HEADS = ("what you write", "who chooses the code", "what the code runs on")


@dataclass(frozen=True)
class Way:
    """From a line of code over the library that takes it to the device: a headline and a note each.

    Attributes:
        missing: the way is closed on this machine, and the last text says why.
        opens: what opens it, such as a command; "" where nothing simple does.
    """

    code: tuple[str, str]
    library: tuple[str, str]
    device: tuple[str, str]
    missing: bool = False
    opens: str = ""


def machine_report() -> None:
    """Show what runs on this machine when a cell runs, from Python down to the devices."""
    figure, alt = draw(this_machine(), building=building())
    show(figure, alt=alt)


def draw(machine: Machine, *, building: bool = False) -> tuple[Figure, str]:
    """Return the figure for a machine, and its alternative text.

    Args:
        building: the page will be read elsewhere, so it says whose machine it shows.
    """
    words = sentence(machine, building=building)
    top = title_height(words) + 26
    found = ways(machine)
    lines = opening(found)
    canvas = Canvas(top + ROW * len(found) + 74 + LEADING * len(lines))
    canvas.title(words)
    for column, head in enumerate(HEADS):
        canvas.note(_left(column), top - 12, head)
    hexagon = _left(2) + WIDE - 20
    canvas.note(_left(2) + WIDE, top - 12, RUNS, ha="right")
    left_of_it = _left(2) + WIDE - text_width(RUNS, size=SMALL) - 12
    canvas.marker(left_of_it, top - 12, KERNEL.marker, size=12, fill=KERNEL.colour, edge="none")
    for row, way in enumerate(found):
        y = top + row * ROW
        for column in (0, 1):
            x = _left(column) + WIDE
            dashed = way.missing and column == 1
            colour = RULE if dashed else INK
            canvas.line(
                [(x, y + BOX_H / 2), (x + GAP - 6, y + BOX_H / 2)],
                colour=MUTED if dashed else colour,
                line=1.4,
                dashed=dashed,
            )
            tip, middle = x + GAP, y + BOX_H / 2
            corners = [(tip, middle), (tip - 9, middle - 4.5), (tip - 9, middle + 4.5)]
            canvas.polygon(corners, MUTED if dashed else colour)
        _draw_box(canvas, 0, y, way.code, CARD, mono=True)
        _draw_box(canvas, 1, y, way.library, IDLE)
        _draw_box(canvas, 2, y, way.device, CARD if way.missing else KERNEL.tint, way.missing)
        if not way.missing:
            canvas.marker(hexagon, y + 19, KERNEL.marker, size=14, fill=KERNEL.colour, edge="none")
    y = top + ROW * len(found) + 4
    for line in lines:
        canvas.note(MARGIN + INNER, y, line, ha="right")
        y += LEADING
    canvas.line([(MARGIN, y), (MARGIN + INNER, y)])
    for column, (head, note) in enumerate(facts(machine)):
        canvas.text(_left(column), y + 20, head)
        canvas.note(_left(column), y + 40, note)
    return canvas.finish(), describe(machine, building=building)


def ways(machine: Machine) -> list[Way]:
    """What happens to an op on a CPU tensor, to one on a GPU tensor, to a kernel, to a function."""
    torch = f"PyTorch {machine.torch}", f"built for {_built(machine)}"
    cpu = f"{_instructions(machine)}up to {count(machine.threads, 'thread')} an op"
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
        found.append(Way(code, torch, ("an error", _why_no_gpu(machine)), missing=True))
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
    """A way that ends where something can't be compiled, with the command that opens it."""
    missing = " and ".join(f"no {tool}" for tool in lack.tools)
    error = "an error", "what it writes is not compiled"
    return Way(code, (library, missing), error, missing=True, opens=lack.how)


def opening(found: list[Way]) -> list[str]:
    """A line for each command that opens closed ways, however many of them it opens."""
    return list(dict.fromkeys(f"To open it: {way.opens}" for way in found if way.opens))


def facts(machine: Machine) -> list[tuple[str, str]]:
    """Three facts about what carries it all, each with a note."""
    memory = human_bytes(machine.memory) if machine.memory else "unknown"
    return [
        (f"Python {machine.python}", f"{machine.system}, {machine.architecture}"),
        (count(machine.cores, "core"), "that this process may use"),
        (memory, "of main memory, at the most"),
    ]


def sentence(machine: Machine, *, building: bool = False) -> str:
    """Where things run, as the figure's title."""
    ops = f"on the CPU and on {machine.gpus[0].name}" if machine.gpus else "on the CPU"
    kernels = {
        "gpu": "Triton's kernels on the GPU.",
        "interpreter": "Triton's kernels in an interpreter.",
        "": "no Triton kernel at all.",
    }[machine.triton_runs]
    joint = "and" if machine.triton_runs else "but"
    where = "On the machine that built this page" if building else "Here"
    return f"{where}, PyTorch's ops run {ops}, {joint} {kernels}"


def describe(machine: Machine, *, building: bool = False) -> str:
    """Return the alternative text: each way, then the facts."""
    parts = [f"Machine report. {sentence(machine, building=building)}"]
    for way in ways(machine):
        state = " (closed here)" if way.missing else ""
        state = f" (closed here; to open it: {way.opens})" if way.opens else state
        steps = [f"{head} ({note})" for head, note in (way.code, way.library, way.device)]
        parts.append(f"{' to '.join(steps)}{state}.")
    held = "; ".join(f"{head}, {note}" for head, note in facts(machine))
    return " ".join([*parts, f"{held}."])


def _why_no_gpu(machine: Machine) -> str:
    if machine.build == "CPU":
        return "this build has no code for a GPU"
    return f"built for {machine.build}, but no GPU is found"


def _built(machine: Machine) -> str:
    built = "the CPU" if machine.build == "CPU" else f"the CPU and {machine.build}"
    return "the CPU and Apple's GPU" if machine.gpu_device == "mps" else built


def _instructions(machine: Machine) -> str:
    # PyTorch's word where it uses nothing special: NO AVX, or DEFAULT.
    known = machine.instructions.upper() not in ("DEFAULT", "NO AVX", "")
    return f"{machine.instructions}, " if known else ""


def _left(column: int) -> float:
    return MARGIN + column * (WIDE + GAP)


def _draw_box(
    canvas: Canvas,
    column: int,
    y: float,
    texts: tuple[str, str],
    fill: str,
    dashed: bool = False,
    mono: bool = False,
) -> None:
    left = _left(column)
    edge = MUTED if dashed else RULE
    canvas.boxes([(left, y, WIDE, BOX_H)], [fill], edge=edge, line=1.2, radius=7, dashed=dashed)
    head, note = texts
    room = WIDE - 24 - (16 if column == 2 else 0)
    if text_width(head, size=13, mono=mono) > room:
        head = wrap(head, room, size=13, mono=mono)[0] + " …"
    canvas.text(left + 12, y + 20, head, mono=mono)
    canvas.text(left + 12, y + 40, note, size=SMALL, colour=MUTED)
