"""Where solutions begin and end."""

import textwrap

from hood.authoring.importing.solution_cell import exact_marks, mark_all, of_otter


def text(source):
    return textwrap.dedent(source).strip("\n")


def test_inexact_marks_become_exact():
    source = "def f():\n    #BEGIN SOLUTION here\n    return 1\n    ### END SOLUTION ###"
    marked = "def f():\n    ### BEGIN SOLUTION\n    return 1\n    ### END SOLUTION"
    assert exact_marks(source) == marked


def test_without_marks_the_body_of_each_function_is_the_solution():
    assert mark_all("def f(x):\n    '''Words.'''\n    return x\n\ndef g(): return 2") == text(
        """
        def f(x):
            '''Words.'''
            ### BEGIN SOLUTION
            return x
            ### END SOLUTION

        def g():
            ### BEGIN SOLUTION
            return 2
            ### END SOLUTION
        """
    )
    assert mark_all("class A:\n    def b(self):\n        return 1") == text(
        """
        class A:
            def b(self):
                ### BEGIN SOLUTION
                return 1
                ### END SOLUTION
        """
    )


def test_without_a_function_the_whole_cell_is_the_solution():
    for source in ("x = 2", "not python at all"):
        assert mark_all(source) == f"### BEGIN SOLUTION\n{source}\n### END SOLUTION"


def test_otters_lines_and_blocks_become_regions():
    source = """
        pi = 3.14
        if True:
            # BEGIN SOLUTION
            radius = 3

            area = radius * pi
            # END SOLUTION
            print(radius)

        def circumference(r):
            # BEGIN SOLUTION NO PROMPT
            return 2 * pi * r
            # END SOLUTION
            \""" # BEGIN PROMPT
            # Next, define it.
            return ...
            \"""; # END PROMPT

        def square(x):
            np.random.seed(1) # SEED
            y = x * x # SOLUTION NO PROMPT
            return y # SOLUTION

        nine = square(3) # SOLUTION
        """
    assert of_otter(text(source)) == text(
        """
        pi = 3.14
        if True:
            ### BEGIN SOLUTION
            radius = 3

            area = radius * pi
            ### END SOLUTION
            print(radius)

        def circumference(r):
            ### BEGIN SOLUTION
            return 2 * pi * r
            ### END SOLUTION
            # Next, define it.
            # return ...

        def square(x):
            ### BEGIN SOLUTION
            np.random.seed(1)
            y = x * x
            return y
            ### END SOLUTION

        ### BEGIN SOLUTION
        nine = square(3)
        ### END SOLUTION
        """
    )


def test_lines_that_otter_ignores_are_left_out():
    source = """
        ## solution ##
        x = 2 # SOLUTION
        # BEGIN IGNORE
        x = 3
        # END IGNORE
        print(x) # IGNORE
        """
    assert of_otter(text(source)) == "### BEGIN SOLUTION\nx = 2\n### END SOLUTION"


def test_a_solution_without_otters_marks_is_the_whole_answer():
    assert of_otter("def f():\n    return 1") == text(
        """
        def f():
            ### BEGIN SOLUTION
            return 1
            ### END SOLUTION
        """
    )
