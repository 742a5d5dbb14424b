"""Grade strangers' notebooks in sandboxes.

The steps below grade a submission. The names of modules are shortened: "hood.grader." is left out,
and for other modules "hood." is left out. Only a kernel runs learners' code, and only a kernel is
confined. With --unsafe-no-sandbox, nothing is confined.

The batch process (trusted; one at a time in a course folder)
 1. classroom.recording      the command `grade` starts a run for each lab, with one seed for all
                             learners
    batch.intake             reads the lab and each submission; hood.manifest has the versions of
                             everything else that a verdict depends on
 2. submission.files         reads submitted/ within limits (.matching and .names identify files)
 3. batch.job                describes the work (Job) and its outcome (Result); a job's id shows
                             whether a submission has changed since it was graded
    batch.pool, .cluster     send jobs to workers here, or through Dask
A worker (trusted; one job at a time)
 4. batch.worker, .grading   grade a job within submission.bounds, in steps 5 and 6
    sandbox.warm_process     starts this worker's zygote; sandbox.stage says what sandboxes see
 5. submission.notebook, .companions, .rebuild
                             parse the submission, and put its answers into the lab's notebook
 6. cleaning.sanitize        sanitizes learners' text now, and the outputs after step 12
    execution.execute        runs the cells in order (steps 7 to 12); see sandbox.kernel, .outputs
The zygote (trusted; outside every sandbox); it never sees a seed, a check or a grade
 7. inside.zygote            imports the modules for kernels (inside.preload), then serves requests
    inside.bubblewrap, .cgroup, .usage
                             build a sandbox for each notebook, and end it at its limits
A kernel (confined to its sandbox; one for each notebook)
 8. inside.confinement       gives up all rights (inside.seccomp) before any learner's code runs
    inside.kernel            runs cells; in a cell with verify(...), it runs only the visible part
 9. judge.connection         replaces the hidden part: .rpc_server makes the calls that the
                             worker requests, and judges nothing; .originals reports changes
                             that the learner's code made to libraries
The worker again, for each cell with verify(...); a kernel judges plain asserts itself
10. execution.examiner       talks to the kernel in a thread, and makes the verdict with hood.judge
11. execution.graded_cell    writes the verdict into the cell's outputs
12. judge.examples           finds small failing calls
The batch process again
13. classroom.recording      writes autograded/ and the gradebook, in one transaction for each
                             submission; if many submissions fail, the lab's own source is graded
                             too

`nbgrader` runs nbgrader's own commands, with those patches that do not depend on a class's rules.
`course` opens a course folder with nbgrader's settings, `course_sandbox` loads the course's
additions to sandboxes, `outline` reads a lab's exercises and points, and `run_record` reads the
record of a run in a notebook.
"""
