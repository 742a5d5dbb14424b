"""Verdicts while learners work: a service beside JupyterHub, or alone (`python -m hood serve`).

A learner's server holds the bundle, which has no checks. There `check("view_strides")` sends the
cells that the kernel has run (:mod:`hood.learner.service`), and shows the card that comes back.
The service runs in the course's folder, under an account that learners do not have.

:mod:`.app`
    the web application: who may ask for what, within which limits, and what it answers.
:mod:`.people`
    who asks, by the token alone: JupyterHub's, or one that the instructor handed out.
:mod:`.marking`
    the pages on which those who teach mark answers in words, behind the service's login.
:mod:`.queue`
    the jobs that wait and those that are done, in the gradebook's database.
:mod:`.single_exercise`
    one exercise as a lab of its own, a learner's cells as a submission to it, a verdict as a card.
:mod:`.dispatcher`
    takes jobs from the queue and has them graded by the batch's workers, in their sandboxes.

A job records no grade. Its cases are drawn from another seed than grading's, which is the same
for one learner, exercise and day, so that asking again tells nothing new.
"""
