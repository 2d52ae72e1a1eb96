"""Options that the commands of AWS share."""

from __future__ import annotations

import click

from dualtrack_stack.cli.aws.facts import STAGES

stage_option = click.option("--stage", type=click.Choice(STAGES), default="staging", show_default=True)
region_option = click.option("--region", help="Else AWS_REGION or the profile's.")
