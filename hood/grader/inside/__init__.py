"""The modules that run in the zygote, in the sandbox and in the kernel.

From the engine, these modules import only each other and :mod:`hood.judge.connection`. A sandbox
contains only these parts of the engine, and the modules that a learner's notebook imports
(:mod:`hood.grader.sandbox.stage`).

Theory of operation
-------------------

Importing torch and IPython takes seconds; building a sandbox takes milliseconds. So one process
imports everything once, and runs no learner's code itself: the :mod:`zygote
<hood.grader.inside.zygote>`. The grading process starts the zygote. The zygote has a single thread,
and never sees a seed, a check or a grade. For each notebook, the zygote gets a request, with limits
and with the descriptor of the submission's folder:

1. **Building.** :mod:`bubblewrap <hood.grader.inside.bubblewrap>` makes a file tree and namespaces:
   of processes, mounts, network, IPC and host name, and also of users if the grader is not root.
   The Python environment, and copies of the course's packages and of the engine's imported files,
   are read-only; ``/tmp`` and a home are in memory. One process in the sandbox only sleeps. When
   this process ends, Linux ends everything else in the namespace.
2. **Entering.** The zygote forks. The child joins the namespaces and forks once more, because only
   the grandchild is in the new namespace of processes. The grandchild copies the submission's plain
   files into the home, closes all other descriptors, and sets its limits. Then the grandchild gives
   up root's user id and all capabilities for ever (:mod:`confinement
   <hood.grader.inside.confinement>`). A filter takes away most system calls (:mod:`seccomp
   <hood.grader.inside.seccomp>`). Only then does the grandchild run IPython's shell (:mod:`kernel
   <hood.grader.inside.kernel>`). If any step fails, nothing runs.
3. **Talking.** Two sockets, made earlier, lead out of the sandbox. One socket carries the cells and
   their outputs (:mod:`messages <hood.grader.inside.messages>`). The other socket carries calls of
   the learner's functions (:mod:`rpc_server <hood.judge.connection.rpc_server>`). Arguments and
   results are sent as data that cannot be executed (:mod:`codec <hood.judge.connection.codec>`).
   The process inside only answers; the grader outside limits size, depth and time, and judges.
4. **Watching.** The zygote looks at each sandbox at irregular moments
   (:mod:`usage <hood.grader.inside.usage>`). The zygote measures the sandbox's own time, and the
   memory of its processes and files, including the memory that Linux uses for them. If the zygote
   may make a :mod:`cgroup <hood.grader.inside.cgroup>`, Linux itself limits the memory. At a limit
   the sandbox ends, and the grading process gets the reason.
5. **Ending.** Each sandbox depends on a socket, its lease. The lease is closed when the notebook is
   done or the grading process is dead. Then the sandbox ends, and leaves nothing behind.
"""
