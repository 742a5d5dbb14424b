"""From the text in `phases/` to the notebooks that people open.

    phases/NN_name/lesson.py -> notebooks/NN_name.ipynb          executed, outputs kept
    phases/NN_name/lab.py    -> source/NN_name/NN_name.ipynb     instructor's version
                             -> release/NN_name/NN_name.ipynb    learner's version, by nbgrader
    phases/start.py          -> notebooks/start.ipynb            executed like a lesson

Every transformation, in order, and where it is:

1.  A text becomes cells that know their lines: YAML header, compact cell headers (`text.parse`).
2.  The cells are looked at, all problems reported at once: `rules` (ids, delimiters, points, hidden
    regions, mark schemes, plain Python), `leaks` (solutions that show), `figures` (alternative
    text), `agreement` (lab, checks and lesson fit each other).
3.  A compact header becomes nbgrader's metadata, schema 3 (`cells.nbgrader_metadata`):
    given -> locked; solution -> the learner's, id + "_solution"; test -> graded and locked, with
    points; task -> marked by hand and locked, with points. `tags` are kept; the code of a cell
    tagged `hide-input` is folded away.
4.  `from grader.verify import verify` goes in front of the hidden line (`cells.insert_import`).
5.  Each cell gets an id that edits elsewhere don't change: nbgrader's id, or a hash of the content
    (`cells.cell_ids`).
6.  The notebook's metadata gets the kernel, the header's settings, and the fingerprints of its
    cells, by which a later edit is noticed (`notebook.to_notebook`).
7.  A lesson is executed with this interpreter and OPEN_THE_HOOD_BUILD=1 (`execute.run_page`), but
    only when its text, the part of `utils` that it imports, or its saved outputs changed
    (`digest`); otherwise its outputs are carried over (`steps.keep_outputs`).
8.  Timings, widget state and this machine's paths are taken out of outputs (`execute.tidy`);
    errors, silent images, live widgets and lessons of a megabyte are refused
    (`execute.output_problems`).
9.  A lab goes through nbgrader's generate_assignment with the project's nbgrader_config.py, beside
    a throw-away gradebook (`release.generate`): stubs, hidden tests, rubrics, locks, checksums.
10. Files are written whole or not at all, and only when their bytes change (`steps.write`).

Back again (`home`): metadata becomes the compact header (`cells.header_of`), the import is taken
away (`cells.remove_import`), and cells that did not change keep their bytes in the text
(`text.assemble`), so text -> notebook -> text is the identity. `review` compares what is committed
with what the text builds, and `bundle` packs what a learner gets.
"""
