"""Ask small questions with checked answers, between two sections of a lesson.

In a live notebook, the reader answers in the notebook, and then reads why the answer is right or
wrong. There is also a paper form, for a built lesson, a web page, and a notebook without its
kernel. In the paper form every answer is folded. A lesson does not wait for answers.

In every text, words between backticks are set as code, *words between stars* are emphasized, and
**words between double stars** are bold.
"""

from __future__ import annotations

import base64
import html
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from hood.audience import can_move
from hood.learner import journal
from utils.notebook import screen_reader
from utils.notebook.figures import in_ipython
from utils.notebook.style import INK, MUTED, RIGHT, RIGHT_TINT, WRONG, WRONG_TINT

if TYPE_CHECKING:
    from ipywidgets import Widget

UNREAD = MUTED
# JupyterLab's variables if they exist, so that a drill follows the light and the dark theme.
CARD = (
    "border-left: 4px solid {edge}; padding: 2px 0 2px 14px; margin: 8px 0; max-width: 760px; "
    "line-height: 1.5; font-size: var(--jp-content-font-size1, 14px); "
    "color: var(--jp-content-font-color1, inherit)"
)
BUTTON_CSS = screen_reader.style(
    ".hood-drill button.jupyter-button {white-space: normal; text-align: left; "
    "height: auto; min-height: 30px; line-height: 1.4; padding: 5px 12px}"
)

# A star means multiplication if it has a space on its inner side, or a letter or a digit on its
# outer side.
EMPHASIS = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*]+)(?<=[^\s*])\*(?![\w*])")


def number(
    question: str,
    answer: float,
    *,
    why: str,
    unit: str | None = None,
    tolerance: float = 0,
    wrong: Mapping[float, str] | None = None,
) -> None:
    """Ask for a number.

    question: the text of the question.
    answer: the right number.
    why: the explanation of the answer.
    unit: the unit of the answer. The reader may type it.
    tolerance: the largest accepted |given - answer|, in the unit of the answer.
    wrong: a number that results from a known mistake -> a description of the mistake.

    Raises ValueError if `answer` is not finite, or if a number in `wrong` would be accepted.
    """
    wrong = dict(wrong or {})
    if not math.isfinite(answer):
        raise ValueError(f"a drill needs a finite answer, got {answer!r}")
    for mistake in wrong:
        if abs(mistake - answer) <= tolerance:
            accepted = f"{answer!r} ± {tolerance!r}"
            raise ValueError(f"{mistake!r} is in `wrong`, but is within {accepted}")
    shown = f"{_written(answer)} {unit or ''}".strip()

    def judge(text: str) -> tuple[str, str]:
        try:
            given = read_number(text, unit)
        except ValueError as error:
            return UNREAD, str(error)
        if abs(given - answer) <= tolerance:
            return RIGHT, f"**Right: {shown}.** {why}"
        reason = wrong.get(given) or f"The answer is {'larger' if given < answer else 'smaller'}."
        return WRONG, f"**Not {_written(given)}.** {reason}"

    def live() -> Widget:
        import ipywidgets as widgets

        field = widgets.Text(
            placeholder=f"a number{f', in {unit}' if unit else ''}",
            continuous_update=False,
            layout=widgets.Layout(width="220px"),
        )
        feedback = widgets.HTML()
        check = widgets.Button(description="Check", layout=widgets.Layout(width="auto"))

        def answered(_: object) -> None:
            if field.value.strip():
                tone, words = judge(field.value)
                if tone != UNREAD:
                    journal.drill(question, tone == RIGHT)
                feedback.value = _card(tone, words)

        field.observe(answered, names="value")  # after Enter, or when the reader leaves the field
        check.on_click(answered)
        return _stack(_card(UNREAD, question), widgets.HBox([field, check]), feedback)

    folded = _details("The answer", f"**{shown}.** {why}")
    folded += "".join(
        _details(f"If you got {_written(mistake)}", reason) for mistake, reason in wrong.items()
    )
    judged = {"answer": answer, "tolerance": tolerance, "unit": unit or "", "wrong": list(wrong)}
    _ask(question, [], folded, judged, live)


