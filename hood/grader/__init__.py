"""Strangers' notebooks in, verdicts out.

How a submission is graded; modules stand without "hood.grader." in front, unless they begin with
another room. Only a kernel runs learners' code, and only a kernel is confined (unless
--unsafe-no-sandbox is given).

The batch process, trusted, one at a time in a course folder
 1. classroom.recording      the command `grade` starts a run for each lab, with one seed for all
    batch.intake             reads the lab and each submission; hood.manifest says what a verdict
                             rests on beside them
 2. submission.files         reads submitted/ within limits (.matching, .names: what is whose)
 3. batch.job                describes the work (Job) and what comes back (Result); its id says
                             what is graded already and unchanged
    batch.pool, .cluster     send jobs to workers here, or through Dask
A worker, trusted, one job at a time
 4. batch.worker, .grading   grade a job within submission.bounds, by steps 5 and 6
    sandbox.warm_process     starts this worker's zygote; sandbox.stage says what sandboxes see
 5. submission.notebook, .companions, .rebuild
                             parse what was handed in, and put the answers into the lab's notebook
 6. cleaning.sanitize        makes learners' text harmless, and after step 12 the outputs
    execution.execute        runs the cells in order (steps 7 to 12), by sandbox.kernel and .outputs
The zygote, trusted, outside of every sandbox; it never sees a seed, a check or a grade
 7. inside.zygote            imports what kernels need (inside.preload), then serves requests
    inside.bubblewrap, .cgroup, .usage
                             build a sandbox for each notebook, and end it at its limits
A kernel, confined to its sandbox, one for each notebook
 8. inside.confinement       gives up all rights (inside.seccomp) before any learner's code runs
    inside.kernel            runs cells; of one with verify(...) only what is above its hidden part
 9. judge.connection         instead of that part: .rpc_server calls what the worker asks for, and
                             judges nothing; .originals tells what the learner's code changed in
                             libraries
The worker again, for each cell with verify(...); in plain asserts the kernel judges itself
10. execution.examiner       talks to the kernel in a thread, and has judge make the verdict
11. execution.graded_cell    writes the verdict into the cell's outputs
12. judge.examples           finds small failing calls
The batch process again
13. classroom.recording      writes autograded/ and the gradebook, in a transaction for each; where
                             many fail, the lab's own source is graded, too

`nbgrader` has what nbgrader's own commands need, and all that is patched in it without a class.
`course` opens a course folder with nbgrader's settings, `course_sandbox` asks what the course adds
to sandboxes, `outline` reads a lab's exercises and points, `run_record` what is kept of a run in a
notebook.
"""
