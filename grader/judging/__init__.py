"""From a check and a learner's code to a verdict. Trusted; the code is asked over
:mod:`grader.judging.rpc_client` and runs elsewhere.
"""
