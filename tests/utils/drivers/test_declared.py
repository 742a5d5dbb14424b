"""Every driver declares the results of the learner's code and its own observations."""

import ast
import inspect

import pytest

from hood.judge.connection.drivers import NoDriver, declared, driver, find_driver
from hood.phase_paths import ROOT

# The lab's own `run_module` calls `drive` of `module_spec`, so that one needs no declaration.
NO_DRIVERS = "__init__", "module_spec"
MODULES = sorted(
    p.stem for p in (ROOT / "utils" / "drivers").glob("*.py") if p.stem not in NO_DRIVERS
)


def functions_of(module):
    tree = ast.parse((ROOT / "utils" / "drivers" / f"{module}.py").read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and any(
            "driver(" in ast.unparse(d) for d in node.decorator_list
        ):
            yield node, declared(find_driver(f"utils.drivers.{module}:{node.name}"))


@pytest.mark.parametrize("module", MODULES)
def test_a_dict_that_a_driver_makes_is_declared_by_its_keys(module):
    """Otherwise an added fact would count as a returned value."""
    found = list(functions_of(module))
    assert found
    for node, says in found:
        own = [
            n for n in ast.walk(node) if isinstance(n, ast.Return) and isinstance(n.value, ast.Dict)
        ]
        named = (says.returned | says.observed.keys()) - {""}
        if own and "" in says.returned:
            pytest.fail(
                f"{module}:{node.name} returns a dict of its own, and declares it as a whole"
            )
        assert not own or named or not says.returned, node.name


def test_a_function_without_a_declaration_is_no_driver():
    with pytest.raises(NoDriver, match="decorate it"):
        declared(inspect.getsource)
    with pytest.raises(NoDriver, match="decorate it"):
        declared(driver()(lambda thing: 1))
