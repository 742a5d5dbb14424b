"""The verdict on an answer: draw cases, play them, compare the outcomes.

`answer_key` has a seed's cases, with the outcomes of the reference and of the misconceptions.
`outcome` plays a case with a `subject`, `difference` describes a wrong outcome in words,
`diagnosis` names the mistake, and `judge` makes the verdict.
"""
