"""``python -m dualtrack_stack.local.offline_model``: the offline model in the foreground."""

from __future__ import annotations

from pathlib import Path

import click
from dualtrack_stack.local.loopback import serve_in_foreground

from .server import create_app
from .service import Settings


@click.command()
@click.option("--port", default=0, show_default="a free one", help="Port on the loopback interface.")
@click.option("--port-file", type=click.Path(dir_okay=False, path_type=Path), help="Write the port here.")
@click.option("--chunk-delay", default=0.015, show_default=True, help="Seconds before each piece of text.")
@click.option("--control", is_flag=True, help="Offer /control/… for scripts and recorded requests.")
@click.option("--context-window", type=int, help="Tokens, in place of the models' own windows.")
def main(
    port: int,
    port_file: Path | None,
    chunk_delay: float,
    control: bool,
    context_window: int | None,
) -> None:
    """Serve the Messages API by fixed rules: for the quick start and for tests, no language model."""
    settings = Settings(chunk_delay=chunk_delay, control=control, context_window=context_window)
    serve_in_foreground(create_app(settings), port, port_file)


if __name__ == "__main__":
    main()
