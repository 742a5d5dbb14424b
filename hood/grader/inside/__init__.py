"""The modules that run in the zygote, in the sandbox and in the kernel.

They import nothing of the engine but each other and :mod:`hood.judge.connection`: of the rest a
sandbox sees only what a learner's notebook imports (:mod:`hood.grader.sandbox.stage`).

Theory of operation
-------------------

To import torch and IPython takes seconds, and to build a sandbox takes milliseconds. So one process
imports everything once and runs nothing: the :mod:`zygote <hood.grader.inside.zygote>`. It is
started by the process that grades, has a single thread, and never sees a seed, a check or a grade.
For each notebook it gets a request, with limits and with the descriptor of the submission's folder:

1. **The room.** :mod:`bubblewrap <hood.grader.inside.bubblewrap>` makes namespaces (of processes,
   mounts, network, IPC and host name, and of users where the grader is not root) and a file tree:
   the Python environment and copies of the course's packages and of what is imported of the
   engine, for reading; ``/tmp`` and a home in memory. In it runs one process that sleeps. When it
   ends, Linux ends everything else in the namespace.
2. **The way in.** The zygote forks. The child joins the namespaces and forks once more, since only
   a joiner's own child is in the namespace of processes. That grandchild copies the submission's
   plain files into the home, closes all other descriptors, and gives up for ever
   (:mod:`confinement <hood.grader.inside.confinement>`) its limits, root's user id, all
   capabilities, and at last, by a filter (:mod:`seccomp <hood.grader.inside.seccomp>`), most system
   calls. Only then it runs IPython's shell (:mod:`kernel <hood.grader.inside.kernel>`). If any step
   fails, nothing runs.
3. **The talk.** Two sockets lead outside, both made before: one carries the cells and what they
   show (:mod:`messages <hood.grader.inside.messages>`), the other calls of the learner's functions
   (:mod:`rpc_server <hood.judge.connection.rpc_server>`), whose arguments and results cross as data
   that cannot execute (:mod:`codec <hood.judge.connection.codec>`). The process inside answers;
   whoever asks, outside, bounds size, depth and time, and judges.
4. **The watch.** The zygote looks at each sandbox at irregular moments
   (:mod:`usage <hood.grader.inside.usage>`): memory of its processes, of its files and of Linux on
   its behalf, time of its own. Where it may make a :mod:`cgroup <hood.grader.inside.cgroup>`, Linux
   itself holds the memory. At a limit the sandbox ends, and the reason is sent to who asked.
5. **The end.** Each sandbox hangs on a socket, its lease. When the lease is closed, because the
   notebook is done or the process that grades is dead, the sandbox ends, and nothing of it is left.
"""
