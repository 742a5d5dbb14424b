"""The modules that run in the zygote, in the sandbox and in the kernel.

They import nothing of ``grader`` but each other, because a sandbox sees only a copy of this folder
and of ``utils``.

To import torch and Jupyter takes seconds, and to build a sandbox takes milliseconds. So one process
with a single thread imports everything once and runs nothing: the zygote. For each notebook it has
:mod:`bubblewrap <grader.inside.bubblewrap>` make namespaces and a file tree, in which one process
sleeps whose end ends all. The zygote forks; the child joins the namespaces and forks once more,
since only a joiner's own child is in the namespace of processes. That grandchild gives up its
rights (:mod:`confinement <grader.inside.confinement>`), and only then it becomes an IPython kernel
(:mod:`kernel_app <grader.inside.kernel_app>`). Two sockets lead outside: one carries Jupyter's
messages, the other calls of the learner's functions, whose arguments and results are data that
cannot execute (:mod:`codec <grader.inside.codec>`). Whoever asks, outside, bounds size, depth and
time. The zygote looks at each sandbox at irregular moments (:mod:`usage <grader.inside.usage>`) and
ends it at a limit, or when its lease, a socket of the grading process, is closed.
"""
