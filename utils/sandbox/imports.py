"""Import, in the zygote, the modules that kernels need, so that no kernel imports them itself.

A test compares the lists with what the labs import. Nothing here may start a thread, because a fork
of a process with threads can hang. What each course needs, :mod:`hood.grader.inside.preload` has.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import string
from collections.abc import Iterable
from typing import Any

ALWAYS = (
    # imported by the first operator on a tensor subclass; needs what the first `backward` would
    "torch.distributed.tensor",
    "einops._torch_specific",
)

# For labs that trace or compile. Other labs do without, which makes their kernels smaller.
TRACER = (
    "multiprocessing.synchronize",
    "sympy.physics.units",
    "torch._dynamo.dce_extra_outputs",
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
    "torch.testing._internal.optests",  # for an operator of one's own
    "torch.utils._cpp_embed_headers",
    "torch.utils.cpp_extension",
    "utils.instruments.launching",
    "utils.instruments.interpreter",
)

# What a lab may ask for with `preload:` in its header.
ON_DEMAND = {
    "optimizers": (
        "torch._dynamo",  # hundreds of modules
        "torch.profiler._cupti_monitor",
        "torch.utils.serialization.config",  # imported by the first torch.save
        "utils.drivers.training",
    ),
    # Timers come with torch's extension builder, which comes with setuptools: a hundred modules.
    "profiler": ("torch.utils.benchmark",),
    "flops": ("torch.utils.flop_counter",),  # with Triton
    # models in Hugging Face's form: three seconds, 1,500 modules
    "transformers": (
        "numpy.ctypeslib",
        "transformers.models.auto.tokenization_auto",
        "transformers.models.llama.modeling_llama",
        "utils.drivers.transformer",
        "utils.minigpt.lines",
    ),
}

# `torch.manual_seed` formats three tracebacks for accelerators, even where there are none.
on_the_stack = ("torch.cuda", "torch.mps", "torch.random", "torch.xpu")

# Modules of the course, and what the engine imports where there is torch.
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
    """Import ``ALWAYS`` and ``OURS``, and go backward once."""
    for name in ALWAYS:
        importlib.import_module(name)
    # torch starts autograd's threads at a process's first backward, one for each device. No GPU is
    # visible here; but in a CUDA build FakeTensorMode then pretends that there are eight. As their
    # threads start, an assertion of torch 2.13 fails now and then, and the kernel is aborted: two
    # of fifty in a lab that compiles. Nor could it fork processes that go backward, as those of
    # `torch.distributed` do. So go backward once, before anything is traced.
    torch = importlib.import_module("torch")
    torch.ones((), requires_grad=True).backward()
    _let_modes_start_alone(True)
    _import(OURS)
    _make_letters()


def _import(names: Iterable[str]) -> None:
    """Import modules, except those that another torch does not have."""
    for name in names:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)


def _make_letters() -> None:
    """Fill the cache of outlines that views fill when they first write.

    The fonts themselves are forgotten again: each has a file open, which no kernel inherits.
    """
    letters = importlib.import_module("utils.views._text_outlines")
    for mono in (False, True):
        letters.text_width(f"{string.printable[:95]}·×→…", size=12, mono=mono)
    letters._face.cache_clear()


def _let_modes_start_alone(alone: bool) -> None:
    """Keep a kernel's first dispatch mode from importing ``torch._dynamo``, or let it, as torch.

    A mode imports it to exclude its own work from compilation, which takes a second. A kernel that
    traces nothing does not need that.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode
    mode._should_skip_dynamo = classmethod(lambda cls: not alone)


def preload_group(name: str) -> None:
    """Import a group of :data:`ON_DEMAND`.

    Dynamo switches the validation of ``torch.distributions`` off for the whole process when it is
    imported. It is switched on again, so that a kernel begins as torch does.
    """
    from torch.distributions import Distribution

    validates = Distribution._validate_args
    _import(ON_DEMAND[name])
    Distribution.set_default_validate_args(validates)


def preload_tracer() -> None:
    """Import what the first call of a traced function would, down to Inductor's door.

    For labs that trace and never emit code: Dynamo, AOTAutograd, fake tensors, ``opcheck``; and
    Triton with its interpreter, which wants no compiler either.
    """
    _let_modes_start_alone(False)
    _import(TRACER)
    from torch._dynamo import guards
    from torch._dynamo.backends.registry import list_backends

    # Dynamo times the guards of each graph, for a log that no kernel keeps. It fills 32 MiB first,
    # to empty the processor's caches. Each kernel would need that memory.
    private: Any = guards
    private.profile_guard_manager = lambda root, local_scope, n_iters: 0.0
    list_backends()


def preload_compiler() -> None:
    """Do in advance what the first call of a compiled function does: imports and hashes.

    Inductor hashes the files of torch and Triton. It caches the results, and every kernel inherits
    them. It also tries the compiler and the processor: see :mod:`utils.sandbox.headers`.
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
    # The patterns that Inductor looks for in every graph, 0.2 seconds of CPU. It traces them with
    # fake tensors. Each trace would show a bar of tqdm, which starts a thread.
    private: Any = hub
    with mock.patch.object(private.tqdm, "monitor_interval", 0, create=True):
        joint_graph.lazy_init(torch.device("cpu"))
        post_grad.lazy_init()
