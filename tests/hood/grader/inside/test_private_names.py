"""The private names of other libraries that a sandbox's kernel uses.

They are reached in three modules: ``kernel`` puts its own parts into IPython's shell, ``preload``
names internals of other libraries, and ``utils.sandbox.imports`` those of torch. If a newer version
lacks a name, this test fails and says which name is gone.
"""

import importlib.util
from importlib.metadata import version

import pytest
from IPython.core.displayhook import DisplayHook
from IPython.core.profiledir import ProfileDir

from hood.grader.inside import kernel, preload
from utils.sandbox import imports as of_course

# The base's methods that each class replaces. If the base loses one of these names, the method
# would silently become a new one that nobody calls.
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
def test_replaced_names_still_exist(ours):
    for name in REPLACED[ours]:
        said = f"{name} is gone: look at IPython {version('IPython')}"
        assert name in vars(ours), f"{ours.__name__}.{name} is listed here and defined nowhere"
        assert any(hasattr(base, name) for base in ours.__bases__), said


def test_set_names_still_exist():
    assert isinstance(DisplayHook.is_active, property)  # of what `finish_displayhook` sets
    assert ProfileDir._location_isset is not None


@pytest.mark.parametrize(
    "listed", [preload.ALWAYS, of_course.ALWAYS, of_course.TRACER], ids=["engine", "all", "tracer"]
)
def test_preloaded_names_exist(listed):
    gone = [name for name in listed if importlib.util.find_spec(name) is None]
    assert gone == [], f"no longer there in torch {version('torch')} or beside it"
