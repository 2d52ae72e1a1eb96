"""``dualtrack aws synth``: a stage's templates and the code that they name, without an account."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import click

from dualtrack_stack.cli.aws.account import AwsRefusal
from dualtrack_stack.cli.aws.options import stage_option
from dualtrack_stack.cli.aws.up import Wishes, read_stage
from dualtrack_stack.cli.command import exit_codes, report
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.local.synth import synthesise_into

MANIFEST = "manifest.json"
"""Every folder of the CDK's has one (AWS CDK, "Cloud assemblies")."""


@click.command()
@stage_option
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The folder to write; one that this command wrote is replaced.",
)
def synth(stage: str, output: Path) -> None:
    """Write a stage's templates and the code that they name, without an account.

    cdk-nag and cdk-preflight check them as before every deployment. `dualtrack aws up --assembly FOLDER` deploys them.
    """
    with exit_codes():
        if output.is_file() or (
            output.is_dir() and any(output.iterdir()) and not (output / MANIFEST).is_file()
        ):
            raise Missing(f"--output: {output} is not empty, and nothing that this command wrote.")
        read_stage(Wishes(stage))
        report(f"Synthesising the templates of {stage}")
        output.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{output.name}-", dir=output.parent) as folder:
            written = Path(folder) / "assembly"
            try:
                synthesise_into(written, stage)
            except RuntimeError as problem:
                raise AwsRefusal(str(problem)) from problem
            shutil.rmtree(output, ignore_errors=True)
            written.rename(output)
        for template in sorted(output.glob("*.template.json")):
            click.echo(template)
