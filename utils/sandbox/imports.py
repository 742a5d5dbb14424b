"""Import, in the zygote, the modules that kernels need, so that no kernel imports them itself.

A test compares the lists with the imports of the labs. Nothing here may start a thread, because a
fork of a process with threads can hang. :mod:`hood.grader.inside.preload` has the modules that
every course needs.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import string
from collections.abc import Iterable
from typing import Any

ALWAYS = (
    # The first operator on a tensor subclass imports this module. It needs modules that the first
    # `backward` imports.
    "torch.distributed.tensor",
    "einops._torch_specific",
)

# Modules for labs that trace or compile. Kernels of other labs are smaller without these modules.
TRACER = (
    "multiprocessing.synchronize",
    "sympy.physics.units",
    "sympy.sets.setexpr",
    "torch._dynamo.dce_extra_outputs",
    "torch._export.passes.replace_autocast_with_hop_pass",
    "torch._export.passes.replace_set_grad_with_hop_pass",
    "torch._functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass",
    "torch._functorch._aot_autograd.subclass_codegen",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.codegen.segmented_tree",
    "torch._inductor.compiler_bisector",
    "torch._inductor.extern_node_serializer",
    "torch._inductor.fx_passes.apply_gumbel_max_trick",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.hooks",
    "torch.distributed.tensor.experimental._attention",
    "torch.export._trace",
    "torch.fx.experimental.validator",
    "torch.testing._internal.optests",  # for operators that learners register
    "torch.utils._cpp_embed_headers",
    "torch.utils.cpp_extension",
    "utils.drivers.cpp_operator",
    "utils.drivers.exporting",  # with `compiling` and `decoding`
    "utils.instruments.launching",
    "utils.instruments.interpreter",
)

# Groups that a lab may name with `preload:` in its header.
ON_DEMAND = {
    "optimizers": (
        "torch._dynamo",  # hundreds of modules
        "torch.profiler._cupti_monitor",
        "torch.utils.serialization.config",  # imported by the first torch.save
        "utils.drivers.killing",
        "utils.drivers.measuring",
        "utils.drivers.training",
    ),
    # Timers import torch's extension builder, which imports setuptools: a hundred modules.
    "profiler": ("torch.utils.benchmark",),
    "flops": ("torch.utils.flop_counter",),  # with Triton
    # models in Hugging Face's form: three seconds, 1,500 modules
    "transformers": (
        "numpy.ctypeslib",
        "transformers.models.auto.tokenization_auto",
        "transformers.models.llama.modeling_llama",
        "utils.drivers.adapters",
        "utils.drivers.transformer",
        "utils.minigpt.lines",
    ),
    # The first gradient of `torch.func` imports Dynamo. The first `jvp` takes another second.
    "derivatives": (
        "torch._dynamo",
        "torch._decomp.decompositions_for_jvp",
        "utils.drivers.derivatives",
        "utils.minigpt.lines",
    ),
}

# `torch.manual_seed` formats three tracebacks for accelerators, even without an accelerator.
on_the_stack = ("torch.cuda", "torch.mps", "torch.random", "torch.xpu")

# Modules of the course, and modules that the engine imports if torch is installed.
OURS = (
    "hood.judge.connection.torch_calls",
    "hood.judge.values.tensors",
    "utils.minigpt.generation",
    "hood.learner.explain",
    "hood.learner.progress",
    "utils.views",
    "utils.instruments.world.gloo",
)


def preload() -> None:
    """Import ``ALWAYS`` and ``OURS``, and call backward once."""
    for name in ALWAYS:
        importlib.import_module(name)
    # At the first backward of a process, torch starts a thread of autograd for each device. No GPU
    # is visible here. But in a CUDA build, FakeTensorMode pretends that there are eight GPUs. When
    # the threads of these GPUs start, an assertion of torch 2.13 sometimes fails and aborts the
    # kernel. In a lab that compiles, this happened to two of fifty kernels. Also, a kernel with
    # these threads could not fork processes that call backward, which `torch.distributed` needs. So
    # call backward once here, before any code is traced.
    torch = importlib.import_module("torch")
    torch.ones((), requires_grad=True).backward()
    _let_modes_start_alone(True)
    _import(OURS)
    _make_letters()


def _import(names: Iterable[str]) -> None:
    """Import modules. Skip modules that this version of torch does not have."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)


def _make_letters() -> None:
    """Fill the cache of text outlines. Otherwise each kernel's first view would fill it.

    The font objects are not kept, because each has an open file, which no kernel inherits.
    """
    letters = importlib.import_module("utils.views._text_outlines")
    for mono in (False, True):
        letters.text_width(f"{string.printable[:95]}·×→…", size=12, mono=mono)
    letters._face.cache_clear()


def _let_modes_start_alone(alone: bool) -> None:
    """Set whether the first dispatch mode of a kernel imports ``torch._dynamo``.

    alone: whether the mode starts without this import. By default torch imports ``torch._dynamo``,
        so that the mode's work is not compiled. The import takes a second, and is not needed in a
        kernel that traces nothing.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode
    mode._should_skip_dynamo = classmethod(lambda cls: not alone)


def preload_group(name: str) -> None:
    """Import a group of :data:`ON_DEMAND`.

    The import of Dynamo switches off the validation of ``torch.distributions`` for the whole
    process. This function switches the validation on again, as in torch's default.
    """
    from torch.distributions import Distribution

    validates = Distribution._validate_args
    _import(ON_DEMAND[name])
    Distribution.set_default_validate_args(validates)


def preload_tracer() -> None:
    """Import the modules that a traced function's first call imports before it runs Inductor.

    This is for labs that trace, but write no code. They use Dynamo, AOTAutograd, fake tensors,
    ``opcheck`` or Triton's interpreter.
    """
    _let_modes_start_alone(False)
    _import(TRACER)
    from torch._dynamo import guards
    from torch._dynamo.backends.registry import list_backends

    # Dynamo measures the time of each graph's guards, for a log that no kernel uses. Before this,
    # Dynamo fills 32 MiB of memory, to empty the processor's caches. Each kernel would need this
    # memory.
    private: Any = guards
    private.profile_guard_manager = lambda root, local_scope, n_iters: 0.0
    list_backends()


def preload_compiler() -> None:
    """Do the imports and hashes of a compiled function's first call in advance.

    Inductor hashes the files of torch and Triton. It caches the hashes, and every kernel inherits
    the cache. Inductor also tests the compiler and the processor: see :mod:`utils.sandbox.headers`.
    """
    preload_tracer()
    from unittest import mock

    import torch
    from torch import hub
    from torch._inductor import codecache
    from torch._inductor.codegen.common import get_device_op_overrides, init_backend_registration
    from torch._inductor.fx_passes import joint_graph, post_grad, serialized_patterns

    init_backend_registration()
    get_device_op_overrides("cpu")
    for pattern in pkgutil.iter_modules(serialized_patterns.__path__):
        importlib.import_module(f"{serialized_patterns.__name__}.{pattern.name}")
    codecache.torch_key()
    codecache.triton_key()
    # Inductor searches every graph for patterns. It first traces the patterns with fake tensors,
    # which takes 0.2 seconds of CPU. Each trace would show a progress bar of tqdm, which starts a
    # thread.
    private: Any = hub
    with mock.patch.object(private.tqdm, "monitor_interval", 0, create=True):
        joint_graph.lazy_init(torch.device("cpu"))
        post_grad.lazy_init()
