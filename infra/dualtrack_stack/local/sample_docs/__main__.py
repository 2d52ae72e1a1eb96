"""``python -m dualtrack_stack.local.sample_docs``: the sample documents in the foreground."""

from __future__ import annotations

from pathlib import Path

import click
from dualtrack_stack.local.loopback import serve_in_foreground

from .server import create_app


@click.command()
@click.option("--port", default=0, show_default="a free one", help="Port on the loopback interface.")
@click.option("--port-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the port here.")
def main(port: int, port_file: Path | None) -> None:
    """Serve the sample documents in the shape of Context7's API."""
    serve_in_foreground(create_app(), port, port_file)


if __name__ == "__main__":
    main()
