"""The course's build and grading tools. `python -m grader --help` lists the commands.

How `python -m grader grade` grades, step by step. A module stands where its work is done, without
"grader." in front. Only a kernel runs learners' code, and only a kernel is confined (unless
--unsafe-no-sandbox is given). What passes between processes: batch.job, inside.messages and codec.

Batch process, trusted. One at a time in a course folder.
 1. batch.command           starts a run for each lab, with one seed for all its submissions, and
                            refuses a second batch in this course folder
    batch.intake            reads the lab from source/, and later each submission in its turn
    batch.version           hashes what decides verdicts; a worker must have the same code
    course                  lets nbgrader enter the lab in the gradebook if it is not there
 2. submission.files        reads what lies in submitted/, within limits and without following links
    submission.matching     says which file is which notebook
    submission.names        compares and shows names, and says which folders are learners'
 3. batch.job               describes the work for a worker (Job) and what comes back (Result);
                            tells whether a submission changed. What is graded and unchanged is
                            skipped, or where it was graded by something else, batch.command asks
    batch.pool              sends jobs to workers on this machine, and replaces dead ones
    batch.cluster           or sends them to Dask workers, which start such workers themselves

Worker, trusted. It grades one job at a time.
 4. batch.worker            receives jobs and sends results
    sandbox.warm_process    starts this worker's zygote; sandbox.stage chooses what sandboxes see
    submission.bounds       limits the worker's own time and memory for each job
    batch.grading           grades a job: steps 5 and 6, in the order of nbgrader_config.py
 5. submission.companions   chooses the files beside the notebook, and which of them are kept
    submission.notebook     parses the submitted notebook
    submission.rebuild      puts the learner's answers into the lab's own notebook
 6. preprocessors.sanitize  makes the learner's text harmless, and after step 12 the outputs
    preprocessors.execute   runs the cells in order: steps 7 to 12
    sandbox.manager         asks the zygote for a kernel, with the lab's limits (sandbox.limits)
    sandbox.client          exchanges Jupyter's messages with that kernel

Zygote, trusted, outside of every sandbox. It never sees a seed, a check or a grade.
 7. inside.zygote           imports what kernels need (inside.preload), then serves requests
    inside.bubblewrap       builds a sandbox for each notebook, into which the zygote forks a kernel
    inside.cgroup           has Linux limit its memory, where the grader may make cgroups
    inside.usage            measures memory and time; the zygote ends a sandbox at its limits

Kernel, confined to its sandbox. One for each notebook.
 8. inside.confinement      gives up all rights (inside.seccomp) before any learner's code runs
    inside.kernel_app       runs cells; of one with verify(...) only what is above its hidden part
 9. inside.rpc_server       instead of that part: calls what the worker asks for, judges nothing

Worker again, for each cell with verify(...). In plain asserts the kernel judges itself (step 8).
10. judging.examiner        talks to the kernel in a thread; judging.catalogue loads the check
    judging.answer_key      draws the cases, and runs the reference and the misconceptions here
    judging.outcome         plays a case, here or there, and says what came of it
    judging.rpc_client      calls the learner's functions, by value (judging.subject)
11. judging.judge           makes the verdict, with judging.difference, .diagnosis and .by_hand
                            (with what .learner_source reads in the cells)
    judging.report          words the verdict; judging.graded_cell writes it into the cell
12. judging.example         after the last cell: finds small failing calls for the learner
                            (judging.call_text and .literal write them as Python)

Batch process again, trusted.
13. batch.command           if many jobs fail, has the lab's own source graded: is it the machine?
    batch.writer            writes a submission's folder in autograded/, whole or not at all, and
                            records its scores in the gradebook, in one transaction

Jupyter's server (`make teach`), trusted. `marking` has pages where people mark answers in words.

nbgrader (`generate_feedback`), trusted. `nbgrader autograde` and formgrader's button begin at step
1, too: preprocessors.exporter calls batch.command.
14. preprocessors.grades    reads marks, and says which are missing and who was late (results.marks)
    preprocessors.feedback  removes hidden tests, rubrics, paths; preprocessors.page has
    results.feedback        make the page
15. results.class_report    (`python -m grader report`) reads results.gradebook, writes reports/;
                            results.look is what its page and feedback have in common, and
                            results.regrade what learners ask for in both
    results.export          (`nbgrader export`) writes grades.csv
    results.coursefile      works out what counts by a class's course.yml, for all three, and
                            (`python -m grader course`) for learning platforms

What learners hand in passes nbgrader's own commands before and beside that: `exchange`,
`submission.zip_collect` and `submission.nbgrader_guard` make them safe. What learners fetch and
read links lessons where `lesson_links` says. `untrusted` reads values of any shape. `nbgrader`
starts nbgrader's command line faster.

Beside grading. `authoring` makes the notebooks from the texts in phases/ and refuses what would
hurt a class; `site` makes the static site from the notebooks; `proof` tests the checks and makes
the sample class. `check`, `demo` and `work` are commands of one module. `in_notebook` and `verify`
judge in a person's own notebook, where `solutions` shows a worked solution. `verdict` and
`run_record` are the data that the steps hand on, the second under the key of `metadata`.
`phase_paths` knows where things are, `whole_file` writes files that are never half written,
`inside.long_lived` makes imports cheaper, and `backquotes` shows `code` in texts.
CONTRIBUTING.md ("Where a change goes") says which module to open for a change.
"""

import sys

# jsonschema, which nbformat imports, loads rfc3987_syntax if it is installed. That module compiles
# a grammar for about one second in every process. The notebook schema does not use it, so the
# import is blocked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class UserError(Exception):
    """An error that the user can fix. The command line prints its message without a traceback."""
