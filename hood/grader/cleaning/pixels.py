"""How large a learner's picture becomes in the browser of the person who opens a page.

A file of some kilobytes can hold a picture that takes gigabytes there. Only its header is read, and
nothing decodes it. Browsers go by the first bytes of a picture, whatever kind it is said to be.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import struct

# A photo of a page has 12 to 24 million pixels. Each takes 4 bytes in a browser.
MAX_PIXELS = 25_000_000  # of one picture
MAX_PIXELS_IN_ALL = 100_000_000  # of all pictures of a notebook, or of an answer
PNG, JPEG, GIF = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", (b"GIF87a", b"GIF89a")
PNG_HEADER = struct.Struct(">8s4x4sII")
# Other kinds that browsers show: BMP, icons, JPEG XL. WebP and AVIF begin like other files.
OTHERS = (b"BM", b"\0\0\1\0", b"\0\0\2\0", b"\xff\x0a", b"\0\0\0\x0cJXL ")
TOO_LARGE = (
    f"(This picture is not shown: pages show PNG, JPEG and GIF up to {MAX_PIXELS:,} pixels.)"
)
TOO_MANY = f"(This picture is not shown: a page shows {MAX_PIXELS_IN_ALL:,} pixels in all.)"


def pixels(encoded: str) -> int:
    """Return how many pixels a picture in Base64 has; 0 for what no browser takes for a picture.

    What is a picture of another kind than PNG, JPEG and GIF, or has a header that can't be read,
    counts as more than `MAX_PIXELS`.
    """
    text = re.sub(r"[\s=]+", "", encoded)
    try:
        data = base64.b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return 0
    if data.startswith(PNG):
        if len(data) < PNG_HEADER.size:
            return 0
        _, kind, width, height = PNG_HEADER.unpack_from(data)
        return width * height if kind == b"IHDR" else MAX_PIXELS + 1
    if data.startswith((JPEG, *GIF)):
        return _by_pillow(data)
    other = data.startswith(OTHERS) or data[8:12] == b"WEBP" or data[4:8] == b"ftyp"
    return MAX_PIXELS + 1 if other else 0


def _by_pillow(data: bytes) -> int:
    from PIL import Image  # here, because most notebooks have none of these

    try:
        # a GIF may be larger than its header says, by its first frame; this looks at both
        with Image.open(io.BytesIO(data), formats=("JPEG", "GIF")) as picture:
            return picture.width * picture.height
    except Exception:  # it raises anything, also where the picture is far too large
        return MAX_PIXELS + 1
