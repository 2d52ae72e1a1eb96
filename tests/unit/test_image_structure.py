"""The structure of images: what real encoders write passes, what no decoder could open does not."""

from __future__ import annotations

import io
import random
import struct
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.image_structure import MAX_PARTS, MAX_SIDE, image_problem
from dualtrack.media import MAX_IMAGE
from PIL import Image

from tests.drivers.images import GIF, JPEG, PNG_START, WEBP, chunk, png
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

TYPES = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp"}
FORMS: dict[str, tuple[dict[str, Any], ...]] = {
    "PNG": ({}, {"optimize": True}),
    "JPEG": ({}, {"progressive": True}, {"quality": 5}, {"exif": b"Exif\0\0" + bytes(200)}),
    "GIF": ({}, {"interlace": 1}),
    "WEBP": ({}, {"lossless": True}, {"exif": b"Exif\0\0x"}),
}
MODES = ("1", "L", "P", "RGB", "RGBA", "LA", "I;16", "CMYK")
HEADER = struct.pack(">IIBBBBB", 1, 1, 1, 0, 0, 0, 0)


def encoded(image: Image.Image, kind: str, **more: Any) -> bytes:
    into = io.BytesIO()
    image.save(into, kind, **more)
    return into.getvalue()


def noise(width: int, height: int) -> Image.Image:
    return Image.frombytes("RGB", (width, height), random.Random(7).randbytes(width * height * 3))


def real_images() -> Iterator[tuple[str, bytes]]:
    """What Pillow writes, in every mode that a format has."""
    for size in ((1, 1), (3, 7), (64, 48), (MAX_SIDE, 1), (1, MAX_SIDE)):
        for mode in MODES:
            image = noise(*size).convert(mode)
            for kind, forms in FORMS.items():
                yield from ((kind, data) for form in forms if (data := _saved(image, kind, form)))
    frames = [noise(30, 20) for _ in range(3)]
    for kind in ("PNG", "GIF", "WEBP"):
        yield kind, encoded(frames[0], kind, save_all=True, append_images=frames[1:])


def _saved(image: Image.Image, kind: str, form: dict[str, Any]) -> bytes:
    """Nothing for what the format cannot hold."""
    try:
        return encoded(image, kind, **form)
    except (OSError, ValueError):
        return b""


def test_whatever_an_encoder_writes_passes() -> None:
    images = tuple(real_images())
    assert len(images) > 200
    assert {problem for kind, data in images if (problem := image_problem(TYPES[kind], data))} == set()


@pytest.mark.parametrize("kind", list(TYPES))
def test_a_file_cut_anywhere_is_refused_if_a_decoder_refuses_it(kind: str) -> None:
    data = encoded(noise(40, 30), kind)
    step = 1 if LONG else 37
    for end in range(13, len(data) - 1, step):
        if _opens(data[:end]):
            continue
        assert image_problem(TYPES[kind], data[:end]).startswith("the image is broken: "), end


def _opens(data: bytes) -> bool:
    try:
        Image.open(io.BytesIO(data)).load()
    except (OSError, SyntaxError, ValueError):
        return False
    return True


def _parts(*parts: tuple[bytes, bytes]) -> bytes:
    return PNG_START + b"".join(chunk(*part) for part in parts)


def _damaged(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 0xFF]) + data[at + 1 :]


@pytest.mark.parametrize(
    ("kind", "data", "problem"),
    [
        ("png", PNG_START, "it is cut off"),
        ("png", PNG_START + bytes(200), "its header is not its first part"),
        ("png", _damaged(png(), 17), "a checksum is wrong"),
        ("png", _damaged(png(), len(png()) - 20), "a checksum is wrong"),
        ("png", _parts((b"IHDR", HEADER), (b"IEND", b"")), "it has no picture"),
        ("png", _parts((b"IHDR", HEADER[:-1]), (b"IEND", b"")), "it is cut off"),
        ("png", _parts((b"IHDR", HEADER[:8] + b"\x07\x09\0\0\0")), "its header is not a PNG's"),
        ("png", _parts((b"IHDR", HEADER), (b"IHDR", HEADER)), "its header is not its first part"),
        ("png", _parts((b"IHDR", HEADER[:9] + b"\x03\0\0\0"), (b"IDAT", b"")), "its palette is missing"),
        ("png", png(pixels=b"no stream"), "its pixels cannot be unpacked"),
        ("png", png(width=0), "it has no pixels"),
        ("jpeg", b"\xff\xd8\xff\xe0" + bytes(20), "it is cut off"),
        ("jpeg", b"\xff\xd8\xff\xda\0\x02" + bytes(20) + b"\xff\xd9", "it has no header"),
        ("jpeg", JPEG[:-2], "it is cut off"),
        ("gif", b"GIF89a", "it is cut off"),
        ("gif", b"GIF89a" + bytes(7) + b";", "it has no picture"),
        ("gif", b"GIF89a" + bytes(20), "a part is of no known kind"),
        ("webp", b"RIFF\0\0\0\0WEBP", "it is cut off"),
        ("webp", WEBP[:20] + b"\0" + WEBP[21:], "its picture does not begin like one"),
        ("webp", WEBP[:-1], "it is cut off"),
    ],
)
def test_a_broken_image_is_refused_with_the_reason(kind: str, data: bytes, problem: str) -> None:
    assert image_problem(f"image/{kind}", data) == f"the image is broken: {problem}"


def test_a_side_may_have_8000_pixels() -> None:
    assert image_problem("image/png", png(width=8_000, height=2)) == ""
    assert image_problem("image/png", png(width=2, height=8_001)) == (
        "the image has 2 x 8,001 pixels, and a side may have 8,000"
    )
    huge = GIF[:6] + b"\xff\xff\xff\xff" + GIF[10:]
    assert image_problem("image/gif", huge).startswith("the image has 65,535 x 65,535 pixels")


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("png", png()[:33] + chunk(b"teSt", b"") * (MAX_IMAGE // 12)),
        ("jpeg", b"\xff\xd8" + b"\xff" * MAX_IMAGE),
        ("jpeg", b"\xff\xd8" + b"\0\xff\x01" * (MAX_IMAGE // 3)),
        ("gif", b"GIF89a\1\0\1\0\0\0\0\x21\0" + b"\1\0" * (MAX_IMAGE // 2)),
        ("webp", b"RIFF" + bytes(4) + b"WEBP" + (b"abcd" + bytes(4)) * (MAX_IMAGE // 8)),
    ],
    ids=["png", "jpeg filled", "jpeg junk", "gif", "webp"],
)
def test_a_file_of_very_many_parts_is_given_up(kind: str, data: bytes) -> None:
    assert len(data) // 12 > MAX_PARTS
    assert image_problem(f"image/{kind}", data) == "the image is broken: it has too many parts"