def choice(question: str, options: Mapping[str, str], answer: str) -> None:
    """Ask to choose one of several options.

    options: option -> the reason why it is right or wrong.
    answer: the right option.

    Raises ValueError if there are fewer than two options, if an option has no explanation, or if
    `answer` is not an option.
    """
    if len(options) < 2:
        raise ValueError(f"a choice needs two options or more, got {len(options)}")
    if answer not in options:
        raise ValueError(f"the answer must be one of {list(options)}, got {answer!r}")
    for option, reason in options.items():
        if not reason.strip():
            raise ValueError(f"the option {option!r} needs an explanation: a reader may choose it")

    def verdict(option: str) -> tuple[str, str]:
        if option == answer:
            return RIGHT, f"**Right.** {options[option]}"
        return WRONG, f"**No.** {options[option]}"

    def live() -> Widget:
        import ipywidgets as widgets

        feedback = widgets.HTML()
        wide = max(map(len, options)) > 24

        def button(option: str) -> Widget:
            made = widgets.Button(
                description=_bare(option),
                layout=widgets.Layout(width="min(100%, 620px)" if wide else "auto"),
            )

            def chosen(pressed: widgets.Button) -> None:
                tone, words = verdict(option)
                journal.drill(question, tone == RIGHT)
                pressed.style.button_color = RIGHT_TINT if tone == RIGHT else WRONG_TINT
                pressed.style.text_color = INK
                feedback.value = _card(tone, f"{option}: {words}")

            made.on_click(chosen)
            return made

        row = widgets.VBox if wide else widgets.HBox
        buttons = [button(option) for option in options]
        return _stack(_card(UNREAD, question), row(buttons), feedback)

    folded = "".join(_details(option, verdict(option)[1]) for option in options)
    _ask(question, list(options), folded, {"right": list(options).index(answer)}, live)


def true_false(statement: str, answer: bool, why: str) -> None:
    """Ask whether `statement` is true. After any answer, the reader sees the explanation `why`."""
    if not isinstance(answer, bool):
        raise ValueError(f"the answer must be True or False, got {answer!r}")
    choice(f"True or false? {statement}", {"True": why, "False": why}, str(answer))


def read_number(text: str, unit: str | None = None) -> float:
    """Return the number that a reader typed, such as 153600, 153,600, 153 600, 0.5, 0,5 or 1.5e3.

    Raises ValueError if the text is not a number, with a message for the reader.
    """
    plain = text.strip().lower().removesuffix((unit or "").lower())
    plain = re.sub(r"[\s_]", "", plain)
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", plain):
        plain = plain.replace(",", "")
    elif plain.count(",") == 1 and "." not in plain:
        plain = plain.replace(",", ".")  # a decimal comma
    try:
        given = float(plain)
    except ValueError:
        given = math.nan
    if not math.isfinite(given):
        raise ValueError(f"`{text.strip()}` is not a number I can read: type one like 2400 or 0.5.")
    return given


def _ask(
    question: str,
    options: list[str],
    folded: str,
    judged: Mapping[str, object],
    live: Callable[[], Widget],
) -> None:
    """Display the question in the paper form and, in a kernel, also in a live form.

    ``folded`` has the answers as HTML. ``judged`` has the rules with which the script of a web page
    judges answers. The rules are encoded, so that nobody sees the answer by accident.
    """
    plain = "\n".join([question, *(f"  - {option}" for option in options)])
    if not in_ipython():
        print(plain)
        return
    from IPython.display import publish_display_data

    bundle = {"text/plain": plain, "text/html": _card(UNREAD, question, folded, judged)}
    if can_move():
        # A page without the widget's kernel uses the paper form, which is displayed beside the
        # widget.
        bundle = {**live()._repr_mimebundle_(), **bundle}
    publish_display_data(bundle)


def _stack(question: str, controls: Widget, feedback: Widget) -> Widget:
    import ipywidgets as widgets

    feedback.layout.min_height = "40px"  # so that the page does not jump at the first answer
    feedback.add_class(screen_reader.SAID)
    box = widgets.VBox(
        [widgets.HTML(f"{BUTTON_CSS}<div data-question>{question}</div>"), controls, feedback]
    )
    box.add_class("hood-drill")
    return box


def _card(
    edge: str, words: str, folded: str = "", judged: Mapping[str, object] | None = None
) -> str:
    encoded = base64.b64encode(json.dumps(judged).encode()).decode("ascii")
    data = f' data-drill="{encoded}"' if judged else ""
    style = CARD.format(edge=edge)
    return f'<div role="note"{data} style="{style}"><div>{_set(words)}</div>{folded}</div>'


def _details(summary: str, words: str) -> str:
    return (
        f'<details style="margin: 3px 0"><summary style="cursor: pointer">{_set(summary)}</summary>'
        f'<div style="margin: 2px 0 6px 18px">{_set(words)}</div></details>'
    )


def _set(words: str) -> str:
    """Return `words` as HTML: `code` between backticks, **bold** and *emphasis* between stars."""
    parts = re.split(r"`([^`]+)`", html.escape(words, quote=False))
    plain = [re.sub(r"\*\*([^*]+)\*\*", r"<strong>\1</strong>", part) for part in parts[::2]]
    plain = [EMPHASIS.sub(r"<em>\1</em>", part) for part in plain]
    code = [f"<code>{part}</code>" for part in parts[1::2]]
    return "".join(text + span for text, span in zip(plain, [*code, ""], strict=True))


def _bare(words: str) -> str:
    parts = words.split("`")
    return "".join(p if k % 2 else EMPHASIS.sub(r"\1", p) for k, p in enumerate(parts))


def _written(value: float) -> str:
    return f"{value:,}" if float(value) != int(value) else f"{int(value):,}"
