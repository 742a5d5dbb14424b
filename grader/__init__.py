"""The course's build and grading tools. `python -m grader --help` lists the commands.

How `python -m grader grade` grades; modules stand without "grader." in front. Only a kernel runs
learners' code, and only a kernel is confined (unless --unsafe-no-sandbox is given). CONTRIBUTING.md
("Where a change goes") says which module to open for a change.

The batch process, trusted, one at a time in a course folder
 1. batch.command            starts a run for each lab, with one seed for all its submissions
    batch.intake, .version   read the lab and each submission, and hash what decides verdicts
 2. submission.files         reads submitted/ within limits (.matching, .names: what is whose)
 3. batch.job                describes the work (Job) and what comes back (Result); what is graded
                             and unchanged is skipped
    batch.pool, .cluster     send jobs to workers here, or through Dask; by batch.turns what takes
                             long is graded after the others
A worker, trusted, one job at a time
 4. batch.worker, .grading   grade a job within submission.bounds, by steps 5 and 6
    sandbox.warm_process     starts this worker's zygote; sandbox.stage says what sandboxes see
 5. submission.notebook, .companions, .rebuild
                             parse what was handed in, and put the answers into the lab's notebook
 6. preprocessors.sanitize   makes learners' text harmless, and after step 12 the outputs
    preprocessors.execute    runs the cells in order (steps 7 to 12), by sandbox.kernel and .outputs
The zygote, trusted, outside of every sandbox; it never sees a seed, a check or a grade
 7. inside.zygote            imports what kernels need (inside.preload), then serves requests
    inside.bubblewrap, .cgroup, .usage
                             build a sandbox for each notebook, and end it at its limits
A kernel, confined to its sandbox, one for each notebook
 8. inside.confinement       gives up all rights (inside.seccomp) before any learner's code runs
    inside.kernel            runs cells; of one with verify(...) only what is above its hidden part
 9. inside.rpc_server        instead of that part: calls what the worker asks for, judges nothing;
                             .originals tells what the learner's code changed in libraries
The worker again, for each cell with verify(...); in plain asserts the kernel judges itself
10. judging.examiner         talks to the kernel in a thread (.catalogue loads the check)
    judging.answer_key       draws the cases, and has reference and misconceptions play them here
    judging.outcome          plays a case by way of .subject and .rpc_client
11. judging.judge            makes the verdict, with .difference, .diagnosis, .by_hand
                             (.learner_source, .accounting); .report words it, .graded_cell
                             writes it
12. judging.example          finds small failing calls (.call_text, .literal and
                             .shown_values write them; .in_words tells the others)
The batch process again
13. batch.writer             writes autograded/ and the gradebook, in a transaction for each; where
                             many fail, batch.command has the lab's own source graded, too. With
                            --preview, batch.preview compares, and nothing is written
nbgrader's commands, trusted; `autograde` and formgrader come in by preprocessors.exporter
14. preprocessors.grades, .feedback, .page
                             read marks, and drop hidden tests, rubrics and paths for
    results.feedback         a learner's page (.look: what it has in common with the report)
15. results.class_report, .export, .coursefile, .regrade
                             report, grades.csv, what counts by a class's course.yml, requests
Jupyter's server (`make teach`) or the service, trusted
    marking                  pages on which people mark answers in words

The service (`python -m grader serve`), trusted, beside a JupyterHub
    service                 verdicts while learners work: its queue, and workers as in step 4;
                            takes in submissions, which batch.command grades as ever

What learners hand in passes `exchange`, `submission.zip_collect` and `.nbgrader_guard` before.
`authoring` makes the notebooks from phases/, `site` the static site, `proof` tests the checks and
makes the sample class, `answers` finds what gives a course away. `in_notebook` and `verify` judge
in a person's own notebook. `verdict` and `run_record` are the data that steps hand on, `untrusted`
reads such data of any shape.
"""

import sys

# jsonschema, which nbformat imports, loads rfc3987_syntax if it is installed. That module compiles
# a grammar for about one second in every process. The notebook schema does not use it, so the
# import is blocked.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]


class UserError(Exception):
    """An error that the user can fix. The command line prints its message without a traceback."""


def not_installed(what: str, error: ModuleNotFoundError) -> UserError:
    """Return the error that says what ``what`` needs, and how the lock installs it.

    No index is asked for this project by its name, which anybody may have taken there. Raises
    ``error`` where the missing module is one of the project's own.
    """
    missing = (error.name or "").partition(".")[0]
    if missing in ("", "grader", "utils"):
        raise error
    files = "-r lock/packages.txt -r lock/extras.txt"
    install = f"{sys.executable} -m pip install --no-deps --require-hashes {files}"
    return UserError(
        f"{what} needs {missing}, which is not installed. In the project's folder, run: {install}"
    )
