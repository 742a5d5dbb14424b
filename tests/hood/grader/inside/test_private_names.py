"""The private names of other libraries that a sandbox's kernel leans on.

They are reached in three modules: ``kernel`` puts its own parts into IPython's shell, ``preload``
names internals of other libraries, and ``utils.sandbox.imports`` those of torch. When a pinned
version is raised, this is the place that fails and says which name is gone.
"""

import importlib.util
from importlib.metadata import version

import pytest
from IPython.core.displayhook import DisplayHook
from IPython.core.profiledir import ProfileDir

from hood.grader.inside import kernel, preload
from utils.sandbox import imports as of_course

# What each class puts in the place of its base's own. A name that the base no longer has would
# silently be a new one that nobody calls.
REPLACED = {
    kernel.Compiler: ["get_code_name"],
    kernel.Displays: ["clear_output", "publish"],
    kernel.Results: ["finish_displayhook", "write_format_data", "write_output_prompt"],
    kernel.Shell: [
        "_showtraceback",
        "compiler_class",
        "display_pub_class",
        "displayhook_class",
        "enable_gui",
        "exiter",
        "run_ast_nodes",
        "system",
        "system_piped",
    ],
}


@pytest.mark.parametrize("ours", REPLACED, ids=lambda ours: ours.__name__)
def test_what_is_replaced_is_still_there(ours):
    for name in REPLACED[ours]:
        said = f"{name} is gone: look at IPython {version('IPython')}"
        assert name in vars(ours), f"{ours.__name__}.{name} is listed here and defined nowhere"
        assert any(hasattr(base, name) for base in ours.__bases__), said


def test_what_is_set_is_still_there():
    assert isinstance(DisplayHook.is_active, property)  # of what `finish_displayhook` sets
    assert ProfileDir._location_isset is not None


@pytest.mark.parametrize(
    "listed", [preload.ALWAYS, of_course.ALWAYS, of_course.TRACER], ids=["engine", "all", "tracer"]
)
def test_what_is_imported_ahead_exists(listed):
    gone = [name for name in listed if importlib.util.find_spec(name) is None]
    assert gone == [], f"no longer there in torch {version('torch')} or beside it"
