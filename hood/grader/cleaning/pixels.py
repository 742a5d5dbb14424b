"""Find the size that a learner's picture would have in the browser of a page's reader.

A file of a few kilobytes can contain a picture that takes gigabytes in a browser. Only the file's
header is read; the picture is not decoded. Browsers recognise a picture by its first bytes and
ignore its declared kind.
"""

from __future__ import annotations

import base64
import binascii
import io
import re
import struct

# A photo of a page has 12 to 24 million pixels. Each pixel takes 4 bytes in a browser.
MAX_PIXELS = 25_000_000  # of one picture
MAX_PIXELS_IN_ALL = 100_000_000  # of all pictures of a notebook, or of an answer
PNG, JPEG, GIF = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", (b"GIF87a", b"GIF89a")
PNG_HEADER = struct.Struct(">8s4x4sII")
# Other kinds that browsers show: BMP, icons, JPEG XL. WebP and AVIF are not here, because their
# first bytes are also those of other files.
OTHERS = (b"BM", b"\0\0\1\0", b"\0\0\2\0", b"\xff\x0a", b"\0\0\0\x0cJXL ")
TOO_LARGE = (
    f"(This picture is not shown: pages show PNG, JPEG and GIF up to {MAX_PIXELS:,} pixels.)"
)
TOO_MANY = (
    "(This picture is not shown: the pictures of a page together can have up to "
    f"{MAX_PIXELS_IN_ALL:,} pixels.)"
)


def pixels(encoded: str) -> int:
    """Return the number of pixels of a picture in Base64; 0 if no browser shows it as a picture.

    A picture that is not PNG, JPEG or GIF, or that has an unreadable header, counts as larger than
    `MAX_PIXELS`.
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
    from PIL import Image  # here, because most notebooks have no such pictures

    try:
        # a GIF's first frame may be larger than the header says; opening the file checks both
        with Image.open(io.BytesIO(data), formats=("JPEG", "GIF")) as picture:
            return picture.width * picture.height
    except Exception:  # PIL may raise any error, also for a picture that is far too large
        return MAX_PIXELS + 1
