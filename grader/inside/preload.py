"""What the zygote imports, so that no kernel has to. A test compares it with what labs import.

Importing must start no thread and run no op: a fork of a process with threads hangs. The list is
shown to learners' kernels and holds nothing that they could not import themselves.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
import sys
from typing import Any

ALWAYS = (
    "numpy",
    "numpy.random",
    "torch",
    "torch.nn.functional",
    "torch.utils.data",
    "torch.fx.experimental.symbolic_shapes",
    "torch.distributed.tensor",  # asked for with the first operator on a subclass
    "matplotlib.pyplot",
    "matplotlib.backends.backend_agg",
    "matplotlib.backends.backend_svg",
    "matplotlib_inline.backend_inline",
    "IPython.core.completer",
    "IPython.core.completerlib",
    "IPython.core.debugger",
    "IPython.core.logger",
    "IPython.core.oinspect",
    "IPython.extensions.storemagic",
    "ipykernel.kernelapp",
    "ipykernel.ipkernel",
    "ipykernel.zmqshell",
    "ipywidgets",
    "tornado.platform.asyncio",
    "zmq.utils.garbage",
    "einops._backends",
    "einops._torch_specific",
    "encodings.utf_16_be",
    "faulthandler",
    "PIL.BmpImagePlugin",
    "PIL.GifImagePlugin",
    "PIL.ImageDraw",
    "PIL.ImageFont",
    "PIL.JpegImagePlugin",
    "PIL.PngImagePlugin",
    "PIL.PpmImagePlugin",
)

# For labs that compile; an ordinary lab's kernel is smaller without.
COMPILER = (
    "multiprocessing.synchronize",
    "sympy.physics.units",
    "sympy.tensor.tensor",
    "torch._dynamo.backends.registry",
    "torch._dynamo.dce_extra_outputs",
    "torch._functorch._activation_checkpointing.remat_using_tags_for_fwd_loss_bwd_graph_pass",
    "torch._functorch._aot_autograd.subclass_codegen",
    "torch._higher_order_ops.passes.inline_invoke_subgraph",
    "torch._inductor.bounds",
    "torch._inductor.choices",
    "torch._inductor.codegen.common",
    "torch._inductor.codegen.memory_planning",
    "torch._inductor.codegen.segmented_tree",
    "torch._inductor.compile_fx",
    "torch._inductor.compiler_bisector",
    "torch._inductor.extern_node_serializer",
    "torch._inductor.fx_passes.apply_gumbel_max_trick",
    "torch._inductor.fx_passes.efficient_conv_bn_eval",
    "torch._inductor.fx_passes.freezing_patterns",
    "torch._inductor.fx_passes.fuse_attention",
    "torch._inductor.fx_passes.mkldnn_fusion",
    "torch._inductor.fx_passes.pad_mm",
    "torch._inductor.fx_passes.quantization",
    "torch._inductor.hooks",
    "torch._inductor.kernel_template_choice",
    "torch._inductor.runtime.caching",
    "torch._subclasses.schema_check_mode",
    "torch.distributed.tensor.experimental._attention",
    "torch.export._trace",
    "torch.fx.experimental.validator",
    "torch.utils._cpp_embed_headers",
)

# Of the project, as the stage has it; a module that does not exist in it is left out.
OURS = (
    "utils.accesses",
    "utils.compare",
    "utils.course",
    "utils.expect",
    "utils.figures",
    "utils.minigpt.generation",
    "utils.minigpt.weights",
    "utils.progress",
    "utils.views",
    "grader.inside.rpc_server",
    "grader.inside.codec",
    "grader.inside.kernel_app",
)


def preload() -> None:
    """Import all of it. Raises ImportError for what the environment must have."""
    # Nobody debugs a graded notebook, and the debugger is most of a kernel's start.
    sys.modules["debugpy"] = None  # type: ignore[assignment]
    importlib.import_module("ipykernel.debugger")
    del sys.modules["debugpy"]
    for name in ALWAYS:
        importlib.import_module(name)
    _let_modes_start_alone()
    for name in OURS:
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module(name)


def _let_modes_start_alone() -> None:
    """Spare a kernel the import of ``torch._dynamo``, over a second, with its first dispatch mode.

    Modes ask it not to compile what they do. In a kernel that compiles nothing there is nothing to
    ask; in one that does, :func:`preload_compiler` puts the question back.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode
    mode._should_skip_dynamo = classmethod(lambda cls: False)


def preload_compiler() -> None:
    """Import what the first call of a compiled function would, and find out what it would.

    The compiler and the processor are tried in processes of their own, and the files of torch and
    Triton are hashed; Inductor remembers the answers, and every kernel inherits them.
    """
    from torch.utils._python_dispatch import TorchDispatchMode

    mode: Any = TorchDispatchMode
    mode._should_skip_dynamo = classmethod(lambda cls: True)  # as torch has it
    for name in COMPILER:
        with contextlib.suppress(ModuleNotFoundError):  # as another torch has them
            importlib.import_module(name)
    from torch._dynamo.backends.registry import list_backends
    from torch._inductor import codecache, cpu_vec_isa
    from torch._inductor.codegen.common import get_device_op_overrides, init_backend_registration
    from torch._inductor.fx_passes import serialized_patterns

    list_backends()
    init_backend_registration()
    get_device_op_overrides("cpu")
    for pattern in pkgutil.iter_modules(serialized_patterns.__path__):
        importlib.import_module(f"{serialized_patterns.__name__}.{pattern.name}")
    codecache.torch_key()
    codecache.triton_key()
    with contextlib.suppress(Exception):  # no compiler: a learner's own first call says so
        cpu_vec_isa.pick_vec_isa()
