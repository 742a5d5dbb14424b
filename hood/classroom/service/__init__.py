"""Give verdicts while learners work: a service beside JupyterHub, or alone.

`python -m hood serve` starts the service in the course's folder, under an account that learners
can't use. A learner's own Jupyter server has only the bundle, which has no checks. There,
`check("view_strides")` sends the cells that the kernel has run to the service
(:mod:`hood.learner.service`), and shows the card that the service sends back.

:mod:`.app`
    the web application: it decides who may send which requests, sets limits, and replies.
:mod:`.people`
    identifies the sender of a request by a token, from JupyterHub or from the instructor.
:mod:`.marking`
    serves the pages on which teachers mark written answers, behind the service's login.
:mod:`.queue`
    stores the waiting and finished jobs in the gradebook's database.
:mod:`.single_exercise`
    makes a lab from one exercise, a submission from a learner's cells, and a card from a verdict.
:mod:`.dispatcher`
    takes jobs from the queue, and grades them in sandboxes with the workers of the batch grader.

No grade is recorded from a job. The seed of its cases differs from the seed of grading. One learner
gets the same seed for one exercise during a whole day, so that another request on that day reveals
no new cases.
"""
