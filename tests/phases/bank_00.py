"""Solutions of lab 00, right and wrong, written from the question alone.

RIGHT holds the code by exercise and name, WRONG the code and what it breaks in the question's text.
"""

from tests.phases import bank_00_second
from tests.phases.bank import Bank

RIGHT = {
    "grid_size": {
        "rounded up by adding": "def grid_size(n, block):\n    return (n + block - 1) // block\n",
        "floor of the negative": "def grid_size(n, block):\n    return -(-n // block)\n",
        "divmod": """
def grid_size(n, block):
    full, left = divmod(n, block)
    if left > 0:
        return full + 1
    else:
        return full
""",
        "counts in a loop": """
def grid_size(n, block):
    programs = 0
    covered = 0
    while covered < n:
        covered += block
        programs += 1
    return programs
""",
        "a truth value added": "def grid_size(n, block):\n    return n // block + (n % block != 0)\n",
        "by way of floats": "import math\n\ndef grid_size(n, block):\n    return math.ceil(n / block)\n",
        "an int of NumPy's": "import numpy as np\n\ndef grid_size(n, block):\n    return np.int64(-(-n // block))\n",
        "length of a range": "grid_size = lambda n, block: len(range(0, n, block))\n",
        "recursion": """
def grid_size(n, block):
    return 0 if n <= 0 else 1 + grid_size(n - block, block)
""",
    },
    "masked_block": {
        "comprehension with a mask": """
def masked_block(program, n, block):
    return [i for i in range(program * block, program * block + block) if i < n]
""",
        "two ends": """
def masked_block(program, n, block):
    begin = program * block
    end = min(begin + block, n)
    return list(range(begin, end))
""",
        "slice of all": """
def masked_block(program, n, block):
    return list(range(n))[program * block:(program + 1) * block]
""",
        "a while loop": """
def masked_block(program, n, block):
    result = []
    place = 0
    while place < block:
        index = program * block + place
        if index < n:
            result.append(index)
        place = place + 1
    return result
""",
        "torch, as the kernel does": """
import torch

def masked_block(program, n, block):
    i = program * block + torch.arange(0, block)
    return i[i < n].tolist()
""",
        "NumPy": """
import numpy as np

def masked_block(program, n, block):
    places = np.arange(n)
    return [int(i) for i in places[places // block == program]]
""",
        "who owns this element?": """
def masked_block(program, n, block):
    return [i for i in range(n) if divmod(i, block)[0] == program]
""",
        "takewhile": """
from itertools import count, islice, takewhile

def masked_block(program, n, block):
    mine = islice(count(program * block), block)
    return list(takewhile(lambda i: i < n, mine))
""",
    },
}

WHOLE = "the smallest number of programs that covers `n` elements, as an int"
OWN = "the indices of the elements that program number `program` loads, as a list of ints"

