"""Answers to lab 00, a second bank: written from the lesson and the lab's text alone."""

# ruff: noqa: E501

from __future__ import annotations

from tests.phases.bank import CODE

RIGHT = {
    "grid_size": {
        "divmod": '''
def grid_size(n, block):
    full, rest = divmod(n, block)
    if rest:
        return full + 1
    return full
''',
        "the length of a range": '''
def grid_size(n: int, block: int) -> int:
    starts = range(0, n, block)
    return len(starts)
''',
        "ceil of a true division, exact for an int32": '''
import math

def grid_size(n, block):
    return math.ceil(n / block)
''',
        "one less, one more": '''
def grid_size(n, block):
    return (n - 1) // block + 1
''',
        "a bool added": '''
def grid_size(n, block):
    return n // block + (n % block != 0)
''',
        "Triton's own, where there is one": '''
try:
    from triton import cdiv
except ImportError:
    def cdiv(a, b):
        return -(-a // b)

grid_size = cdiv
''',
        "doubling, then halving": '''
def grid_size(n, block):
    if n == 0:
        return 0
    high = 1
    while high * block < n:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        if middle * block < n:
            low = middle
        else:
            high = middle
    return high
''',
        "a loop that counts": '''
def grid_size(n, block):
    programs = 0
    while n > 0:
        n -= block
        programs += 1
    return programs
''',
    },
    "masked_block": {
        "a mask, as in the kernel": '''
def masked_block(program, n, block):
    places = [program * block + i for i in range(block)]
    return [i for i in places if i < n]
''',
        "two ends": '''
def masked_block(program, n, block):
    start = program * block
    end = min(start + block, n)
    return list(range(start, end))
''',
        "a range sliced": '''
def masked_block(program, n, block):
    return list(range(n)[program * block :][:block])
''',
        "torch": '''
import torch

def masked_block(program, n, block):
    i = program * block + torch.arange(block)
    return i[i < n].tolist()
''',
        "NumPy": '''
import numpy as np

def masked_block(program, n, block):
    offsets = program * block + np.arange(0, block)
    mask = offsets < n
    return offsets[mask].tolist()
''',
        "takewhile": '''
from itertools import count, islice, takewhile

def masked_block(program, n, block):
    mine = islice(count(program * block), block)
    return list(takewhile(lambda i: i < n, mine))
''',
        "who owns each element": '''
def masked_block(program, n, block):
    return [i for i in range(n) if i // block == program]
''',
    },
}

WRONG = {
    "masked_block": [
        ("sets", "a set promises no order", CODE, '''
def masked_block(program, n, block):
    start = program * block
    return list(set(range(start, start + block)) & set(range(n)))
'''),
    ],
}
