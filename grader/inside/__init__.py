"""What runs in the zygote, in the sandbox and in the kernel. It imports nothing of ``grader`` but
itself: a copy of this folder and of ``utils`` is all that a sandbox sees of the project.
"""