WRONG = {
    "grid_size": {
        "rounds down": ("def grid_size(n, block):\n    return n // block\n", WHOLE),
        "always one more": ("def grid_size(n, block):\n    return n // block + 1\n", WHOLE),
        "adds block, not block - 1": (
            "def grid_size(n, block):\n    return (n + block) // block\n",
            WHOLE,
        ),
        "rounds to the nearest": ("def grid_size(n, block):\n    return round(n / block)\n", WHOLE),
        "a float": (
            "import numpy as np\n\ndef grid_size(n, block):\n    return np.ceil(n / block)\n",
            "as an int",
        ),
        "true division": (
            "def grid_size(n, block):\n    return (n + block - 1) / block\n",
            "as an int",
        ),
        "at least one": (
            "def grid_size(n, block):\n    return max(1, (n + block - 1) // block)\n",
            "`n` is 0 or more",
        ),
        "shift by the bits of the block": (
            "def grid_size(n, block):\n    return (n + block - 1) >> (block.bit_length() - 1)\n",
            "it need not be a power of two here",
        ),
        "power of two grid": (
            "def grid_size(n, block):\n    g = -(-n // block)\n    return 1 << (g - 1).bit_length() if g else 0\n",
            "the smallest number",
        ),
        "one less than n": (
            "def grid_size(n, block):\n    return (n - 1) // block + 1 if n > 1 else 0\n",
            WHOLE,
        ),
        "a remainder of one forgotten": (
            "def grid_size(n, block):\n    full, left = divmod(n, block)\n    return full + 1 if left > 1 else full\n",
            WHOLE,
        ),
        "small n special": (
            "def grid_size(n, block):\n    if n < block:\n        return 0\n    return (n + block - 1) // block\n",
            WHOLE,
        ),
        "prints": ("def grid_size(n, block):\n    print((n + block - 1) // block)\n", "as an int"),
        "adds the remainder": (
            "def grid_size(n, block):\n    return n // block + n % block\n",
            WHOLE,
        ),
        "half added": ("def grid_size(n, block):\n    return (n + block // 2) // block\n", WHOLE),
        "a string": ("def grid_size(n, block):\n    return f'{-(-n // block)}'\n", "as an int"),
        "a decimal trick": ("def grid_size(n, block):\n    return int(n / block + 0.99)\n", WHOLE),
        "blocks of one": (
            "def grid_size(n, block):\n    if block == 1:\n        return n + 1\n    return -(-n // block)\n",
            "`block` is 1 or more",
        ),
        "a float32 tensor": (
            "import torch\n\ndef grid_size(n, block):\n    return int(torch.ceil(torch.tensor(n) / block))\n",
            "`n` is 0 or more and fits into an int32",
        ),
    },
    "masked_block": {
        "no mask": (
            "def masked_block(program, n, block):\n    return list(range(program * block, (program + 1) * block))\n",
            OWN,
        ),
        "mask one too far": (
            "def masked_block(program, n, block):\n    return [i for i in range(program * block, (program + 1) * block) if i <= n]\n",
            "which elements are its own, and its mask turns off the places that lie past the end",
        ),
        "one short": (
            "def masked_block(program, n, block):\n    return [i for i in range(program * block, (program + 1) * block) if i < n - 1]\n",
            OWN,
        ),
        "counted from one": (
            "def masked_block(program, n, block):\n    return [i for i in range((program - 1) * block, program * block) if i < n]\n",
            "Programs are counted from 0",
        ),
        "a range": (
            "def masked_block(program, n, block):\n    return range(program * block, min((program + 1) * block, n))\n",
            "as a list of ints",
        ),
        "a tensor": (
            "import torch\n\ndef masked_block(program, n, block):\n    i = program * block + torch.arange(block)\n    return i[i < n]\n",
            "as a list of ints",
        ),
        "a list of 0-dim tensors": (
            "import torch\n\ndef masked_block(program, n, block):\n    i = program * block + torch.arange(block)\n    return list(i[i < n])\n",
            "as a list of ints",
        ),
        "places, not indices": (
            "def masked_block(program, n, block):\n    return [j for j in range(block) if program * block + j < n]\n",
            "the indices of the elements",
        ),
        "the mask itself": (
            "def masked_block(program, n, block):\n    return [program * block + j < n for j in range(block)]\n",
            "the indices of the elements",
        ),
        "zeros for masked places": (
            "def masked_block(program, n, block):\n    return [i if i < n else 0 for i in range(program * block, (program + 1) * block)]\n",
            "its mask turns off the places that lie past the end",
        ),
        "remainder at the end": (
            "def masked_block(program, n, block):\n    start = program * block\n    if start > n:\n        return []\n    if start + block >= n:\n        return list(range(start, start + n % block))\n    return list(range(start, start + block))\n",
            OWN,
        ),
        "nothing to do is None": (
            "def masked_block(program, n, block):\n    if program * block >= n:\n        return None\n    return list(range(program * block, min((program + 1) * block, n)))\n",
            "a program may find that it has nothing to do (a list)",
        ),
        "a program too many raises": (
            "def masked_block(program, n, block):\n    if program * block >= n:\n        raise ValueError('no such program')\n    return list(range(program * block, min((program + 1) * block, n)))\n",
            "The grid may be larger than it has to be",
        ),
        "no elements raises": (
            "def masked_block(program, n, block):\n    if n == 0:\n        raise ValueError('no elements')\n    return list(range(program * block, min((program + 1) * block, n)))\n",
            "`n` may be 0",
        ),
        "falling": (
            "def masked_block(program, n, block):\n    return [i for i in range(program * block + block - 1, program * block - 1, -1) if i < n]\n",
            "in rising order",
        ),
        "stride of the grid": (
            "def masked_block(program, n, block):\n    return list(range(program, n, -(-n // block)))\n",
            "Programs 0, 1, 2 with blocks of 4 begin at elements 0, 4 and 8",
        ),
        "evenly shared": (
            "import numpy as np\n\ndef masked_block(program, n, block):\n    grid = max(1, -(-n // block))\n    parts = np.array_split(np.arange(n), grid)\n    return parts[program].tolist() if program < grid else []\n",
            "a block is always whole",
        ),
        "clamped to the last": (
            "def masked_block(program, n, block):\n    return [min(i, n - 1) for i in range(program * block, (program + 1) * block)]\n",
            OWN,
        ),
        "rounded block": (
            "def masked_block(program, n, block):\n    whole = 1 << (block - 1).bit_length()\n    return [i for i in range(program * whole, (program + 1) * whole) if i < n]\n",
            "`block` to a program",
        ),
        "last program takes the rest": (
            "def masked_block(program, n, block):\n    last = n // block\n    if program < last:\n        return list(range(program * block, (program + 1) * block))\n    return list(range(last * block, n)) if program == last else [n] * 0 if n > block else list(range(n))\n",
            OWN,
        ),
        "starts past the end": (
            "def masked_block(program, n, block):\n    start = min(program * block, n - 1)\n    return list(range(start, min(start + block, n))) if program * block <= n else []\n",
            OWN,
        ),
        "a set in a list": (
            "def masked_block(program, n, block):\n    return set(range(program * block, min((program + 1) * block, n)))\n",
            "as a list of ints",
        ),
    },
}

BANK = Bank("00")
for exercise, answers in RIGHT.items():
    for name, code in answers.items():
        BANK.right(exercise, name, code=code)
for exercise, answers in WRONG.items():
    for name, (code, breaks) in answers.items():
        BANK.wrong(exercise, name, code=code, breaks=breaks)
BANK.fill(bank_00_second.RIGHT, bank_00_second.WRONG)
