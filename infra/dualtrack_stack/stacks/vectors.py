"""The bucket of the courses' vectors, for a stage that searches them in S3 Vectors (docs/courses.md).

A stack of its own: it can be switched off, and an export in use cannot be dropped (tests/infra/test_walks.py). The chat
stack is updated first, and this one stays, with all vectors, until somebody deletes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Stack
from aws_cdk import aws_s3vectors as s3vectors

from dualtrack_stack.stacks.data import removal

if TYPE_CHECKING:
    from constructs import Construct

    from dualtrack_stack.stages import StageSettings


def course_vectors_export(stage: StageSettings) -> str:
    """The name under which the vector bucket's ARN is exported."""
    return f"{stage.prefix}-course-vectors-arn"


class VectorsStack(Stack):
    """``arn``: the vector bucket's. Its indexes are made and deleted with the versions of the courses; S3 encrypts them
    with its own keys."""

    def __init__(self, scope: Construct, construct_id: str, stage: StageSettings) -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-vectors")
        bucket = s3vectors.CfnVectorBucket(self, "CourseVectors")
        bucket.apply_removal_policy(removal(stage))
        self.arn: str = self.export_value(bucket.attr_vector_bucket_arn, name=course_vectors_export(stage))
