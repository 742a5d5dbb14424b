"""The verdict on an answer: its cases are drawn and played, and what came is compared.

`answer_key` has the cases of a seed with what the reference and the misconceptions make of them,
`outcome` plays a case by way of `subject`, `difference` words what is not as expected, `diagnosis`
names a mistake, and `judge` makes the verdict of all this.
"""
