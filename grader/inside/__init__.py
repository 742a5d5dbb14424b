"""The modules that run in the zygote, in the sandbox and in the kernel.

They import nothing of ``grader`` but each other, because a sandbox sees only a copy of this folder
and of ``utils``.
"""
