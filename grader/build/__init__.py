"""Build the notebooks that people open from the texts in `phases/`.

    phases/NN_name/lesson.py -> notebooks/NN_name.ipynb          executed, outputs kept
    phases/NN_name/lab.py    -> source/NN_name/NN_name.ipynb     instructor's version
                             -> release/NN_name/NN_name.ipynb    learner's version, by nbgrader
    phases/start.py          -> notebooks/start.ipynb            executed like a lesson

The steps of the build, in order, and where they are implemented:

1. A text is parsed into cells that know their line numbers: YAML header, compact cell headers
   (`text.parse`).
2. The cells are checked, and all problems are reported at once: `rules` (ids, delimiters, points,
   hidden regions, mark schemes, plain Python), `leaks` (released text that shows a solution),
   `figures` (alternative text), `agreement` (lab, checks and lesson agree). To refuse something
   new, write a function there that yields `Problem`s, and call it from `rules.lab_problems` or
   `page_problems`, or, for what needs the checks or the lesson, from `agreement.check_problems`.
3. A compact header becomes nbgrader's metadata, schema 3 (`cells.nbgrader_metadata`). A given cell
   is locked. A solution cell belongs to the learner and gets the id + "_solution". A test is
   graded, locked and has points. A task is marked by hand, locked and has points. `tags` are kept;
   the code of a cell tagged `hide-input` is folded.
4. `from grader.verify import verify` is inserted above the hidden line (`cells.insert_import`).
5. Each cell gets an id that does not depend on other cells: nbgrader's id, or a hash of the content
   (`cells.cell_ids`).
6. The notebook's metadata gets the kernel, the header's settings, and the fingerprints of its
   cells, by which later edits are detected (`notebook.to_notebook`).
7. A lesson is executed with this interpreter and OPEN_THE_HOOD_BUILD=1 (`execute.run_page`), but
   only when its text, the part of `utils` that it imports, or its saved outputs changed
   (`digest`). Otherwise its outputs are copied from the last build (`steps.keep_outputs`).
8. Timings, widget state and paths of this machine are removed from outputs (`execute.tidy`).
   Errors, images without alternative text, live widgets and lessons of a megabyte are refused
   (`execute.output_problems`). Outputs that answer a prediction are folded
   (`predictions.fold_answers`).
9. A lab goes through nbgrader's generate_assignment with the project's nbgrader_config.py and a
   temporary gradebook (`release.generate`): stubs, hidden tests, rubrics, locks, checksums.
10. Files are written atomically, and only when their bytes change (`steps.write`).

The way back (`home`): metadata becomes the compact header (`cells.header_of`), the import is
removed (`cells.remove_import`), and cells that did not change keep their bytes in the text
(`text.assemble`). So text -> notebook -> text is the identity. `review` compares the committed
notebooks with what the texts build, and `bundle` packs the learner's archive.
"""
